//! Jobs that end when they are steady, against what can be worked out by hand.

use crate::common::jobs::{jobs, run_on_servers};
use paternoster_lab::fio::Jobs;
use paternoster_lab::result::{FioReport, Header, Steady};
use paternoster_lab::threads::Outcome;
use serde_json::Value;

/// One server of 100 µs: 10,000 reads a second.
fn run(jobs: &Jobs) -> Outcome {
    run_on_servers(jobs, 1)
}

const READS: &str = "[global]\nioengine=psync\ndirect=1\nrw=randread\nbs=4k\nsize=1g\n\
                     time_based\n\
                     runtime=12500ms\nfilename=/dev/a\n";

fn reader(options: &str) -> Outcome {
    run(&jobs(&format!("{READS}[job]\n{options}")))
}

/// When it ended, in ms; a read of 100 µs of each job may be under way when the checks are over.
fn millis(outcome: &Outcome) -> u64 {
    let nanos = outcome.end.since_start().as_nanos();
    assert!(nanos % 1_000_000 <= 200_000, "{nanos}");
    nanos / 1_000_000
}

fn steady(outcome: &Outcome, job: usize) -> &Steady {
    outcome.results[job].steady.as_ref().expect("it was looked at")
}

fn ios_per_s(outcome: &Outcome, job: usize) -> Vec<u64> {
    steady(outcome, job).samples.iter().map(|sample| sample.ios_per_s).collect()
}

/// The first second is the ramp, two more are before the checks, and three are looked at.
#[test]
fn steady_job_ends_when_its_checks_are_full() {
    for criterion in ["iops:1", "iops_slope:0.1%", "bw:1", "bw_slope:1"] {
        let options = format!("ss={criterion}\nss_dur=3\nss_ramp=2\nramp_time=1s\n");
        let outcome = reader(&options);
        assert_eq!(millis(&outcome), 6000, "{criterion}");
        assert!(steady(&outcome, 0).is_attained, "{criterion}");
        assert_eq!(ios_per_s(&outcome, 0), [10_000; 3], "{criterion}");
        assert_eq!(outcome.results[0].error, None);
    }
}

/// The report has the keys of fio's, of which 3.33 wrote
/// `"ss" : "iops:10.000000", "duration" : 3, "attained" : 1, "criterion" : "0.666667" ...`.
#[test]
fn report_says_how_steady_a_job_was() {
    let jobs =
        jobs(&format!("{READS}[job]\nss=iops:10\nss_dur=3\n[other]\nnew_group\nruntime=1\n"));
    let results = run(&jobs).results;
    let json = FioReport::new(Header { unix_ms: 0 }, &jobs, &results, vec![]).to_json();
    let report: Value = serde_json::from_str(&json).expect("it is JSON");
    let told = &report["jobs"][0]["steadystate"];
    let keys: Vec<_> = told.as_object().expect("an object").keys().collect();
    // Sorted, as a test reads them.
    let fios = ["attained", "criterion", "data", "duration", "max_deviation", "slope", "ss"];
    assert_eq!(keys, fios);
    let keys: Vec<_> = told["data"].as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["bw", "bw_mean", "iops", "iops_mean"]);
    assert_eq!((told["ss"].as_str(), told["duration"].as_u64()), (Some("iops:10.000000"), Some(3)));
    assert_eq!(told["attained"].as_u64(), Some(1));
    // Both read in the first second, in turns.
    let iops = |index: usize| told["data"]["iops"][index].as_u64();
    assert_eq!([iops(1), iops(2)], [Some(10_000); 2]);
    assert!(report["jobs"][1].get("steadystate").is_none());
}

/// A second of reads and a second without: 10,000, 0, 10,000 and 0. The mean is 5,000, from which
/// each is 5,000 away. The line of least squares falls by 2,000 from check to check, 40 % of the
/// mean, and rises by as much a second later.
#[test]
fn job_whose_rate_changes_by_more_than_the_limit_never_is_steady() {
    let turns = "thinktime=1s\nthinktime_blocks=10000\nss_dur=4\n";
    for (limit, is_steady) in [
        ("iops:5000", false),
        ("iops:5001", true),
        ("iops:99%", false),
        ("iops:101%", true),
        ("bw_slope:39%", false),
        ("bw_slope:41%", true),
        ("iops_slope:1999", false),
        ("iops_slope:2001", true),
    ] {
        let outcome = reader(&format!("{turns}ss={limit}\n"));
        assert_eq!(millis(&outcome), if is_steady { 4000 } else { 12_500 }, "{limit}");
        assert_eq!(steady(&outcome, 0).is_attained, is_steady, "{limit}");
        assert_eq!(ios_per_s(&outcome, 0), [10_000, 0, 10_000, 0], "{limit}");
    }
}

/// What is steady is below the limit, and 0 is not below 0: so it was with fio 3.33.
#[test]
fn limit_of_0_is_never_met() {
    let outcome = reader("ss=iops:0\nss_dur=2\n");
    assert_eq!((millis(&outcome), ios_per_s(&outcome, 0)), (12_500, vec![10_000; 2]));
}

/// The criterion unless told is a slope of 0.01 %.
#[test]
fn steady_state_has_fios_default() {
    let outcome = reader("ss_dur=5\nss_interval=500ms\n");
    assert_eq!((millis(&outcome), steady(&outcome, 0).rule.name()), (5000, "iops_slope"));
    assert_eq!(ios_per_s(&outcome, 0), [10_000; 10]);
}

/// Two jobs share the server, of which one pauses every other second. Together they read as fast as
/// the server is; alone each is far from steady. fio too tells of the sum, and ends all of a group.
#[test]
fn jobs_that_are_told_as_one_are_steady_as_one() {
    let text = |grouped: &str| {
        format!(
            "{READS}{grouped}ss=iops:10\nss_dur=3\nss_ramp=1500ms\nss_interval=500ms\n[one]\n\
             [other]\nthinktime=1s\nthinktime_blocks=5000\n"
        )
    };
    let outcome = run(&jobs(&text("group_reporting\n")));
    assert_eq!(millis(&outcome), 4500);
    for job in [0, 1] {
        let ios = ios_per_s(&outcome, job);
        assert!(ios.iter().all(|ios| (9_998..=10_002).contains(ios)), "{ios:?}");
        assert!(steady(&outcome, job).is_attained);
    }
    let outcome = run(&jobs(&text("")));
    assert_eq!(millis(&outcome), 12_500);
    assert!(!steady(&outcome, 0).is_attained && !steady(&outcome, 1).is_attained);
}

/// It ended before there were as many checks as are looked at.
#[test]
fn job_that_ends_before_is_told_with_the_checks_it_had() {
    let outcome = reader("ss=iops:10\nss_dur=6\nruntime=4500ms\n");
    assert_eq!(ios_per_s(&outcome, 0), [10_000; 4]);
    assert!(!steady(&outcome, 0).is_attained);
}
