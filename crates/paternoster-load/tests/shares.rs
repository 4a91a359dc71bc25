//! Weights beside throughput, live: what `cargo xtask bench shares` measures, in short.
//!
//! A machine that is too busy cannot show this. What was not judged for that reason is reported as
//! not run; the test runner has no third verdict and calls it passed.

#[allow(dead_code)] // what the bench prints besides
#[path = "../benches/shares/contender.rs"]
mod contender;
#[path = "../benches/shares/cpu.rs"]
mod cpu;
#[allow(dead_code)]
#[path = "../benches/shares/figures.rs"]
mod figures;
#[allow(dead_code)]
#[path = "../benches/shares/measure.rs"]
mod measure;
#[allow(dead_code)]
#[path = "../benches/shares/row.rs"]
mod row;
#[path = "../benches/shares/rows.rs"]
mod rows;
#[allow(dead_code)]
#[path = "../benches/shares/verdict.rs"]
mod verdict;

use std::sync::{Mutex, PoisonError};

use measure::{Outcome, measure};
use paternoster::SchedulerKind;
use paternoster_load::report_too_busy;
use row::{Disk, Row};
use rows::ROWS;
use verdict::Verdict;

/// Windows of a second for each scheduler.
const WINDOWS: u32 = 2;
/// How often a set-up is tried on a machine that may have been busy with something else.
const TRIES: u32 = 3;
/// The machine is fast enough to say something if the disk does this part of what it can.
const ENOUGH: f64 = 0.97;

/// Requests that a modelled disk serves in a second.
fn peak(disk: Disk) -> f64 {
    let Disk::Modelled { servers, service_us, .. } = disk else { panic!("{disk} is not modelled") };
    f64::from(servers) * 1e6 / f64::from(service_us)
}

/// Asserts that `wfq` does what `judge` asks of it, in some try. A try in which it does not counts
/// only if the disk was busy under `none`, a second before and after.
fn check(name: &str, judge: impl Fn(&Outcome, &Outcome) -> Result<(), String>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let row: &Row = ROWS.iter().find(|row| row.name == name).expect("there is such a set-up");
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let kinds = [SchedulerKind::None, SchedulerKind::Wfq];
        let outcomes = measure(row, &kinds, WINDOWS).expect("the servers serve");
        let [none, wfq] = &outcomes[..] else { panic!("{} contenders", outcomes.len()) };
        let Err(missed) = judge(none, wfq) else { return };
        if !is_fast_enough(row, none) {
            return report_too_busy(&format!("weights beside throughput, {name}"));
        }
        seen.push(missed);
    }
    panic!("{name}, {}: {}", row.about, seen.join("; "));
}

fn is_fast_enough(row: &Row, none: &Outcome) -> bool {
    none.figures.iops >= ENOUGH * peak(row.disk)
}

/// All that the set-up aims at.
fn as_aimed(_none: &Outcome, wfq: &Outcome) -> Result<(), String> {
    if wfq.verdict == Verdict::Pass { Ok(()) } else { Err(wfq.verdict.to_string()) }
}

/// The disk serves 20,000 a second, so a request takes 6.4 ms behind the 128 of the neighbour, and
/// 800 µs where the disk has 16, as at the start. Once the depth is learned it takes some 400. A
/// busy machine makes a few much longer; but even of those one in a hundred at most takes half of
/// what every one takes behind the neighbour.
fn served_soon(none: &Outcome, wfq: &Outcome) -> Result<(), String> {
    let (first, behind_all) = (wfq.figures.first, none.figures.first.p50_us);
    let of_none = wfq.figures.of_none.expect("it is not none");
    if first.p50_us < 700.0 && first.p99_us < behind_all / 2.0 && of_none >= 0.95 {
        return Ok(());
    }
    Err(format!(
        "p50 {:.0} of 700 µs, p99 {:.0} of {:.0} µs, {of_none:.3} of 0.95 of the throughput",
        first.p50_us,
        first.p99_us,
        behind_all / 2.0
    ))
}

#[test]
fn tenants_get_their_weights_while_the_disk_stays_busy() {
    check("disk-4x200", as_aimed);
}

#[test]
fn tenant_with_32_outstanding_keeps_its_half_beside_16_connections() {
    check("victim32-k16", as_aimed);
}

#[test]
fn tenant_with_one_outstanding_is_served_soon_beside_16_connections() {
    check("victim1-k16", served_soon);
}
