//! What `wfq` decides: the scenarios of the description that it was written from, by their numbers
//! there, and what else it does.
//!
//! Unless said otherwise all requests are reads of 4 KiB that cost one op each, nothing merges, and
//! the device takes one request at a time. Tags are in thousandths of an op a weight.

mod bounds;
mod classes;
mod demand;
mod kept;
mod limits;
mod limits_hold;
mod prices;
mod reservations;
mod runs;
mod shares;
mod tags;
mod targets;
mod tree;
mod tunables;
mod work;

use std::collections::BTreeMap;

use crate::rig::{Io, Rig, read};

/// A device that takes `depth` requests at a time, with groups below the root, each with a task of
/// its name.
fn groups(depth: i64, groups: &[(&'static str, u32)]) -> Rig {
    let rig = Rig::wfq().set("depth", depth);
    groups.iter().fold(rig, |rig, &(name, weight)| {
        let path = format!("/{name}");
        rig.group(&path, weight).task(name, "be/4", &path)
    })
}

/// The task submits that many reads of 4 KiB, far from each other. All have its name.
fn submit(rig: &mut Rig, task: &'static str, count: u64) {
    for at in 0..count {
        rig.enter(task, read(1000 * at..1000 * at + 8).by(task));
    }
}

/// The order in which requests are dispatched if each completes at once: names by their first
/// letters.
fn order(rig: &mut Rig, count: usize) -> String {
    let served = rig.serve_up_to(count);
    served.iter().map(|name| name.chars().next().expect("a name")).collect()
}

/// A task's reads or writes of that many sectors each, far from each other.
fn submit_sized(
    rig: &mut Rig,
    task: &'static str,
    count: u64,
    io: fn(std::ops::Range<u64>) -> Io,
    sectors: u64,
) {
    for at in 0..count {
        rig.enter(task, io(10_000 * at..10_000 * at + sectors).by(task));
    }
}

/// How many of the next requests are of each task.
fn counts(rig: &mut Rig, count: usize) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for name in rig.serve_up_to(count) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
