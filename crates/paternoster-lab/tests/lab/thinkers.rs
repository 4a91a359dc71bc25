//! What a client keeps of a device beside one that thinks, under the schedulers that idle.
//!
//! `cargo xtask bench thinkers` runs the whole grid.

use paternoster::{Instant, Medium, Nanos, NoTrace, SchedulerKind, fitted_tunables};
use paternoster_lab::fio::{Jobs, Surroundings};
use paternoster_lab::sim::{GroupSetup, Setup, Simulation};
use paternoster_lab::thinkers::{LEAST_PERCENT, SCHEDULERS, some_cells};
use paternoster_lab::threads::{PageCacheParameters, Threads};
use paternoster_model::open_device;

/// The device idled for the thinker, and what that cost was not known as long as nobody who had
/// requests all the time was cut off: with 4 to 10 outstanding a victim kept 11 to 16 %.
#[test]
fn victim_keeps_its_part_in_sixty_cells_of_the_grid() {
    let mut short = Vec::new();
    for cell in some_cells(60) {
        let kept = cell.run().expect("a cell runs");
        if kept.percent() < LEAST_PERCENT {
            short.push(format!("{} %: {cell}", kept.percent()));
        }
    }
    assert!(short.is_empty(), "below {LEAST_PERCENT} %:\n{}", short.join("\n"));
}

/// The device of the cases: 20,000 requests a second.
const DEVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/s4.toml");

/// The reads that the victim of a case has until `end`, in seconds.
fn reads_of_victim(scheduler: SchedulerKind, text: &str, end: u64) -> u64 {
    let device = open_device(DEVICE, 1).expect("a device");
    let surroundings = Surroundings::without_files(device.end().0 * 512, 1);
    let jobs = Jobs::parse("case.fio", text.as_bytes(), &surroundings).expect("a job file");
    let mut setup = Setup::new(scheduler);
    let fitted = fitted_tunables(scheduler, Medium::NotRotational).iter();
    setup.tunables = fitted.map(|&(name, value)| (name.to_owned(), value)).collect();
    let groups = jobs.groups.iter().map(|group| GroupSetup {
        path: group.path.clone(),
        weights: group.weight.unwrap_or_default().into(),
    });
    setup.groups = groups.collect();
    let threads = Threads::new(&jobs, PageCacheParameters::default());
    let mut sim = Simulation::new(&setup, threads, device, NoTrace).expect("a setup");
    let end = Instant::START + Nanos::from_secs(end);
    while sim.now() < end && sim.step().expect("it goes on") {}
    let names = jobs.jobs.iter().map(|job| job.name.as_str());
    let results = sim.workload().results();
    let (_, victim) =
        names.zip(&results).find(|(name, _)| *name == "victim").expect("there is a victim");
    victim.ios()
}

/// The right value: at least 90 % of half of what the victim gets where nobody thinks.
fn victim_keeps_its_part(text: &str, end: u64) {
    let (without_thinker, _) = text.split_once("[think]").expect("the thinker is the last job");
    for scheduler in SCHEDULERS {
        let alone = reads_of_victim(scheduler, without_thinker, end);
        let kept = reads_of_victim(scheduler, text, end);
        let percent = 200 * kept / alone;
        assert!(percent >= LEAST_PERCENT, "{scheduler}: {percent} %, {kept} reads of {alone}");
    }
}

/// A victim with 8 outstanding had 11 % of its half under `cfq` and 16 % under `bfq`.
#[test]
fn victim_with_as_much_outstanding_as_the_device_takes_keeps_its_part() {
    victim_keeps_its_part(include_str!("../cases/think.fio"), 5);
}

/// Under `bfq` a victim with 32 outstanding had 17 % of its half, and it stayed so.
#[test]
fn victim_that_comes_after_the_thinker_keeps_its_part() {
    victim_keeps_its_part(include_str!("../cases/late.fio"), 5);
}

/// This was right: a second in which the victim's group was alone with 32 outstanding had shown how
/// fast the device is.
#[test]
fn victim_keeps_its_part_where_its_group_was_alone_before() {
    victim_keeps_its_part(include_str!("../cases/two.fio"), 6);
}
