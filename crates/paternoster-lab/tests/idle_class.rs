//! What the idle class gets beside a busy class of its group, under `wfq`.

#[path = "common/jobs.rs"]
mod jobs;

use jobs::jobs;
use paternoster::SchedulerKind;
use paternoster_lab::host::Host;
use paternoster_lab::model::open_device;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::run_jobs;

const CASE: &str = include_str!("cases/idle-scrub.fio");

/// The bytes that each job of a file moves on the drive of the case.
fn bytes(text: &str) -> Vec<u64> {
    let drive = open_device("ssd-plextor-m5s", 1).expect("it comes with the laboratory");
    let mut setup = Setup::new(SchedulerKind::Wfq);
    let host = Host::open("free").expect("it comes with the laboratory");
    host.set_up(&mut setup, drive.as_ref());
    let outcome = run_jobs(&jobs(text), &setup, host.page_cache, drive, |_| {}).expect("it runs");
    let results = outcome.results.iter();
    results.map(|job| job.directions.iter().map(|direction| direction.bytes).sum()).collect()
}

/// A scrub of the idle class beside a service of best effort got 51.5 % of the bytes, as one
/// *request* of 16 was let through and the scrub's had merged to 1 MiB. A sixteenth is 6.25 %.
#[test]
fn scrub_of_large_requests_gets_a_sixteenth_of_the_drive() {
    let done = bytes(CASE);
    let part = 1000 * done[1] / (done[0] + done[1]);
    assert!((55..75).contains(&part), "{part} thousandths: {done:?}");
}
