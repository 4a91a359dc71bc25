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

use std::fs::OpenOptions;
use std::io::{Write as _, stderr};
use std::sync::{Mutex, PoisonError};

use measure::{Outcome, measure};
use paternoster::SchedulerKind;
use row::{Disk, Row};
use rows::ROWS;
use verdict::Verdict;

/// Windows of a second for each scheduler.
const WINDOWS: u32 = 2;
/// How often a set-up is tried on a machine that may have been busy with something else.
const TRIES: u32 = 3;
/// The machine is fast enough to say something if the disk does this part of what it can.
const ENOUGH: f64 = 0.97;

/// Reports a judgement that was not made, past the runner's capture of output. `cargo xtask test`
/// names a file in which it looks for what it repeats in its summary.
fn report_not_run(what: &str) {
    let line = format!("not run: {what}: this machine is too busy\n");
    stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    if let Some(path) = std::env::var_os("PATERNOSTER_NOT_RUN") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file takes a line");
    }
}

/// Requests that a modelled disk serves in a second.
fn peak(disk: Disk) -> f64 {
    let Disk::Modelled { servers, service_us, .. } = disk else { panic!("{disk} is not modelled") };
    f64::from(servers) * 1e6 / f64::from(service_us)
}

/// Asserts that `wfq` does what the set-up aims at in some try. A try in which it does not counts
/// only if the disk was busy under `none`, a second before and after.
fn check(name: &str) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let row: &Row = ROWS.iter().find(|row| row.name == name).expect("there is such a set-up");
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let kinds = [SchedulerKind::None, SchedulerKind::Wfq];
        let outcomes = measure(row, &kinds, WINDOWS).expect("the servers serve");
        let [none, wfq] = &outcomes[..] else { panic!("{} contenders", outcomes.len()) };
        if wfq.verdict == Verdict::Pass {
            return;
        }
        if !is_fast_enough(row, none) {
            return report_not_run(&format!("weights beside throughput, {name}"));
        }
        seen.push(wfq.verdict.to_string());
    }
    panic!("{name}, {}: {}", row.about, seen.join("; "));
}

fn is_fast_enough(row: &Row, none: &Outcome) -> bool {
    none.figures.iops >= ENOUGH * peak(row.disk)
}

#[test]
fn tenants_get_their_weights_while_the_disk_stays_busy() {
    check("disk-4x200");
}

#[test]
fn tenant_with_32_outstanding_keeps_its_half_beside_16_connections() {
    check("victim32-k16");
}
