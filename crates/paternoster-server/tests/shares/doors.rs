//! Weights hold between clients of NBD and machines that attach by shared memory.
//!
//! ```text
//!   tenant   weight   comes by                    of the disk's 40,000 IOPS
//!   nbd      1        NBD, 16 connections         1/7
//!   one      2        a machine with one queue    2/7
//!   four     4        a machine with four         4/7
//! ```
//!
//! In `cargo xtask test` nobody may be starved; `cargo xtask bench live` judges to 3 %.

use paternoster::{Nanos, SchedulerKind};
use paternoster_load::{Live, judges_figures, report_too_busy};
use paternoster_model::{Kind, ServersParameters, Service};
use paternoster_scene::{Outcome, Scene, Tenant, World as _};

use crate::support::{DEMAND, Share, replies};

/// How often it is measured on a machine that is too slow to say enough.
const TRIES: u32 = 3;

const TOLERANCE: f64 = 0.03;

/// What may be lost of what the disk does under `none`.
const LEAST: f64 = 0.95;

/// By how much of itself a share may differ where a machine has more queues.
const QUEUES: f64 = 0.01;

/// What they get where the second machine has so many queues.
fn play(scheduler: SchedulerKind, queues: u32) -> Outcome {
    let tenants = [("nbd", 1, 16, 8), ("one", 2, 1, 128), ("four", 4, queues, 256 / queues)].map(
        |(name, weight, connections, depth)| {
            Tenant::reads(100 * weight, connections, depth).named(name)
        },
    );
    let service = Service::constant(Nanos::from_micros(400));
    let disk = Kind::Servers(ServersParameters::new(16, service));
    let millis = if judges_figures() { 11_000 } else { 700 };
    let scene = Scene::new(disk, tenants.into()).lasting(Nanos::from_millis(millis));
    let mut live = Live { machines: 2, ..Live::default() };
    let outcome = live.play(&scene, &scheduler.into(), 1).expect("the server serves");
    let rates = outcome.tenants.iter().map(|got| replies([got]) / outcome.seconds);
    println!("{scheduler}, {queues} queues: {:.0?} IOPS", rates.collect::<Vec<_>>());
    outcome
}

fn shares(outcome: &Outcome) -> Vec<Share> {
    let all = replies(&outcome.tenants);
    let share = |got| Share { entitled: outcome.entitled(got), got: replies([got]) / all };
    outcome.tenants.iter().map(share).collect()
}

/// Returns whether everybody had a request waiting.
fn all_asked(outcome: &Outcome) -> bool {
    outcome.tenants.iter().all(|got| got.backlogged >= DEMAND)
}

#[test]
fn weights_hold_between_clients_and_machines() {
    for _ in 0..TRIES {
        let [one, four] = [1, 4].map(|queues| play(SchedulerKind::Wfq, queues));
        if !(all_asked(&one) && all_asked(&four)) {
            continue;
        }
        for share in [&one, &four].into_iter().flat_map(shares) {
            assert!(share.holds(TOLERANCE), "{share}");
        }
        if judges_figures() {
            let none = play(SchedulerKind::None, 4);
            for wfq in [&one, &four] {
                let [wfq, none] = [wfq, &none].map(|all| replies(&all.tenants) / all.seconds);
                assert!(wfq >= LEAST * none, "{wfq:.0} IOPS, and {none:.0} under none");
            }
            for (one, four) in shares(&one).into_iter().zip(shares(&four)) {
                let change = four.got / one.got - 1.0;
                assert!(change.abs() <= QUEUES, "one queue: {one}; four: {four}");
            }
        }
        return;
    }
    report_too_busy("weights over doors");
}
