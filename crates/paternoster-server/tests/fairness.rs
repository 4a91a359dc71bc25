//! What a neighbour keeps of a disk that is attacked by real NBD clients. The core's tests of the
//! same name have it in virtual time, with more attacks and narrow bounds.
//!
//! A machine that is too busy cannot show this. What was not judged for that reason is reported as
//! not run; the test runner has no third verdict and calls it passed.

#[path = "../benches/fairness/attacks.rs"]
mod attacks;
#[allow(dead_code)] // what tests of weights need besides
mod shares;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use attacks::{ATTACKS, PEAK, baseline, measure, measure_heavy};
use paternoster::SchedulerKind;
use paternoster_load::report_too_busy;

const SPAN: Duration = Duration::from_millis(1500);
/// What the neighbour, or the heavy tenant, keeps at least of what it is entitled to.
const KEPT: f64 = 0.85;
/// How often an attack is tried on a machine that may have been busy with something else.
const TRIES: u32 = 3;

/// Asserts that `kept` says of some try that enough was kept. A try in which it was not counts only
/// if the machine was fast enough before and after it.
fn holds(what: &str, mut kept: impl FnMut() -> f64) {
    let mut seen = vec![];
    for _ in 0..TRIES {
        let part = kept();
        if part >= KEPT {
            println!("{what}: {:.0} %", 100.0 * part);
            return;
        }
        if baseline(SPAN).expect("the server serves").is_none() {
            report_too_busy(what);
            return;
        }
        seen.push(format!("{:.0} %", 100.0 * part));
    }
    panic!("{what}: {} of its part of the disk was kept", seen.join(", "));
}

fn check(scheduler: SchedulerKind) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if baseline(SPAN).expect("the server serves").is_none() {
        report_too_busy(&format!("{scheduler}, every attack"));
        return;
    }
    for attack in ATTACKS {
        holds(&format!("{scheduler}, neighbour beside {:?}", attack.name), || {
            let rates = measure(scheduler, attack, SPAN).expect("the server serves");
            rates.neighbour / (PEAK / 2.0)
        });
    }
    holds(&format!("{scheduler}, heavy tenant with one request outstanding"), || {
        let (alone, rates) = measure_heavy(scheduler, ATTACKS[0], SPAN).expect("the server serves");
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
}
