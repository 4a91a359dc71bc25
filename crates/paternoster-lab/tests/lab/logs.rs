//! The logs of jobs: their lines by hand, and beside those that fio wrote.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use crate::common::jobs::jobs;
use paternoster::{Nanos, SchedulerKind, Sector};
use paternoster_lab::fio::Jobs;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{JobRunError, Outcome, PageCacheParameters, Sinks, run_jobs_into};
use paternoster_model::{Room, Servers};

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics with it").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that takes so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("it is full"));
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A device with so many servers, each of which does one thing in that time.
#[derive(Clone, Copy)]
struct Device(u32, Nanos);

const READ_80_US: Device = Device(1, Nanos::from_micros(80));
const READ_30_MS: Device = Device(1, Nanos::from_millis(30));

fn run_on(
    sinks: Sinks,
    jobs: &Jobs,
    Device(servers, fixed): Device,
) -> Result<Outcome, JobRunError> {
    let device =
        Servers::constant(servers, Room { depth: 64, end: Sector(1 << 31) }, fixed, Nanos::ZERO);
    let setup = Setup::new(SchedulerKind::None);
    run_jobs_into(sinks, jobs, &setup, PageCacheParameters::default(), device, |_| {})
}

/// The files that jobs with these options write, by their names.
fn written(text: &str, device: Device) -> BTreeMap<String, String> {
    let jobs = jobs(text);
    let mut files = BTreeMap::new();
    let sinks = Sinks::open(&jobs, |path| {
        let file = Memory::default();
        assert!(files.insert(path.to_owned(), file.clone()).is_none(), "{path} is opened twice");
        Ok::<_, io::Error>(Box::new(file))
    });
    run_on(sinks.expect("memory opens"), &jobs, device).expect("a run");
    let text = |file: Memory| String::from_utf8(file.0.lock().expect("no other").clone());
    files.into_iter().map(|(name, file)| (name, text(file).expect("text"))).collect()
}

/// The same of a job `j` with these options, separated by spaces.
fn log(options: &str, device: Device) -> BTreeMap<String, String> {
    written(&format!("[j]\nfilename=/dev/a\ndirect=1\n{}\n", options.replace(' ', "\n")), device)
}

/// Of reads of 80 µs, one after the other, the sixth to the twelfth end at 480, 560, 640, 720, 800,
/// 880 and 960 µs, and the thirteenth at 1040. Each of 4096 bytes is 51,200 × 1000 bytes a second.
#[test]
fn each_io_has_a_line_with_the_time_in_milliseconds() {
    let files =
        log("rw=read number_ios=13 write_lat_log=l write_bw_log=b write_iops_log", READ_80_US);
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["b_bw.1.log", "j_iops.1.log", "l_clat.1.log", "l_lat.1.log", "l_slat.1.log"]
    );
    let lines = |value: &str| {
        format!("{}1, {value}, 0, 4096, 0\n", format!("0, {value}, 0, 4096, 0\n").repeat(12))
    };
    assert_eq!(files["l_clat.1.log"], lines("80000"));
    assert_eq!(files["l_lat.1.log"], lines("80000"));
    assert_eq!(files["b_bw.1.log"], lines("51200"));
    assert_eq!(files["j_iops.1.log"], lines("1"));
    // The calls of this engine wait: submissions are not told of.
    assert_eq!(files["l_slat.1.log"], "");
}

/// Two reads are under way on one server of 80 µs: the first waits 80 µs, each other 160 µs.
#[test]
fn submissions_of_an_engine_that_does_not_wait_have_lines() {
    let files = log("ioengine=libaio iodepth=2 rw=read number_ios=3 write_lat_log=l", READ_80_US);
    assert_eq!(files["l_slat.1.log"], "0, 0, 0, 4096, 0\n".repeat(3));
    let lines = "0, 80000, 0, 4096, 0\n0, 160000, 0, 4096, 0\n0, 160000, 0, 4096, 0\n";
    assert_eq!(files["l_clat.1.log"], lines);
    assert_eq!(files["l_lat.1.log"], lines);
}

#[test]
fn lines_have_positions_and_priorities_where_that_is_said() {
    let first = |options: &str| {
        let options = format!("rw=write offset=1m number_ios=1 write_lat_log=l {options}");
        log(&options, READ_80_US)["l_lat.1.log"].clone()
    };
    assert_eq!(first("bs=8k"), "0, 80000, 1, 8192, 0\n");
    assert_eq!(first("log_offset=1"), "0, 80000, 1, 4096, 1048576, 0\n");
    assert_eq!(first("log_prio=1"), "0, 80000, 1, 4096, 0x0000\n");
    // Best effort is class 2, above 13 bits.
    assert_eq!(first("log_prio=1 log_offset=1 prio=5"), "0, 80000, 1, 4096, 1048576, 0x4005\n");
    // Without the option it is told whether it is real time, class 1.
    assert_eq!(first("prioclass=1 prio=4"), "0, 80000, 1, 4096, 1\n");
    assert_eq!(first("prioclass=3"), "0, 80000, 1, 4096, 0\n");
    // All I/Os have a priority of their own: real time, level 2.
    let own = "ioengine=libaio cmdprio_percentage=100 cmdprio=2 log_prio=1 prio=5";
    assert_eq!(first(own), "0, 80000, 1, 4096, 0x2002\n");
}

/// A trim, a write, a trim ... of 30 ms each: trims end at 30, 90, 150, 210, 270 ms, writes at 60,
/// 120, 180, 240, 300 ms. A line of a latency comes with the first I/O of its direction behind a
/// multiple of 100 ms, and at the end. Windows of the bandwidth end together.
#[test]
fn directions_are_averaged_by_themselves() {
    let options = "rw=trimwrite number_ios=5 write_lat_log=l write_bw_log=l log_avg_msec=100";
    let files = log(options, READ_30_MS);
    let lines = |lines: &[(u32, u32, u32)]| -> String {
        let line = |(time, value, direction)| format!("{time}, {value}, {direction}, 0, 0\n");
        lines.iter().copied().map(line).collect()
    };
    let at = [(120, 1), (150, 2), (210, 2), (240, 1), (300, 1), (300, 2)];
    assert_eq!(files["l_lat.1.log"], lines(&at.map(|(time, to)| (time, 30_000_000, to))));
    // One I/O of 4 KiB in 100 ms is 40 KiB a second.
    let windows =
        [(100, 40, 1), (100, 80, 2), (200, 80, 1), (200, 40, 2), (300, 40, 1), (300, 80, 2)];
    assert_eq!(files["l_bw.1.log"], lines(&windows));
}

/// Reads of 30 ms. Over 100 ms, the lines are at the first I/O that ends at 100 or later, 200 or
/// later ...: at 120, 210, 300 ms, and at the end, 330 ms. Windows of bandwidth and rate end at
/// 100, 200 and 300 ms with 3 reads each (30, 60, 90; 120, 150, 180; 210, 240, 270): 30 a second,
/// and 3 × 4 KiB in 100 ms.
#[test]
fn values_are_averaged_over_time() {
    let options = "rw=read number_ios=11 write_lat_log=l write_bw_log=l write_iops_log=l \
                   log_avg_msec=100 log_offset=1";
    let files = log(options, READ_30_MS);
    let lines = |times: &[u32], value| -> String {
        let line = |time| format!("{time}, {value}, 0, 0, 0, 0\n");
        times.iter().map(line).collect()
    };
    assert_eq!(files["l_lat.1.log"], lines(&[120, 210, 300, 330], 30_000_000));
    assert_eq!(files["l_bw.1.log"], lines(&[100, 200, 300], 120));
    assert_eq!(files["l_iops.1.log"], lines(&[100, 200, 300], 30));
}

/// Three reads are under way on one server of 30,000,001 ns, which end after one, two, three, three
/// ... times that. Up to the first that ends behind 100 ms are four, with a mean of 9 / 4 times
/// that, 67,500,002.25 ns; those of the other two are 90,000,003 ns.
#[test]
fn average_or_most_of_the_latencies_is_told() {
    let options = "ioengine=libaio iodepth=3 rw=read number_ios=6 write_lat_log=l log_avg_msec=100";
    let first = |options: &str| {
        let device = Device(1, Nanos::new(30_000_001));
        log(options, device)["l_clat.1.log"].clone()
    };
    assert_eq!(first(options), "120, 67500002, 0, 0, 0\n180, 90000003, 0, 0, 0\n");
    let most = first(&format!("{options} log_max_value=1"));
    assert_eq!(most, "120, 90000003, 0, 0, 0\n180, 90000003, 0, 0, 0\n");
    // Of two, one and a half times 30,000,001 ns, a half is rounded up.
    let two = first(&options.replace("number_ios=6", "number_ios=2"));
    assert_eq!(two, "60, 45000002, 0, 0, 0\n");
}

/// Reads of 30 ms, the first at 0, each 1000 ms behind the end of the one before.
#[test]
fn time_without_io_has_no_lines() {
    let options = "rw=read number_ios=3 thinktime=1s write_iops_log=l log_avg_msec=100";
    let files = log(options, READ_30_MS);
    // They end at 30, 1060 and 2090 ms.
    let lines = ["100, 10, 0, 0, 0", "1100, 10, 0, 0, 0", "2100, 10, 0, 0, 0"];
    assert_eq!(files["l_iops.1.log"].lines().collect::<Vec<_>>(), lines);
}

/// Windows are the shorter of `log_avg_msec` and `bwavgtime` or `iopsavgtime`, if that is logged.
#[test]
fn shorter_time_is_that_of_a_sample_and_of_a_line() {
    let options = "rw=read number_ios=10 write_bw_log=l log_avg_msec=150 bwavgtime=60 \
                   iopsavgtime=60";
    let jobs = jobs(&format!("[j]\nfilename=/dev/a\ndirect=1\n{}\n", options.replace(' ', "\n")));
    let reports = &jobs.jobs[0].reports;
    assert_eq!(reports.bandwidth_window, Nanos::from_millis(60));
    assert_eq!(reports.iops_window, Nanos::from_millis(60));
    let times = |options: &str| -> Vec<String> {
        let files = log(options, READ_30_MS);
        let lines = files["l_bw.1.log"].lines();
        lines.map(|line| line.split(',').next().expect("a time").to_owned()).collect()
    };
    assert_eq!(times(options), ["60", "120", "180", "240", "300"]);
    assert_eq!(times(&options.replace("=60", "=600")), ["150", "300"]);
    // Without any time for samples, each I/O has a line.
    assert_eq!(times(&options.replace("bwavgtime=60", "bwavgtime=0")).len(), 10);
}

/// One server of 30 ms ends a read each 30 ms, at any depth. The depth of 1 is met, looked at with
/// the read that ends behind 250 ms, at 270 ms; that of 2 is not, at 540 ms, and is left at 570 ms;
/// that of 1 is found at 840 ms, in the middle of a line, and kept until the read of 1110 ms, the
/// 37th. The report is of the last nine reads alone.
#[test]
fn search_for_a_depth_leaves_no_hole_in_a_log() {
    let options = "ioengine=libaio iodepth=4 rw=randread size=1g time_based runtime=10s \
                   latency_target=40ms latency_window=250ms write_iops_log=l write_bw_log=l \
                   log_avg_msec=100";
    let files = log(options, READ_30_MS);
    let in_window = |window: u32| (1..=37).filter(|read| read * 30 / 100 == window).count();
    let lines = |by: usize| -> String {
        let line =
            |window| format!("{}, {}, 0, 0, 0\n", 100 * (window + 1), in_window(window) * 10 * by);
        (0..11).map(line).collect()
    };
    assert_eq!(files["l_iops.1.log"], lines(1));
    assert_eq!(files["l_bw.1.log"], lines(4), "each is of 4 KiB");
}

/// The ramp of 100 ms has three reads of 30 ms and most of a fourth, which ends at 120 ms. It is
/// the first of five that count: fio 3.33 wrote five lines too.
#[test]
fn ramp_has_no_lines_and_times_begin_behind_it() {
    let options = "rw=read number_ios=5 ramp_time=100ms write_iops_log=l startdelay=5";
    let files = log(options, READ_30_MS);
    let lines = [20, 50, 80, 110, 140].map(|ms| format!("{ms}, 1, 0, 4096, 0\n")).concat();
    assert_eq!(files["l_iops.1.log"], lines);
}

#[test]
fn jobs_are_counted_from_one_and_may_share_a_log() {
    let text = "[global]\nfilename=/dev/a\ndirect=1\nnumber_ios=1\nwrite_iops_log\nrw=read\n\
                [a]\nnumjobs=2\n[b]\nstonewall\n";
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    let own = written(text, READ_80_US);
    assert_eq!(names(&own), ["a_iops.1.log", "a_iops.2.log", "b_iops.3.log"]);
    let shared =
        written(&text.replace("write_iops_log", "write_iops_log=x\nper_job_logs=0"), READ_80_US);
    assert_eq!(names(&shared), ["x_iops.log"]);
    assert_eq!(shared["x_iops.log"], "0, 1, 0, 4096, 0\n".repeat(3));
}

#[test]
fn null_engine_takes_no_time_and_has_no_bandwidth() {
    let files =
        log("ioengine=null rw=read number_ios=2 write_lat_log=l write_bw_log=l", READ_80_US);
    assert_eq!(files["l_clat.1.log"], "0, 0, 0, 4096, 0\n".repeat(2));
    assert_eq!(files["l_bw.1.log"], "");
}

/// As each line goes out when it comes, one that cannot be written ends the run.
#[test]
fn log_that_cannot_be_written_is_told_and_ends_the_run() {
    let text = "[j]\nfilename=/dev/a\ndirect=1\nrw=read\ntime_based\nruntime=3650d\n\
                write_iops_log=l\n";
    let jobs = jobs(text);
    let sinks = Sinks::open(&jobs, |_| Ok::<_, io::Error>(Box::new(Full(100_000))));
    let error = run_on(sinks.expect("it opens"), &jobs, READ_80_US).expect_err("it is full");
    assert_eq!(error.to_string(), "cannot write l_iops.1.log: it is full");
    let opened = Sinks::open(&jobs, |path| Err(format!("{path} is closed")));
    assert_eq!(opened.expect_err("none opens"), "l_iops.1.log is closed");
}

/// What fio 3.33 logged of reads and writes of 33 ms, and a little more each. Ours take exactly 33.
#[test]
fn logs_are_those_that_fio_wrote_of_the_same() {
    let seen = include_str!("../data/fio-3.33/logs.txt");
    let seen = seen.lines().filter(|line| !line.starts_with('#'));
    let (mut cases, mut files) = (0, 0);
    let mut ours: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut file = String::new();
    for line in seen {
        if let Some(name) = line.strip_prefix("- ") {
            files += 1;
            file = name.to_owned();
            assert!(ours.contains_key(name), "{name} is not written: {:?}", ours.keys());
        } else if let Some(theirs) = line.strip_prefix("  ") {
            let lines = ours.get_mut(&file).expect("it is there");
            assert!(!lines.is_empty(), "{file}: {theirs} is missing");
            assert_alike(theirs, &lines.remove(0));
        } else {
            assert!(ours.values().all(Vec::is_empty), "fio had fewer lines: {ours:?}");
            cases += 1;
            let logs = log(line, Device(8, Nanos::from_millis(33))).into_iter();
            ours = logs
                .map(|(name, text)| (name, text.lines().map(str::to_owned).collect()))
                .collect();
        }
    }
    assert!(ours.values().all(Vec::is_empty), "fio had fewer lines: {ours:?}");
    assert_eq!((cases, files), (14, 39));
}

/// The time is within 2 ms, the value within 3 percent, and the rest is the same.
fn assert_alike(theirs: &str, ours: &str) {
    let fields = |line: &str| line.split(", ").map(str::to_owned).collect::<Vec<_>>();
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let (t, o) = (fields(theirs), fields(ours));
    assert_eq!(t.len(), o.len(), "{theirs} | {ours}");
    assert!((number(&t[0]) - number(&o[0])).abs() <= 2.0, "{theirs} | {ours}");
    assert!((number(&t[1]) / number(&o[1]) - 1.0).abs() <= 0.03, "{theirs} | {ours}");
    assert_eq!(t[2..], o[2..], "{theirs} | {ours}");
}
