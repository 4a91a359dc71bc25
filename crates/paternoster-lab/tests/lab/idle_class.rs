//! What the idle class gets beside a busy class of its group, under `wfq`.

use crate::common::jobs::jobs;
use paternoster::SchedulerKind;
use paternoster_lab::host::Host;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::run_jobs;
use paternoster_model::open_device;

const CASE: &str = include_str!("../cases/idle-scrub.fio");

/// The bytes that each job of a file moves on the drive of the case.
fn bytes(text: &str, tunables: &[(&str, i64)]) -> Vec<u64> {
    let drive = open_device("ssd-plextor-m5s", 1).expect("it comes with the laboratory");
    let mut setup = Setup::new(SchedulerKind::Wfq);
    setup.tunables = tunables.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
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
    let done = bytes(CASE, &[]);
    let part = 1000 * done[1] / (done[0] + done[1]);
    assert!((55..75).contains(&part), "{part} thousandths: {done:?}");
}

/// The drive does 73,900 random reads of 4 KiB a second, and 515 MB/s of large ones: 13.5 µs, and
/// 2.0 µs a KiB. So a request of no bytes takes 5.5 µs, as long as 2.8 KiB.
const PRICES: [(&str, i64); 2] = [("cost", 3), ("cost_op_bytes", 2800)];

/// In thousandths of what each of both does alone, the scrub gets some 62, a sixteenth, and the
/// service keeps most of the rest (less beside reads of 1 MiB: each has all channels of the drive
/// at once). In the first second neither: the scrub has not waited long enough. It got 550, and 427
/// were left.
#[test]
fn so_do_scrubs_of_other_sizes() {
    let case = CASE.replace("10s", "4s").replace("time_based", "time_based\nramp_time=1s");
    let (all, scrub) = case.split_once("[scrub]").expect("it has two jobs");
    let (global, service) = all.split_once("[service]").expect("it has two jobs");
    for of_scrub in ["", "rw=randread", "bs=1m"] {
        let service = format!("[service]\n{service}\n");
        let scrub = format!("[scrub]\n{scrub}\n{of_scrub}\n");
        let both = bytes(&format!("{global}{service}{scrub}"), &PRICES);
        let alone = [&service, &scrub].map(|job| bytes(&format!("{global}{job}"), &PRICES)[0]);
        let [kept, got] = [0, 1].map(|job| 1000 * both[job] / alone[job]);
        let what = format!("beside {of_scrub:?}: {kept} and {got}");
        println!("{what}");
        assert!(kept >= 780, "{what}");
        assert!((45..=90).contains(&got), "{what}");
    }
}
