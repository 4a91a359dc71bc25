//! Six rows of a real server: a modelled disk, sockets, and clients in real time.

use anyhow::Result;
use paternoster::{Nanos, SchedulerKind};
use paternoster_lab::thinkers::{LEAST_PERCENT, SCHEDULERS};
use paternoster_load::Live;
use paternoster_model::{Kind, ServersParameters, Service};
use paternoster_scene::{Scene, Tenant, World as _};

/// How many reads the victims keep outstanding.
const OUTSTANDING: [u32; 3] = [1, 8, 32];
/// How long the thinker thinks.
const THOUGHT: Nanos = Nanos::from_micros(700);
/// How long is counted.
const COUNTED: Nanos = Nanos::from_secs(4);
/// What decides where clients read.
const SEED: u64 = 13;

/// Measures the rows, prints them, and returns in how many the victim keeps too little.
pub(crate) fn run() -> Result<usize> {
    println!(
        "\na server, its disk 4 × 200 µs; the thinker thinks for {} µs and has the same weight",
        THOUGHT.as_nanos() / 1000
    );
    let mut short = 0;
    for scheduler in SCHEDULERS {
        for outstanding in OUTSTANDING {
            let [alone, beside] =
                [false, true].map(|with_thinker| reads(scheduler, outstanding, with_thinker));
            let (alone, beside) = (alone?, beside?);
            let percent = 200 * beside / alone.max(1);
            short += usize::from(percent < LEAST_PERCENT);
            println!(
                "{percent:3} %  {scheduler}, {outstanding} outstanding: {beside} reads in {} s; \
                 alone {alone}",
                COUNTED.as_nanos() / 1_000_000_000
            );
        }
    }
    println!("{short} of {} rows are below {LEAST_PERCENT} %", 2 * OUTSTANDING.len());
    Ok(short)
}

/// The reads of the victim in the counted time.
fn reads(kind: SchedulerKind, outstanding: u32, with_thinker: bool) -> Result<u64> {
    let mut tenants = vec![Tenant::reads(100, 1, outstanding).named("victim")];
    if with_thinker {
        tenants.push(Tenant { think: THOUGHT, ..Tenant::reads(100, 1, 1).named("thinker") });
    }
    let service = Service::constant(Nanos::from_micros(200));
    let scene = Scene::new(Kind::Servers(ServersParameters::new(4, service)), tenants);
    let scene = Scene { counted: COUNTED, ..scene };
    Ok(Live::default().play(&scene, &kind.into(), SEED)?.tenants[0].requests)
}
