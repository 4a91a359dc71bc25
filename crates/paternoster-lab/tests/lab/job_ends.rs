//! What ends a job beside its work and its runtime, against what can be worked out by hand.

use crate::common::jobs::{jobs, run_on_servers as run};
use paternoster::Nanos;
use paternoster_lab::fio::{DataDirection, LeastRate};
use paternoster_lab::result::{FioReport, Header, JobError, table};
use paternoster_lab::threads::Outcome;

const READS: &str =
    "[global]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\ntime_based\nfilename=/dev/a\n";

/// One job that reads past the page cache; it has no end but those options.
fn reader(options: &str, servers: u32) -> Outcome {
    run(&jobs(&format!("{READS}runtime=4s\n[job]\n{options}")), servers)
}

fn reads(outcome: &Outcome, job: usize) -> u64 {
    outcome.results[job].directions[DataDirection::Read as usize].ios
}

fn micros(outcome: &Outcome) -> u64 {
    outcome.end.since_start().as_nanos() / 1000
}

const READ: DataDirection = DataDirection::Read;

/// Eight reads at once on four servers of 100 µs: four take 100 µs, and four, which wait for them,
/// 200 µs. Then the job ends, with the four reads that came after the first four. fio 3.33 did the
/// same twelve reads on four servers of 10 ms, with `max_latency=15ms`.
#[test]
fn read_that_takes_too_long_ends_the_job() {
    let outcome = reader("ioengine=libaio\niodepth=8\nmax_latency=150us\n", 4);
    let (took, allowed) = (Nanos::from_micros(200), Nanos::from_micros(150));
    let error = JobError::Latency { direction: READ, took, allowed };
    assert_eq!(outcome.results[0].error, Some(error));
    assert_eq!((reads(&outcome, 0), micros(&outcome)), (12, 300));
    let bound_of_writes = "ioengine=libaio\niodepth=8\nmax_latency=,150us\nruntime=1ms\n";
    assert_eq!(reader(bound_of_writes, 4).results[0].error, None);
    let just_allowed = "ioengine=libaio\niodepth=8\nmax_latency=200us\nruntime=1ms\n";
    assert_eq!(reader(just_allowed, 4).results[0].error, None);
}

/// Each read takes too long; the first that counts completes as the ramp ends.
#[test]
fn latency_is_not_bound_before_the_ramp_is_over() {
    let outcome = reader("ioengine=psync\nmax_latency=99us\nramp_time=1s\n", 1);
    assert!(outcome.results[0].error.is_some());
    assert_eq!((reads(&outcome, 0), micros(&outcome)), (1, 1_000_000));
}

/// A job that fails does not make its writes durable. fio 3.33 did no sync either.
#[test]
fn job_that_fails_does_not_sync_at_its_end() {
    let text =
        "[job]\nioengine=psync\ndirect=1\nrw=write\nsize=1m\nend_fsync=1\nfsync_on_close=1\n";
    let outcome = run(&jobs(&format!("{text}max_latency=99us\n")), 1);
    assert_eq!(outcome.results[0].directions[DataDirection::Write as usize].ios, 1);
    assert_eq!(outcome.results[0].syncs.moments().count(), 0);
}

/// 10,000 reads a second are 10,000 and not 10,001. fio 3.33 does not look at the first 2 s, and
/// at cycles of 1 s from then on.
#[test]
fn job_that_reads_too_little_in_a_cycle_ends() {
    let outcome = reader("ioengine=psync\nrate_iops_min=10001\n", 1);
    let least = LeastRate::Ios(10_001);
    let error = JobError::Rate { direction: READ, found: 10_000, least };
    assert_eq!(outcome.results[0].error, Some(error));
    assert_eq!((reads(&outcome, 0), micros(&outcome)), (30_000, 3_000_000));
    let outcome = reader("ioengine=psync\nrate_iops_min=10000\n", 1);
    assert_eq!((outcome.results[0].error, micros(&outcome)), (None, 4_000_000));
}

/// Reads of 4 KiB, 40,960,000 bytes a second. The 2 s are counted from the end of the ramp, as fio
/// 3.33 counts them.
#[test]
fn bytes_are_measured_over_cycles_behind_the_ramp() {
    let options = "ioengine=psync\nrate_min=40960001\nrate_cycle=300\nramp_time=500ms\n";
    let outcome = reader(options, 1);
    let least = LeastRate::Bytes(40_960_001);
    let error = JobError::Rate { direction: READ, found: 40_960_000, least };
    assert_eq!(outcome.results[0].error, Some(error));
    assert_eq!(micros(&outcome), 2_800_000);
    let of_writes = "ioengine=psync\nrate_min=,1g\n";
    assert_eq!(reader(of_writes, 1).results[0].error, None, "it does not write");
}

/// From 3.5 s on, two jobs share the server: 7,500 reads in the fourth second, and 8,750 a second
/// since the third.
#[test]
fn each_cycle_is_measured_for_itself() {
    let text = format!(
        "{READS}ioengine=psync\nruntime=6s\n[first]\nrate_iops_min=8000\n\
         [second]\nstartdelay=3500ms\n"
    );
    let outcome = run(&jobs(&text), 1);
    let Some(JobError::Rate { found, .. }) = outcome.results[0].error else {
        panic!("{:?}", outcome.results[0].error)
    };
    assert!((7499..=7501).contains(&found), "{found}");
    let ran_us = outcome.results[0].runtime.as_nanos() / 1000;
    assert!((4_000_000..=4_000_100).contains(&ran_us), "{ran_us}");
}

/// The first job ends after its first read, and takes the other with it only where it says so.
#[test]
fn error_ends_other_jobs_if_that_is_said() {
    let text = |option: &str| {
        format!("{READS}ioengine=psync\nruntime=1s\n[first]\nmax_latency=99us\n{option}[other]\n")
    };
    let outcome = run(&jobs(&text("")), 2);
    assert_eq!((reads(&outcome, 0), reads(&outcome, 1)), (1, 10_000));
    let outcome = run(&jobs(&text("exitall_on_error\n")), 2);
    assert_eq!(reads(&outcome, 0), 1);
    assert!((1..=2).contains(&reads(&outcome, 1)), "{}", reads(&outcome, 1));
    assert_eq!(outcome.results[1].error, None);
}

#[test]
fn error_is_in_the_report_and_below_the_table() {
    let text = format!("{READS}ioengine=psync\n[late]\nmax_latency=99us\n[slow]\nrate_min=1g\n");
    let jobs = jobs(&format!("{text}runtime=4s\n").replace("time_based", "io_size=200m"));
    let results = run(&jobs, 2).results;
    let json = FioReport::new(Header { unix_ms: 0 }, &jobs, &results, vec![]).to_json();
    let report: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let errors = [0, 1].map(|job| report["jobs"][job]["error"].as_u64());
    assert_eq!(errors, [Some(110), Some(5)]);
    let told = table(&jobs, &results);
    let late = "late ended with error 110: a read took 100 us: max_latency allows 99.0 us\n";
    let slow = "slow ended with error 5: reads had 40960000 bytes a second: rate_min wants \
                1073741824\n";
    assert!(told.ends_with(&format!("{late}{slow}")), "{told}");
}

/// Three jobs are called `j`, of which the third has no bound for reads. `other` is the only one of
/// its name.
#[test]
fn clones_that_end_with_an_error_are_numbered() {
    let text = format!(
        "{READS}ioengine=psync\nruntime=1s\ngroup_reporting\nmax_latency=99us\n[j]\nnumjobs=2\n\
         [other]\n[last]\nname=j\nmax_latency=0\n"
    );
    let jobs = jobs(&text);
    let told = table(&jobs, &run(&jobs, 4).results);
    let ended: Vec<_> = told.lines().filter_map(|line| line.split_once(" ended with")).collect();
    let names: Vec<_> = ended.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["j #1", "j #2", "other"], "{told}");
}

/// 256 reads of 100 us end long before 10 s; a ramp of 1 ms leaves 246 of them. The table says it
/// of the first alone.
#[test]
fn job_that_ends_before_its_ramp_is_named_below_the_table() {
    let text = "[global]\ndirect=1\nsize=1m\n[short]\nramp_time=10s\n[long]\nramp_time=1ms\n";
    let jobs = jobs(text);
    let outcome = run(&jobs, 2);
    assert_eq!(reads(&outcome, 0), 0);
    let told = table(&jobs, &outcome.results);
    assert!(told.ends_with("short ended before its ramp_time did: none of it counts\n"), "{told}");
    assert!(!told.contains("long ended"), "{told}");
}
