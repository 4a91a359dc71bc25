//! The search for the depth that meets a latency target, against what can be worked out by hand,
//! and against what fio did on the same servers.

use crate::common::jobs::jobs;
use crate::common::recorder::recorder;
use paternoster::{Nanos, SchedulerKind};
use paternoster_lab::fio::Jobs;
use paternoster_lab::result::{FioReport, Header};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, PageCacheParameters, run_jobs};
use serde_json::Value;

/// The run of a job that reads at random, on so many servers that take so long.
struct Run {
    jobs: Jobs,
    outcome: Outcome,
    /// How many reads were outstanding with each that was submitted, and when that was.
    outstanding: Vec<(Nanos, usize)>,
}

fn run(options: &str, servers: usize, service: Nanos) -> Run {
    let jobs = jobs(&format!(
        "[job]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nsize=1g\ntime_based\n\
         filename=/dev/a\n{options}"
    ));
    let count = u32::try_from(servers).expect("few");
    let (device, log) = recorder(count, service, Nanos::ZERO);
    let setup = Setup::new(SchedulerKind::None);
    let page_cache = PageCacheParameters::default();
    let outcome = run_jobs(&jobs, &setup, page_cache, device, |_| {}).expect("a run");
    // A read starts when one of the servers is free.
    let mut ends: Vec<Nanos> = vec![];
    let mut outstanding = vec![];
    for &(at, _) in log.borrow().iter() {
        let before = ends.len().checked_sub(servers).map_or(at, |before| ends[before]);
        ends.push(before.max(at) + service);
        let under_way = ends.iter().rev().take_while(|end| **end > at).count();
        outstanding.push((at, under_way));
    }
    Run { jobs, outcome, outstanding }
}

impl Run {
    fn reads(&self) -> u64 {
        self.outcome.results[0].directions[0].ios
    }

    fn report(&self) -> Value {
        let header = Header { unix_ms: 0 };
        let report = FioReport::new(header, &self.jobs, &self.outcome.results, vec![]);
        serde_json::from_str(&report.to_json()).expect("it is JSON")
    }

    /// The greatest numbers outstanding in 50 ms each, where they change.
    fn tried(&self) -> Vec<usize> {
        let window = |at: Nanos| at.as_nanos() / 50_000_000;
        let windows = self.outstanding.chunk_by(|one, other| window(one.0) == window(other.0));
        let greatest = windows.map(|some| some.iter().map(|(_, count)| *count).max());
        let mut tried: Vec<usize> = greatest.flatten().collect();
        tried.dedup();
        tried
    }
}

/// 16 I/Os take 80 us on 16 servers; of 17 one waits. The depths 1, 2, 4, 8, 16, 32, 24, 20, 18, 17
/// and 16 are tried for 10 ms each, which are 125 times 80 us, and then 16 is counted for as long:
/// 2,000 reads. What is outstanding at the end of the five that fail takes 80 us more each.
#[test]
fn depth_is_that_of_the_servers_where_no_read_may_wait() {
    let options = "iodepth=64\nlatency_target=100us\nlatency_window=10ms\nruntime=10s\n";
    let run = run(options, 16, Nanos::from_micros(80));
    let result = &run.outcome.results[0];
    assert_eq!(result.latency_depth, Some(16));
    assert_eq!((run.reads(), result.runtime), (2000, Nanos::from_millis(10)));
    assert_eq!(result.directions[0].total.moments().max(), 80_000);
    assert_eq!(run.outcome.end.since_start(), Nanos::from_micros(12 * 10_000 + 5 * 80));
    let report = run.report();
    let job = &report["jobs"][0];
    let told = ["latency_depth", "latency_target", "latency_window"].map(|key| job[key].as_u64());
    assert_eq!(told, [16, 100_000, 10_000].map(Some), "in ns and in us");
    assert_eq!(job["latency_percentile"].as_f64(), Some(100.0));
    assert_eq!(job["error"].as_u64(), Some(0));
}

/// A call that waits has one I/O under way: a depth of 1 is tried, and then counted.
#[test]
fn engine_that_waits_has_a_depth_of_1() {
    let options = "ioengine=psync\niodepth=64\nlatency_target=100us\nlatency_window=10ms\n\
                   runtime=10s\n";
    let run = run(options, 16, Nanos::from_micros(80));
    assert_eq!(run.outcome.results[0].latency_depth, Some(1));
    assert_eq!(run.reads(), 125);
    assert_eq!(run.outcome.end.since_start(), Nanos::from_millis(20));
}

/// So has a read through the page cache, whatever the engine: 80 us of the device and 1 us that a
/// page is copied. 124 of them are the first to take 10 ms.
#[test]
fn reads_through_the_page_cache_have_a_depth_of_1() {
    for engine in ["libaio", "io_uring", "posixaio"] {
        let options = format!(
            "ioengine={engine}\ndirect=0\niodepth=64\nlatency_target=100us\n\
             latency_window=10ms\nruntime=10s\n"
        );
        let run = run(&options, 16, Nanos::from_micros(80));
        assert_eq!(run.outcome.results[0].latency_depth, Some(1), "{engine}");
        assert_eq!(run.reads(), 124, "{engine}");
        assert_eq!(run.outcome.end.since_start(), Nanos::from_micros(2 * 124 * 81), "{engine}");
    }
}

/// Trims do not wait, also beside the page cache: they are as deep as reads of the device.
#[test]
fn trims_beside_the_page_cache_have_the_depth_of_the_servers() {
    let options = "rw=randtrim\ndirect=0\niodepth=64\nlatency_target=100us\n\
                   latency_window=10ms\nruntime=10s\n";
    let run = run(options, 16, Nanos::from_micros(80));
    assert_eq!(run.outcome.results[0].latency_depth, Some(16));
}

/// fio's machine has times of its own; ours are exact. So reads may differ by one in a hundred.
#[test]
fn jobs_end_as_with_fio_on_the_same_servers() {
    let lines = include_str!("../data/fio-3.33/job-ends.txt").lines();
    let lines: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines {
        let (job, fios) = line.split_once(" = ").expect("what fio did");
        let (servers, options) = job.split_once(' ').expect("servers and options");
        let (count, us) = servers.split_once('x').expect("servers");
        let service = us.strip_suffix("us").expect("a unit").parse().expect("a number");
        let servers = count.parse().expect("a number");
        let run = run(&options.replace(' ', "\n"), servers, Nanos::from_micros(service));
        let report = run.report();
        let told = |key: &str| report["jobs"][0][key].as_u64().expect("a number");
        let tried: Vec<_> = run.tried().iter().map(usize::to_string).collect();
        let [error, depth, reads, fios_tried] = fios.split(", ").collect::<Vec<_>>()[..] else {
            panic!("{fios}")
        };
        assert_eq!(format!("error {}", told("error")), error, "{line}");
        assert_eq!(format!("depth {}", told("latency_depth")), depth, "{line}");
        assert_eq!(format!("tried {}", tried.join(" ")), fios_tried, "{line}");
        let reads: u64 = reads.trim_start_matches("reads ").parse().expect("a number");
        assert!(run.reads().abs_diff(reads) <= reads.div_ceil(100), "{line}: {}", run.reads());
    }
}
