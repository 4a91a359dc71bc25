//! Jobs that hand I/O over in batches and take it back in batches (`iodepth_batch`,
//! `iodepth_batch_complete_*`, `iodepth_low`), against what can be worked out by hand, and against
//! what fio did on the same servers.

use std::collections::BTreeSet;

use crate::common::jobs::jobs;
use crate::common::recorder::recorder;
use paternoster::{Nanos, PlugLimits, SchedulerKind};
use paternoster_lab::fio::Jobs;
use paternoster_lab::result::{FioReport, Header};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, PageCacheParameters, run_jobs};
use serde_json::Value;

/// The run of a job.
struct Run {
    jobs: Jobs,
    outcome: Outcome,
    /// The commands of the device: when, and how many sectors.
    commands: Vec<(Nanos, u32)>,
}

fn run_under(setup: &Setup, options: &str, servers: u32, service: Nanos) -> Run {
    let options = options.replace(' ', "\n");
    let jobs = jobs(&format!(
        "[job]\nioengine=libaio\ndirect=1\nbs=4k\nsize=1g\nfilename=/dev/a\n{options}\n"
    ));
    let (device, log) = recorder(servers, service, Nanos::ZERO);
    let page_cache = PageCacheParameters::default();
    let outcome = run_jobs(&jobs, setup, page_cache, device, |_| {}).expect("a run");
    let commands = log.borrow().iter().map(|(at, command)| (*at, command.sectors.0)).collect();
    Run { jobs, outcome, commands }
}

fn run(options: &str) -> Run {
    run_under(&Setup::new(SchedulerKind::MqDeadline), options, 4, Nanos::from_micros(100))
}

impl Run {
    fn job(&self) -> Value {
        let header = Header { unix_ms: 0 };
        let report = FioReport::new(header, &self.jobs, &self.outcome.results, vec![]);
        let report: Value = serde_json::from_str(&report.to_json()).expect("it is JSON");
        report["jobs"][0].clone()
    }

    /// How many commands the device had of each size, in KiB.
    fn sizes(&self) -> Vec<(u32, usize)> {
        let mut sizes: Vec<u32> = self.commands.iter().map(|(_, sectors)| sectors / 2).collect();
        sizes.sort_unstable();
        sizes.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect()
    }

    fn notes(&self) -> Vec<&str> {
        self.jobs.notes.iter().map(|note| note.option.as_str()).collect()
    }
}

const SEQUENTIAL: &str = "rw=read iodepth=16 number_ios=160";

/// 16 neighbours of 4 KiB are 64 KiB. The device is idle when each batch comes, so that without a
/// plug it takes the first read by itself, and nothing merges: 4 servers have room for 64.
#[test]
fn batch_of_neighbours_is_one_command() {
    let whole = format!("{SEQUENTIAL} iodepth_batch=16 iodepth_batch_complete_min=16");
    for scheduler in [SchedulerKind::None, SchedulerKind::MqDeadline, SchedulerKind::Bfq] {
        let mut setup = Setup::new(scheduler);
        let batches = run_under(&setup, &whole, 4, Nanos::from_micros(100));
        assert_eq!(batches.sizes(), [(64, 10)], "{scheduler}");
        assert_eq!(batches.job()["read"]["total_ios"], 160, "{scheduler}");
        assert_eq!(batches.outcome.end.since_start(), Nanos::from_micros(10 * 100));
        setup.plug = PlugLimits::OFF;
        let without = run_under(&setup, &whole, 4, Nanos::from_micros(100));
        assert_eq!(without.sizes()[0].0, 4, "{scheduler}: the first is alone");
    }
    assert_eq!(run(SEQUENTIAL).sizes(), [(4, 160)]);
}

/// One that is taken back makes room for one, which is not held back: fio submits 16, takes 1,
/// submits 1, takes 1.
#[test]
fn batch_is_whole_once_where_one_completion_is_waited_for() {
    let run = run(&format!("{SEQUENTIAL} iodepth_batch=16"));
    // All 16 are one command, and complete together: each makes room for one. 4 servers are idle.
    assert_eq!(run.commands[..2], [(Nanos::ZERO, 128), (Nanos::from_micros(100), 8)]);
    // A call with 16, and 144 with one.
    assert_eq!(run.job()["iodepth_submit"]["16"].as_f64(), Some(100.0 / 145.0));
}

/// Reads of a pause, or before a rate allows another, are not held back.
#[test]
fn nothing_waits_in_a_batch_while_its_job_sleeps() {
    let run = run("rw=randread iodepth=16 number_ios=6 iodepth_batch=4 rate_iops=1000");
    let times: Vec<_> = run.commands.iter().map(|(at, _)| at.as_nanos() / 1000).collect();
    assert_eq!(times, [0, 1000, 2000, 3000, 4000, 5000]);
    let paused = "rw=randread iodepth=16 number_ios=9 iodepth_batch=4 thinktime=1ms \
                  thinktime_blocks=6 thinktime_blocks_type=issue";
    let run = self::run(paused);
    let times: Vec<_> = run.commands.iter().map(|(at, _)| at.as_nanos() / 1000).collect();
    assert_eq!(times, [0, 0, 0, 0, 0, 0, 1000, 1000, 1000]);
}

/// Four servers of 100 µs are done with 4 reads at 100 µs and with 4 at 200 µs. Six are waited for,
/// so that all eight are taken back at 200 µs.
#[test]
fn latency_lasts_until_a_read_is_taken_back() {
    let run = run("rw=randread iodepth=8 number_ios=8 iodepth_batch_complete_min=6 \
                   iodepth_batch_complete_max=8");
    let clat = &run.job()["read"]["clat_ns"];
    assert_eq!([clat["min"].as_u64(), clat["max"].as_u64()], [Some(200_000); 2]);
    assert_eq!(run.job()["iodepth_complete"]["8"].as_f64(), Some(100.0));
    assert_eq!(run.job()["ctx"], 1, "it waits once");
}

/// Who polls is busy, and never sleeps.
#[test]
fn job_that_polls_has_the_processor_for_itself() {
    let run = run("rw=randread number_ios=10 iodepth=4 iodepth_batch_complete_min=0");
    let job = run.job();
    assert_eq!((job["ctx"].as_u64(), job["usr_cpu"].as_f64()), (Some(0), Some(100.0)));
    assert_eq!(run.outcome.end.since_start(), Nanos::from_micros(10 * 100), "one under way");
    assert_eq!(run.notes(), ["iodepth"]);
}

#[test]
fn batches_that_say_nothing_are_noted() {
    let all = "iodepth_batch=4 iodepth_batch_complete_min=2 iodepth_batch_complete_max=4 \
               iodepth_low=2";
    let noted = |options: &str| -> Vec<String> {
        let run = run(&format!("number_ios=4 {all} {options}"));
        run.notes().into_iter().map(str::to_owned).collect()
    };
    assert_eq!(noted("iodepth=8"), [""; 0]);
    for one in ["iodepth=1", "ioengine=psync", "ioengine=mmap", "direct=0 iodepth=8"] {
        assert_eq!(noted(one).iter().filter(|name| *name != "iodepth").count(), 4, "{one}");
    }
    assert_eq!(noted("iodepth=8 ioengine=posixaio"), ["iodepth_batch"]);
    assert_eq!(noted("iodepth=8 ioengine=null").len(), 3, "all but iodepth_batch");
    assert_eq!(noted("iodepth=8 iodepth_batch_complete_max=1"), ["iodepth_batch_complete_max"]);
}

/// The classes of a distribution in fio's report, in percent, where they are not 0.
fn distribution(job: &Value, key: &str) -> BTreeSet<String> {
    let classes = job[key].as_object().expect("an object").iter();
    let percent = |(name, part): (&String, &Value)| (name.clone(), part.as_f64().expect("percent"));
    let told = classes.map(percent).filter(|(_, part)| *part > 0.0);
    told.map(|(class, part)| format!("{class}={part:.1}")).collect()
}

fn assert_near(ours: f64, fios: &str, percent: f64, line: &str) {
    let fios: f64 = fios.parse().expect("a number");
    assert!((ours - fios).abs() <= fios * percent / 100.0 + 1.0, "{line}: {ours}");
}

/// fio's machine has times of its own, such as 50 µs to wake up; ours are exact. Of latencies those
/// are compared that fio takes as we do: what is under way at the end of a job is all taken back
/// with the last of it, where we take each as it completes unless the job has batches.
#[test]
fn batches_are_those_of_fio_on_the_same_servers() {
    let lines = include_str!("../data/fio-3.33/batches.txt").lines();
    let lines: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() > 20, "{lines:?}");
    for line in lines {
        let (job, fios) = line.split_once(" = ").expect("what fio did");
        let (servers, options) = job.split_once(' ').expect("servers and options");
        let (count, us) = servers.split_once('x').unwrap_or(("1", "1us"));
        let service = us.strip_suffix("us").expect("a unit").parse().expect("a number");
        let engine = if servers == "null" { " ioengine=null" } else { "" };
        let run = run_under(
            &Setup::new(SchedulerKind::None),
            &format!("rw=randread {options}{engine}"),
            count.parse().expect("a number"),
            Nanos::from_micros(service),
        );
        let job = run.job();
        for told in fios.split("; ") {
            let (name, value) = told.split_once(' ').expect("a name and a value");
            let ours = match name {
                "clat" if !options.contains("batch") => continue,
                "clat" => {
                    let mean = job["read"]["clat_ns"]["mean"].as_f64().expect("a number");
                    assert_near(mean / 1000.0, value, 4.0, line);
                    continue;
                }
                "took" => {
                    let runtime = job["read"]["runtime"].as_f64().expect("a number");
                    assert_near(runtime, value, 4.0, line);
                    continue;
                }
                of => distribution(&job, &format!("iodepth_{of}")),
            };
            let fios = value.split(' ').map(str::to_owned).collect();
            assert_eq!(ours, fios, "{name} of {line}");
        }
    }
}
