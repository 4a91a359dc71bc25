//! What a neighbour keeps of a disk that is attacked by real NBD clients. The laboratory's tests of
//! neighbours have it in virtual time, with more attacks and narrow bounds.
//!
//! In `cargo xtask test` nobody may be starved. `cargo xtask bench fairness --check` judges to
//! 85 %; a machine that is too busy for that is reported as not run.

#[path = "../benches/fairness/attacks.rs"]
#[allow(dead_code)] // what the bench tells besides
mod attacks;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use attacks::{PEAK, attacks, baseline, measure, measure_heavy, shows_shares};
use paternoster::SchedulerKind;
use paternoster_load::{judges_figures, least_part, report_too_busy};

/// What the neighbour, or the heavy tenant, keeps at least of what it is entitled to.
const KEPT: f64 = 0.85;
/// How often an attack is tried on a machine that may have been busy with something else.
const TRIES: u32 = 3;

/// For how long each attack is looked at.
fn span() -> Duration {
    Duration::from_millis(if judges_figures() { 1500 } else { 900 })
}

/// What the disk does undisturbed, a second; none where figures are judged and the machine is too
/// busy to show them.
fn undisturbed() -> Option<f64> {
    let disk = baseline(span()).expect("the server serves");
    if judges_figures() { shows_shares(disk).then_some(PEAK) } else { Some(disk) }
}

/// Asserts that `kept` says of some try that enough was kept, given what the disk does undisturbed.
/// That is measured again after a try in which it was not, as the machine may have been busy.
fn holds(what: &str, disk: &mut f64, mut kept: impl FnMut(f64) -> f64) {
    let mut seen = vec![];
    for _ in 0..TRIES {
        let part = kept(*disk);
        if part >= least_part(KEPT) {
            println!("{what}: {:.0} %", 100.0 * part);
            return;
        }
        match undisturbed() {
            Some(now) => *disk = now,
            None => return report_too_busy(what),
        }
        seen.push(format!("{:.0} %", 100.0 * part));
    }
    panic!("{what}: {} of its part of the disk was kept", seen.join(", "));
}

fn check(scheduler: SchedulerKind) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut disk) = undisturbed() else {
        return report_too_busy(&format!("{scheduler}, every attack"));
    };
    for (name, attacker) in attacks() {
        let what = format!("{scheduler}, neighbour beside {name:?}");
        holds(&what, &mut disk, |disk| {
            let rates = measure(scheduler, &attacker, span()).expect("the server serves");
            rates.neighbour / (disk / 2.0)
        });
    }
    if scheduler == SchedulerKind::Wfq {
        // It makes no turns: a tenant with one request outstanding gets what it can ask for.
        return;
    }
    let what = format!("{scheduler}, heavy tenant with one request outstanding");
    holds(&what, &mut disk, |_| {
        let (alone, rates) =
            measure_heavy(scheduler, &attacks()[0].1, span()).expect("the server serves");
        rates.attacker / (0.8 * alone)
    });
}

/// Whatever the other tenant does.
mod neighbour_keeps_its_part_of_the_disk {
    use paternoster::SchedulerKind;

    #[test]
    fn under_cfq() {
        super::check(SchedulerKind::Cfq);
    }

    #[test]
    fn under_bfq() {
        super::check(SchedulerKind::Bfq);
    }

    #[test]
    fn under_wfq() {
        super::check(SchedulerKind::Wfq);
    }
}
