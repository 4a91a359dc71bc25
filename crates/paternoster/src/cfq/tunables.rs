//! CFQ's attributes under `queue/iosched/`.

use crate::parts::order_tunables::OrderTunables;
use crate::synchrony::Synchrony;
use crate::time::{Hz, Nanos};
use crate::tunable::{number, span, tunable_table};

const UINT_MAX: i64 = u32::MAX as i64;
const MS: i64 = 1_000_000;
const US: i64 = 1_000;

/// The defaults of the times in kernels that count ticks, as fractions of a second, in the order of
/// `times_mut`.
const PARTS_OF_SECOND: [(u32, u32); 7] =
    [(1, 4), (1, 8), (1, 10), (1, 25), (1, 125), (1, 125), (3, 10)];

/// The values; times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tunables {
    quantum: i64,
    pub(super) order: OrderTunables,
    slice_sync: i64,
    slice_async: i64,
    slice_async_rq: i64,
    slice_idle: i64,
    group_idle: i64,
    low_latency: i64,
    target_latency: i64,
    charge_whole_turn: i64,
}

tunable_table! {
    pub(super) Tunables of super::NAME;
    quantum = quantum * 1, "requests", 8, 1, UINT_MAX,
        "Requests that a queue may have in flight while others wait: half of it if its slice is \
         about to end, 1 in the idle class. With charge_whole_turn, if requests are charged, only \
         while others of its group wait.";
    fifo_expire_sync = order.fifo_expire_sync * MS, "ms", 125, 1, UINT_MAX,
        "Deadline of synchronous requests: expired ones are dispatched before sector order.";
    fifo_expire_async = order.fifo_expire_async * MS, "ms", 250, 1, UINT_MAX,
        "Deadline of asynchronous requests: expired ones are dispatched before sector order.";
    back_seek_max = order.back_seek_max * 1, "KiB", 16384, 0, UINT_MAX,
        "How far behind the head a request may be and still compete with those ahead.";
    back_seek_penalty = order.back_seek_penalty * 1, "factor", 2, 1, UINT_MAX,
        "Factor by which the distance of a request behind the head counts more than one ahead.";
    slice_sync = slice_sync * MS, "ms", 100, 1, UINT_MAX,
        "The slice of a synchronous queue of level 4; a level is worth a fifth of it.";
    slice_sync_us = slice_sync * US, "us", 100_000, 1, UINT_MAX,
        "slice_sync in microseconds.";
    slice_async = slice_async * MS, "ms", 40, 1, UINT_MAX,
        "The slice of an asynchronous queue of level 4; a level is worth a fifth of it.";
    slice_async_us = slice_async * US, "us", 40_000, 1, UINT_MAX,
        "slice_async in microseconds.";
    slice_async_rq = slice_async_rq * 1, "requests", 2, 1, UINT_MAX,
        "An asynchronous queue of level p dispatches 2 x (8 - p) times this many requests in a \
         slice while others wait.";
    slice_idle = slice_idle * MS, "ms", 8, 0, UINT_MAX,
        "How long the device idles for the next request of a queue. 0 on a device that is not \
         rotational; groups are then charged by requests if it queues.";
    slice_idle_us = slice_idle * US, "us", 8_000, 0, UINT_MAX,
        "slice_idle in microseconds.";
    group_idle = group_idle * MS, "ms", 8, 0, UINT_MAX,
        "How long the device idles for the next request of a group, if it does not idle for a \
         queue.";
    group_idle_us = group_idle * US, "us", 8_000, 0, UINT_MAX,
        "group_idle in microseconds.";
    low_latency = low_latency * 1, "bool", 1, 0, 1,
        "Whether slices shrink so that every queue of a group has one within target_latency.";
    target_latency = target_latency * MS, "ms", 300, 1, UINT_MAX,
        "Time within which every queue shall have a slice; divided among groups by weight.";
    target_latency_us = target_latency * US, "us", 300_000, 1, UINT_MAX,
        "target_latency in microseconds.";
    charge_whole_turn = charge_whole_turn * 1, "bool", 0, 0, 1,
        "Ours; Linux has 0. Whether a group is charged for all the time in which its queues are \
         active: from the start, not only from the first completion, and beyond the slice. If \
         requests are charged and the device idled for it: for as many as that would have \
         completed in all the time.";
}

impl Tunables {
    /// Sets what Linux sets when the scheduler is attached to a non-rotational device. A later
    /// change of the device's flag changes nothing.
    pub(super) fn attach_to_non_rotational(&mut self) {
        self.slice_idle = 0;
    }

    /// Sets the defaults of a kernel that counts ticks: parts of a second in whole ticks, at least
    /// one.
    pub(super) fn attach_to_ticks(&mut self, hz: Hz) {
        for (time, (times, of)) in self.times_mut().into_iter().zip(PARTS_OF_SECOND) {
            let ticks = u64::from((hz.ticks_per_s() * times / of).max(1));
            *time = (ticks * hz.tick().as_nanos()).cast_signed();
        }
    }

    /// Rounds all times up to whole units.
    pub(super) fn round_up(&mut self, unit: Nanos) {
        for time in self.times_mut() {
            let nanos = time.cast_unsigned().next_multiple_of(unit.as_nanos());
            *time = nanos.cast_signed();
        }
    }

    /// All times.
    fn times_mut(&mut self) -> [&mut i64; 7] {
        [
            &mut self.order.fifo_expire_async,
            &mut self.order.fifo_expire_sync,
            &mut self.slice_sync,
            &mut self.slice_async,
            &mut self.slice_idle,
            &mut self.group_idle,
            &mut self.target_latency,
        ]
    }

    pub(super) fn quantum(&self) -> u32 {
        number(self.quantum)
    }

    /// The slice of level 4.
    pub(super) fn slice(&self, synchrony: Synchrony) -> Nanos {
        span(match synchrony {
            Synchrony::Async => self.slice_async,
            Synchrony::Sync => self.slice_sync,
        })
    }

    pub(super) fn slice_async_rq(&self) -> u32 {
        number(self.slice_async_rq)
    }

    pub(super) fn slice_idle(&self) -> Nanos {
        span(self.slice_idle)
    }

    pub(super) fn group_idle(&self) -> Nanos {
        span(self.group_idle)
    }

    pub(super) fn low_latency(&self) -> bool {
        self.low_latency != 0
    }

    pub(super) fn charge_whole_turn(&self) -> bool {
        self.charge_whole_turn != 0
    }

    pub(super) fn target_latency(&self) -> Nanos {
        span(self.target_latency)
    }
}
