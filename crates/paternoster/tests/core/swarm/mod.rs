//! Random events on an elevator with every scheduler, switching between them in flight: nothing
//! is lost, nothing comes twice, nothing hangs, and the same seed gives the same trace. And random
//! loads under CFQ and BFQ: groups get their shares, queues their slices and services.
//!
//! `PATERNOSTER_SWARM_EVENTS` says how many events (a million at first) are spread over the seeds
//! of the first, and for each further million the others get as many more seeds;
//! `PATERNOSTER_SWARM_SEED` repeats the run of one seed.

mod bfq;
mod due;
mod habit;
mod judge;
mod kyber;
mod load;
mod model;
mod random;
mod shares;
mod slice;
mod tally;
mod trees;
mod waits;

use judge::Witness;
use model::Swarm;
use paternoster::Hierarchy;
use tally::Tally;
use waits::Shown;

const SEEDS: u64 = 60;
const EVENTS: u64 = 1_000_000;

/// Prints how to repeat the run if it panics.
struct Repeat(u64);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed) = self;
            let events = number_from_env("PATERNOSTER_SWARM_EVENTS").unwrap_or(EVENTS);
            eprintln!(
                "to repeat it: PATERNOSTER_SWARM_SEED={seed} PATERNOSTER_SWARM_EVENTS={events} \
                 cargo test -p paternoster --test core swarm"
            );
        }
    }
}

fn number_from_env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs the events of a seed; what was seen of its trace.
fn run(seed: u64, events: u64) -> Witness {
    let _repeat = Repeat(seed);
    let mut swarm = Swarm::new(seed);
    for _ in 0..events {
        swarm.event();
    }
    swarm.finish()
}

/// CFQ and BFQ have everything done that they can do at least once, so that none of it goes
/// untested.
#[test]
fn every_bio_comes_back_once_and_every_wait_has_its_reason_whatever_happens() {
    let events = number_from_env("PATERNOSTER_SWARM_EVENTS").unwrap_or(EVENTS);
    if let Some(seed) = number_from_env("PATERNOSTER_SWARM_SEED") {
        run(seed, events / SEEDS);
        return;
    }
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        tally.add_all(run(seed, events / SEEDS).tally);
    }
    if events >= EVENTS {
        let missing = tally.missing();
        assert!(missing.is_empty(), "never happened: {missing:?}; what did: {tally:#?}");
    }
}

/// Two of the seeds are of CFQ alone, and two of BFQ.
#[test]
fn same_seed_gives_the_same_trace() {
    let digests = |events| -> Vec<u64> { (0..6).map(|seed| run(seed, events).digest).collect() };
    let first = digests(50_000);
    assert_eq!(first, digests(50_000));
    assert!(first.windows(2).all(|pair| pair[0] != pair[1]), "seeds make a difference");
}

/// The seeds of a property: so many, and more where more events are asked for.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let events = number_from_env("PATERNOSTER_SWARM_EVENTS").unwrap_or(EVENTS);
    match number_from_env("PATERNOSTER_SWARM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count * (events / EVENTS).max(1),
    }
}

#[test]
fn backlogged_groups_are_charged_time_by_weight_to_within_a_turn() {
    for seed in seeds(40) {
        let _repeat = Repeat(seed);
        shares::run(seed, false);
    }
}

#[test]
fn backlogged_groups_are_charged_requests_by_weight_to_within_a_turn() {
    for seed in seeds(40) {
        let _repeat = Repeat(seed);
        shares::run(seed, true);
    }
}

/// In the hierarchies that serve queues by vdisktime.
#[test]
fn backlogged_entities_are_charged_time_by_weight_to_within_a_slice_of_each() {
    for seed in seeds(200) {
        let _repeat = Repeat(seed);
        trees::run(seed, Hierarchy::Entities);
        trees::run(seed, Hierarchy::Flat);
    }
}

/// And it is the one that is due first. That the bound is nearly reached shows that it is one.
#[test]
fn sync_queue_waits_for_the_slices_and_idle_times_of_the_others_and_no_longer() {
    let mut shown = Shown::default();
    for seed in seeds(100) {
        let _repeat = Repeat(seed);
        shown.add(&waits::run(seed));
    }
    if number_from_env("PATERNOSTER_SWARM_SEED").is_none() {
        assert!(shown.slices > 100_000 && shown.waits > 100_000, "{shown:?}");
        assert!(shown.requests > 100_000 && shown.longest > 90, "{shown:?}");
    }
}

/// A queue is charged the sectors that it dispatched, or what its time was worth.
#[test]
fn backlogged_queues_are_charged_sectors_by_weight_to_within_two_budgets() {
    let mut services = 0;
    for seed in seeds(40) {
        let _repeat = Repeat(seed);
        for flat in [true, false] {
            let shown = bfq::shares::run(seed, flat);
            assert!(shown.lag <= 200, "{shown:?}");
            services += shown.services;
        }
    }
    if number_from_env("PATERNOSTER_SWARM_SEED").is_none() {
        assert!(services > 10_000, "{services}");
    }
}

/// And requests of a domain keep their order, a domain has no more of them in the device than its
/// tokens allow, and when none goes though some wait, each domain lacks a token.
#[test]
fn no_domain_of_kyber_waits_for_more_than_a_batch_of_each_other_one_while_it_has_tokens() {
    let mut shown = kyber::Shown::default();
    for seed in seeds(40) {
        let _repeat = Repeat(seed);
        shown.add(&kyber::run(seed));
    }
    if number_from_env("PATERNOSTER_SWARM_SEED").is_none() {
        assert!(shown.dispatched > 1_000_000 && shown.silent > 100_000, "{shown:?}");
        assert!(shown.fell > 50 && shown.rose > 20 && shown.beyond > 500, "{shown:?}");
        assert!(shown.longest == 100, "the bound is one: {shown:?}");
    }
}

/// With low latency, and queues that are raised for it.
#[test]
fn backlogged_queue_has_its_next_turn_before_others_got_more_than_their_weights_allow() {
    let mut shown = bfq::starving::Shown::default();
    for seed in seeds(60) {
        let _repeat = Repeat(seed);
        shown.add(&bfq::starving::run(seed));
    }
    if number_from_env("PATERNOSTER_SWARM_SEED").is_none() {
        assert!(shown.waits > 100_000 && shown.with_raised > 10_000, "{shown:?}");
        assert!(shown.longest > 60, "the bound is one: {shown:?}");
    }
}

/// Of BFQ, again and in more detail; who is busy and raised is modelled.
#[test]
fn services_and_waits_of_sync_queues_end_for_reasons_that_hold_and_raising_follows_its_rules() {
    let mut shown = bfq::waits::Shown::default();
    for seed in seeds(60) {
        let _repeat = Repeat(seed);
        shown.add(&bfq::waits::run(seed));
    }
    if number_from_env("PATERNOSTER_SWARM_SEED").is_none() {
        assert!(shown.waits > 100_000 && shown.services > 100_000, "{shown:?}");
        assert!(shown.injected > 10_000, "{shown:?}");
        assert!(shown.interactive > 100 && shown.soft_rt > 100, "{shown:?}");
        assert!(shown.in_burst > 1000, "{shown:?}");
    }
}
