//! Random scenarios: few tasks of many kinds, on devices from a slow disk to a fast array.
//!
//! They aim at what schedulers treat apart: streams and seeks, neighbours that work on one part of
//! the device, readers that think, sparse ones, asynchronous writers, tasks that begin late, nested
//! groups, every I/O priority, and each tunable, ours too, at values on either side of its default.
//!
//! A scenario cannot say, and so these do not reach: requeued requests, a bound on requests, a
//! device that is known to queue, and weights, priorities, tunables or the scheduler changed on the
//! way.

use fastrand::Rng;
use paternoster::{SchedulerKind, TunableInfo};
use serde_json::{Map, Value, json};

/// Values that a tunable may have beside those around its default, where its range has them.
const VALUES: [i64; 9] = [-1, 0, 1, 2, 4, 8, 60, 500, 2048];

/// Sectors of the device that positions are drawn from: 512 GiB of them.
const SECTORS: u64 = 1 << 30;
/// Requests of a scenario, over all of its tasks.
const REQUESTS: [usize; 3] = [150, 300, 600];
/// I/O priorities of tasks, the default most often.
const IO_PRIOS: [&str; 9] =
    ["be/4", "be/4", "be/4", "be/0", "be/7", "rt/0", "rt/4", "idle", "none"];
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Scenario number `index` of those that begin with `seed`.
pub(crate) fn scenario(scheduler: SchedulerKind, name: &str, seed: u64, index: u32) -> Value {
    let mut rng = Rng::with_seed(seed.wrapping_mul(SECTORS).wrapping_add(index.into()));
    let mut tunables = Map::new();
    for tunable in scheduler.tunables() {
        if rng.u8(..5) == 0 {
            let value = pick(&mut rng, &values(tunable));
            tunables.insert(tunable.name.to_owned(), json!(value));
        }
    }
    let (groups, paths) = groups(&mut rng, scheduler);
    let shared = rng.u64(..SECTORS);
    let tasks = pick(&mut rng, &[1, 2, 3, 4, 6, 10, 16]);
    let requests = pick(&mut rng, &REQUESTS) / tasks;
    let tasks: Vec<Value> = (1..=tasks)
        .map(|id| {
            let group = paths[rng.usize(..paths.len())].clone();
            task(&mut rng, scheduler, &Place { id, group, shared }, requests)
        })
        .collect();
    json!({
        "name": name,
        "about": format!("random, seed {seed}"),
        "scheduler": scheduler.name(),
        "tunables": tunables,
        "hz": pick(&mut rng, &[1000, 1000, 1000, 250, 100]),
        "merges": rng.u8(..10) < 7,
        "device": device(&mut rng),
        "groups": groups,
        "tasks": tasks,
    })
}

/// Values of the tunable's range, on either side of its default.
fn values(tunable: &TunableInfo) -> Vec<i64> {
    let around = [tunable.default / 4, tunable.default, tunable.default.saturating_mul(3)];
    VALUES.into_iter().chain(around).filter(|&value| tunable.accepts(value).is_ok()).collect()
}

/// A disk with seeks, or a device without them that may serve several requests at once.
fn device(rng: &mut Rng) -> Value {
    let queue_depth = pick(rng, &[1, 1, 2, 4, 8, 16, 32, 64]);
    if rng.bool() {
        json!({
            "rotational": true,
            "queue_depth": queue_depth,
            "channels": 1,
            "base_ns": pick(rng, &[100 * US, 300 * US, MS]),
            "per_sector_ns": pick(rng, &[2000, 4000]),
            "seek_base_ns": pick(rng, &[MS, 3 * MS, 6 * MS]),
            "seek_ns_per_mi_sector": pick(rng, &[1000, 20_000, 100_000]),
        })
    } else {
        json!({
            "rotational": false,
            "queue_depth": queue_depth,
            "channels": pick(rng, &[1, 1, 2, 4, 8]),
            "base_ns": pick(rng, &[10 * US, 40 * US, 80 * US, 300 * US]),
            "per_sector_ns": pick(rng, &[0, 100, 1000]),
            "seek_base_ns": 0,
            "seek_ns_per_mi_sector": 0,
        })
    }
}

/// Up to four groups, some inside others, and the paths of all, the root's first.
fn groups(rng: &mut Rng, scheduler: SchedulerKind) -> (Vec<Value>, Vec<String>) {
    let mut groups = vec![];
    let mut paths = vec!["/".to_owned()];
    for number in 0..rng.usize(..5) {
        let parent = if rng.bool() { "/" } else { &paths[rng.usize(..paths.len())] };
        let path = format!("{}/g{number}", parent.trim_end_matches('/'));
        let mut group = json!({ "path": path, "weight": pick(rng, &[10, 50, 100, 500, 1000]) });
        if scheduler == SchedulerKind::Cfq && rng.bool() {
            group["leaf_weight"] = json!(pick(rng, &[10, 500, 1000]));
        }
        groups.push(group);
        paths.push(path);
    }
    (groups, paths)
}

/// What is given of a task: its name, its group, and where those that work together begin.
struct Place {
    id: usize,
    group: String,
    shared: u64,
}

/// How a task behaves.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Reads on from where it is.
    Stream,
    /// Reads anywhere.
    Seeky,
    /// Reads within a few MiB.
    Near,
    /// Reads and writes, synchronously and not.
    Mixed,
    /// Reads a little at a time, like a player.
    Sparse,
    /// Writes on, asynchronously.
    Writer,
    /// Reads every fourth piece of what others of this kind read too.
    Interleaved,
    /// Reads anywhere, and thinks between.
    Thinker,
}

const KINDS: [Kind; 8] = [
    Kind::Stream,
    Kind::Seeky,
    Kind::Near,
    Kind::Mixed,
    Kind::Sparse,
    Kind::Writer,
    Kind::Interleaved,
    Kind::Thinker,
];

/// A task of some kind, with up to that many requests.
fn task(rng: &mut Rng, scheduler: SchedulerKind, place: &Place, requests: usize) -> Value {
    let kind = pick(rng, &KINDS);
    let size = pick(rng, &[8, 8, 8, 64, 128, 256, 1024]);
    let start = match rng.u8(..5) {
        0 => rng.u64(..50 * MS),
        1 => rng.u64(..9000 * MS),
        _ => 0,
    };
    let base = if kind == Kind::Interleaved { place.shared } else { rng.u64(..SECTORS) };
    let mut walk = Walk { kind, base, at: base, step: size };
    if kind == Kind::Interleaved {
        walk.at += place.id as u64 % 4 * size;
    }
    let count = requests.max(4) / 2 + rng.usize(..=requests / 2);
    let requests: Vec<Value> = (0..count)
        .map(|_| {
            let op = op(rng, scheduler, kind);
            let sector = walk.next(rng);
            json!([think(rng, kind), op, sector, if op == "F" { 0 } else { size }])
        })
        .collect();
    json!({
        "id": place.id,
        "group": place.group,
        "ioprio": pick(rng, &IO_PRIOS),
        "start_ns": start,
        "depth": pick(rng, &[1, 1, 1, 2, 4, 8, 16, 32]),
        "requests": requests,
    })
}

/// Where a task goes.
struct Walk {
    kind: Kind,
    base: u64,
    at: u64,
    step: u64,
}

impl Walk {
    /// The sector of the next request.
    fn next(&mut self, rng: &mut Rng) -> u64 {
        match self.kind {
            Kind::Near => self.base + rng.u64(..1 << 14) * 8,
            Kind::Seeky | Kind::Mixed | Kind::Thinker => match rng.u8(..10) {
                0..3 => self.advance(self.step),
                // Just before the last one, for a front merge.
                3 => self.at.saturating_sub(2 * self.step),
                _ => {
                    self.at = rng.u64(..SECTORS);
                    self.advance(self.step)
                }
            },
            Kind::Interleaved => self.advance(4 * self.step),
            Kind::Stream | Kind::Sparse | Kind::Writer => self.advance(self.step),
        }
    }

    /// Where it is, before it goes on by so many sectors.
    fn advance(&mut self, by: u64) -> u64 {
        let at = self.at;
        self.at += by;
        at
    }
}

/// What the next request does.
fn op(rng: &mut Rng, scheduler: SchedulerKind, kind: Kind) -> &'static str {
    match rng.u8(..100) {
        0 => "F",
        // The queue that CFQ has in Linux takes no discards.
        1 if scheduler != SchedulerKind::Cfq => "D",
        2 => "WS",
        3 => "W",
        _ if kind == Kind::Writer => "W",
        _ if kind == Kind::Mixed => pick(rng, &["R", "R", "W", "WS"]),
        _ => "R",
    }
}

/// The time in ns between what a request waits for and its arrival.
fn think(rng: &mut Rng, kind: Kind) -> u64 {
    match kind {
        Kind::Stream | Kind::Near => pick(rng, &[0, 0, 20 * US, 400 * US]),
        Kind::Seeky | Kind::Interleaved => pick(rng, &[0, 0, 100 * US]),
        Kind::Mixed => pick(rng, &[0, 0, 0, MS, 10 * MS]),
        Kind::Sparse => pick(rng, &[30 * MS, 33 * MS, 60 * MS]),
        Kind::Writer => 0,
        Kind::Thinker if rng.u8(..20) == 0 => 2500 * MS,
        Kind::Thinker => pick(rng, &[0, 3 * MS, 7 * MS, 12 * MS]),
    }
}

/// One of them, each as likely as the others.
fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing may depend on the machine or on the scenarios before.
    #[test]
    fn scenario_follows_from_its_seed_and_its_number_alone() {
        let made = |seed, index| scenario(SchedulerKind::Cfq, "a", seed, index).to_string();
        assert_eq!(made(1, 7), made(1, 7));
        assert_ne!(made(1, 7), made(1, 8));
        assert_ne!(made(1, 7), made(2, 7));
    }

    /// What the schedulers treat apart has to occur, or equal logs say little.
    #[test]
    fn scenarios_have_every_operation_device_and_tunable() {
        for scheduler in SchedulerKind::ALL {
            let all: String =
                (0..300).map(|index| scenario(scheduler, "a", 1, index).to_string()).collect();
            let tunables = scheduler.tunables().iter().map(|tunable| tunable.name);
            let words = ["\"R\"", "\"W\"", "\"WS\"", "\"F\"", "rt/0", "idle", "/g0/g1"];
            for word in tunables.chain(words).chain(["\"rotational\":true", "\"rotational\":false"])
            {
                assert!(all.contains(word), "{scheduler}: no {word}");
            }
        }
    }
}
