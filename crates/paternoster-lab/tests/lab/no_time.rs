//! I/O that takes no time: a job that is to run for a while is refused, and one that is not ends.

use crate::common::jobs::jobs;
use paternoster::{Nanos, SchedulerKind, Sector};
use paternoster_lab::fio::DataDirection;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{JobRunError, Outcome, PageCacheParameters, run_jobs};
use paternoster_model::{Model, Room, Servers, open_device};

const DIRECT: &str = "ioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nsize=1m\n";

/// A device of one server that takes so long for any command.
fn server(fixed: Nanos) -> Servers {
    let end = Sector(1 << 31);
    Servers::constant(1, Room { depth: 64, end }, fixed, Nanos::ZERO)
}

fn run_with(
    text: &str,
    page_cache: PageCacheParameters,
    device: impl Model,
) -> Result<Outcome, JobRunError> {
    run_jobs(&jobs(text), &Setup::new(SchedulerKind::None), page_cache, device, |_| {})
}

fn run(text: &str, device: impl Model) -> Result<Outcome, JobRunError> {
    run_with(text, PageCacheParameters::default(), device)
}

fn refused(outcome: Result<Outcome, JobRunError>) -> String {
    outcome.expect_err("its I/O takes no time").to_string()
}

const AT_ONCE: &str = "began more than 1000000 I/Os at one instant, 0 ns after the begin of the \
                       run: they take no time, and its runtime would never be over.";

#[test]
fn job_that_never_ends_is_refused_by_its_place() {
    let text = "[n]\nioengine=null\nrw=read\nbs=4k\nsize=1m\nruntime=1s\ntime_based\n";
    let expected = format!("test.fio:3:1: job n {AT_ONCE}");
    let found = refused(run(text, server(Nanos::from_micros(80))));
    assert!(found.starts_with(&expected), "{found}");
    // Another job, whose I/O takes time, does not hide it.
    let both = format!("{text}[reader]\n{DIRECT}runtime=1s\ntime_based\n");
    let found = refused(run(&both, server(Nanos::from_micros(80))));
    assert!(found.starts_with(&expected), "{found}");
}

#[test]
fn device_without_time_is_found_with_direct_and_with_buffered_io() {
    let text = format!("[job]\n{DIRECT}runtime=1s\ntime_based\n");
    let found = refused(run(&text, server(Nanos::ZERO)));
    assert!(found.starts_with(&format!("test.fio:4:1: job job {AT_ONCE}")), "{found}");
    let page_cache = PageCacheParameters { copy_page: Nanos::ZERO, ..Default::default() };
    let text = text.replace("direct=1\n", "invalidate=0\n");
    let found = refused(run_with(&text, page_cache, server(Nanos::ZERO)));
    assert!(found.starts_with(&format!("test.fio:4:1: job job {AT_ONCE}")), "{found}");
}

/// 2 GiB in blocks of 512 B are 4,194,304 I/Os.
#[test]
fn job_that_its_work_ends_does_all_of_it_at_one_instant() {
    let text = "[n]\nioengine=null\nrw=read\nbs=512\nsize=2g\n";
    let outcome = run(text, server(Nanos::from_micros(80))).expect("it ends");
    let read = &outcome.results[0].directions[DataDirection::Read as usize];
    assert_eq!((read.ios, outcome.end.since_start()), (1 << 22, Nanos::ZERO));
}

/// With a pace time goes by: 1000 I/Os a second for a second.
#[test]
fn job_with_a_pace_runs_for_its_time() {
    let text = "[n]\nioengine=null\nrw=read\nsize=1m\nruntime=1s\ntime_based\nrate_iops=1000\n";
    let outcome = run(text, server(Nanos::ZERO)).expect("it ends");
    let ios = outcome.results[0].directions[DataDirection::Read as usize].ios;
    assert!((1000..=1001).contains(&ios), "{ios}");
}

#[test]
fn disk_takes_no_trims() {
    let device = || open_device("hdd-7200", 1).expect("it comes along");
    let text = format!("[trims]\n{}", DIRECT.replace("randread", "randtrim"));
    let expected = "test.fio:4:1: job trims has trims, which the device does not take";
    assert_eq!(refused(run(&text, device())), expected);
    assert!(run(&format!("[reads]\n{DIRECT}"), device()).is_ok());
}
