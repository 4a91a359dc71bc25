//! What a thousand volumes that nobody uses take from eight that work: two servers, in turn.

use std::time::Duration;

use anyhow::Result;

use crate::first_read::MODEL;
use crate::rig::{LOADERS, Pool, Rig, measured, median_of, put};

/// Volumes that nobody uses.
const IDLE: usize = 1000;
/// What those that work keep of their rate.
const KEPT: f64 = 0.98;
/// Reads that each has outstanding.
const DEPTH: u32 = 8;
/// How long each server is measured at a time.
const WINDOW: Duration = Duration::from_secs(1);

/// Returns whether they keep as much.
pub(crate) fn measure(pairs: u32) -> Result<bool> {
    // More than a core serves.
    let pool = Pool::Modelled(MODEL);
    let [alone, among] = [Rig::start(&pool)?, Rig::start(&pool)?];
    for number in 0..IDLE {
        put(&among.ctl(), &format!("idle{number}"), "1M")?;
    }
    let mut loads = [alone.readers(LOADERS, DEPTH)?, among.readers(LOADERS, DEPTH)?];
    for load in &mut loads {
        load.start()?;
        load.run_for(WINDOW)?;
        load.pause()?;
    }
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // Neither is always the first.
        let first = pair as usize % 2;
        let mut rate = [0.0; 2];
        for index in [first, 1 - first] {
            let replies = measured(&mut loads[index], WINDOW)?.replies;
            rate[index] = f64::from(u32::try_from(replies)?) / WINDOW.as_secs_f64();
        }
        rates.push(rate[0]);
        ratios.push(rate[1] / rate[0]);
    }
    for load in loads {
        load.finish()?;
    }
    alone.end()?;
    among.end()?;
    let [ratio, least, greatest] = median_of(ratios);
    let [rate, ..] = median_of(rates);
    println!("{LOADERS} volumes that work, {rate:.0} reads/s; with {IDLE} idle ones beside them");
    println!("they keep {ratio:.3} of it ({least:.3} to {greatest:.3}, {pairs} pairs)");
    println!("promised: {KEPT}");
    Ok(ratio >= KEPT)
}
