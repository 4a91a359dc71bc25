//! What a thousand volumes that nobody uses take from eight that work: servers with and without
//! them, in turn, so that neither runs beside the other.
//!
//! The pool gives as much as a core serves. On a faster one servers differ by half from one start
//! to the next, and nothing is seen.

use std::time::Duration;

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};

use crate::rig::{DEPTH, LOADERS, MODEL, Pool, Rig, WINDOW, measured, median_of, number, put};

/// Volumes that nobody uses.
const IDLE: usize = 1000;
/// What those that work keep of their rate.
const KEPT: f64 = 0.98;

/// Returns whether they keep as much.
pub(crate) fn measure(pairs: u32) -> Result<bool> {
    let (mut kept, mut cheap, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs as usize {
        let mut of = [[0.0; 2]; 2];
        // Neither is always the first.
        for index in [pair % 2, 1 - pair % 2] {
            of[index] = beside(index * IDLE)?;
        }
        let [[rate, cost], [rate_beside, cost_beside]] = of;
        rates.push(rate);
        kept.push(rate_beside / rate);
        cheap.push(cost_beside / cost);
    }
    let [rate, ..] = median_of(rates);
    println!("{LOADERS} volumes that work, {rate:.0} reads/s; with {IDLE} idle ones beside them");
    let [kept, cheap] = [kept, cheap].map(median_of);
    for ([ratio, least, greatest], what) in [(kept, "that"), (cheap, "the time of a read")] {
        println!("  {ratio:.3} times {what} ({least:.3} to {greatest:.3}, {pairs} pairs)");
    }
    println!("promised: {KEPT} times the reads");
    Ok(kept[0] >= KEPT)
}

/// Reads a second of those that work, beside so many that nobody uses, and the time of the
/// process for each.
fn beside(idle: usize) -> Result<[f64; 2]> {
    let rig = Rig::start(&Pool::Modelled(MODEL))?;
    for number in 0..idle {
        put(&rig.ctl(), &format!("idle{number}"), "1M")?;
    }
    let mut load = rig.readers(LOADERS, DEPTH)?;
    load.start()?;
    load.run_for(WINDOW)?;
    load.pause()?;
    let before = cpu_time();
    let replies = number(measured(&mut load)?.replies);
    let took = cpu_time().saturating_sub(before);
    load.finish()?;
    rig.end()?;
    Ok([replies / WINDOW.as_secs_f64(), took.as_secs_f64() / replies])
}

/// The time of this process on processors.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
