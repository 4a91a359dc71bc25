//! Whether a server that makes and removes volumes all the time keeps anything of them.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use paternoster_bench::used::Used;
use paternoster_load::read_once;

use crate::rig::{Pool, Rig, delete, put};

/// Volumes that are there at a time.
const KEPT: usize = 50;

/// Makes and removes volumes for that long. Returns whether memory and descriptors stay as they
/// are.
pub(crate) fn measure(durable: bool, span: Duration, rate: u32) -> Result<bool> {
    let rig = Rig::start(&Pool::Files { durable })?;
    let (ctl, socket) = (&rig.ctl(), &rig.server.socket());
    let begun = Instant::now();
    let mut readings = Vec::new();
    let mut number = 0;
    while begun.elapsed() < span {
        put(ctl, &format!("soak{number}"), "64M")?;
        read_once(socket, &format!("soak{number}"))?;
        if number >= KEPT {
            delete(ctl, &format!("soak{}", number - KEPT))?;
        }
        number += 1;
        let at = begun.elapsed().as_secs() * 10 / span.as_secs().max(1);
        if readings.len() as u64 <= at && number > 2 * KEPT {
            readings.push(Used::by(std::process::id())?);
        }
        let due = Duration::from_secs(1) / rate * u32::try_from(number)?;
        thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    for left in number.saturating_sub(KEPT)..number {
        delete(ctl, &format!("soak{left}"))?;
    }
    rig.end()?;
    println!("{number} volumes were made and removed in {span:?}");
    for Used { anonymous_kib, descriptors, .. } in &readings {
        println!("{anonymous_kib:>8} KiB of anonymous memory, {descriptors} descriptors");
    }
    let [Some(first), Some(last)] = [readings.get(readings.len() / 2), readings.last()] else {
        bail!("the soak was too short");
    };
    // In the first half the allocator gets what it needs, and some more later: what was kept of
    // a volume would be more than a pointer.
    let in_half = number as u64 / 2;
    let is_flat = last.descriptors <= first.descriptors + 2
        && last.anonymous_kib <= first.anonymous_kib + 64 + 8 * in_half / 1024;
    println!("promised: as much at the end as in the middle");
    Ok(is_flat)
}
