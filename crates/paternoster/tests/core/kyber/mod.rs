//! What Kyber decides: the scenarios of the description that it was written from, by their numbers
//! there, and what else it does. Of these, 4, 5, 13 and 14 are beside the code too, number for
//! number (`latency.rs`, `token_map.rs`).

mod adjusting;
mod admission;
mod batches;
mod merging;
mod requeue;
mod timer;
mod tokens;
mod tunables;

use std::ops::Range;

use crate::rig::{Io, Rig};
use paternoster::{Event, KyberEvent, Nanos, RequestId};

/// More than all domains have tokens for.
const DEEP: u32 = 1000;

/// A device that takes all that it is given. Requests stay as they come.
fn deep() -> Rig {
    Rig::kyber().without_merging().depth(DEEP)
}

/// Submits so many bios of a kind, far from each other.
fn submit(rig: &mut Rig, kind: fn(Range<u64>) -> Io, name: &str, count: u64) {
    for at in 0..count {
        rig.enter(name, kind(100 * at..100 * at + 8));
    }
}

/// Dispatches all that the scheduler gives.
fn dispatch_all(rig: &mut Rig) -> Vec<RequestId> {
    std::iter::from_fn(|| rig.elevator.dispatch(rig.now)).collect()
}

fn complete(rig: &mut Rig, rq: RequestId) {
    // What it says of submitters that were turned away does not matter: there are none.
    let _ = rig.elevator.complete(rig.now, rq);
}

/// A kind of bio, how many of them are submitted together, and how long each waits and takes.
struct Crowd {
    kind: fn(Range<u64>) -> Io,
    count: u64,
    waits: Nanos,
    takes: Nanos,
}

/// Serves that many such crowds, one after the other. Each finds tokens for all of it.
fn serve(rig: &mut Rig, times: u32, crowd: &Crowd) {
    for _ in 0..times {
        submit(rig, crowd.kind, "one of a crowd", crowd.count);
        rig.now = rig.now + crowd.waits;
        let dispatched = dispatch_all(rig);
        assert_eq!(dispatched.len() as u64, crowd.count, "there are tokens for all");
        rig.now = rig.now + crowd.takes;
        for rq in dispatched {
            complete(rig, rq);
        }
    }
}

/// Lets time pass until the timer fires, unless it is due already.
fn fire_timer(rig: &mut Rig) {
    rig.now = rig.now.max(rig.elevator.poll_timeout().expect("the timer runs"));
    rig.elevator.handle_timeout(rig.now);
    rig.elevator.check();
}

/// How many domains were found without a token since the last look at the trace.
fn times_throttled(rig: &mut Rig) -> usize {
    let throttled = |event: &Event| matches!(event, Event::Kyber(KyberEvent::Throttled { .. }));
    rig.events().iter().filter(|event| throttled(event)).count()
}
