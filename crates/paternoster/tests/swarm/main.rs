//! Random events on an elevator with every scheduler, switching between them in flight: nothing
//! is lost, nothing comes twice, nothing hangs, and the same seed gives the same trace.
//!
//! `PATERNOSTER_SWARM_EVENTS` says how many events (200 000 at first) are spread over the seeds;
//! `PATERNOSTER_SWARM_SEED` repeats the run of one.

mod model;
mod random;

use model::Swarm;

const SEEDS: u64 = 20;
const EVENTS: u64 = 200_000;

/// Tells how to repeat the run if it panics.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed) = self;
            eprintln!("to repeat it: PATERNOSTER_SWARM_SEED={seed} cargo test --test swarm");
        }
    }
}

fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs the events of a seed; the digest of its trace.
fn run(seed: u64, events: u64) -> u64 {
    let _repeat = Repeat(seed);
    let mut swarm = Swarm::new(seed);
    for _ in 0..events {
        swarm.event();
    }
    swarm.finish()
}

#[test]
fn every_bio_comes_back_once_whatever_happens() {
    let events = number_from_env("PATERNOSTER_SWARM_EVENTS").unwrap_or(EVENTS) / SEEDS;
    let seeds = match number_from_env("PATERNOSTER_SWARM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS,
    };
    for seed in seeds {
        run(seed, events);
    }
}

#[test]
fn same_seed_gives_the_same_trace() {
    let digests: Vec<_> = (0..4).map(|seed| run(seed, 3000)).collect();
    let again: Vec<_> = (0..4).map(|seed| run(seed, 3000)).collect();
    assert_eq!(digests, again);
    assert!(digests.windows(2).all(|pair| pair[0] != pair[1]), "seeds make a difference");
}
