//! The tunables of `wfq`. They are of this project: Linux has no such scheduler.

use super::depth::{Gains, Rules};
use crate::time::Nanos;
use crate::tunable::{number, tunables};

/// How requests are priced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CostMode {
    /// By prices that are learned, beginning with those of `Fixed`.
    Learn,
    /// By `cost_op_bytes`, `cost_write` and `cost_fua`.
    Fixed,
    /// All requests cost the same, whatever their size.
    Requests,
    /// By their bytes alone.
    Bytes,
}

tunables! {
    pub(super) struct Tunables of super::NAME;
    depth: "requests", 0, 0, 4096,
        "How many requests may be in the device at once; 0 is learned.";
    depth_start: "requests", 16, 1, 4096,
        "The learned depth at the start.";
    min_depth: "requests", 1, 1, 4096,
        "The least learned depth.";
    max_depth: "requests", 1024, 1, 4096,
        "The greatest learned depth.";
    gain: "ppm", 100_000, 10_000, 900_000,
        "Gain that a deeper queue has to show, in parts per million of that of a device that \
         serves as many more.";
    contested: "ppm", 500_000, 10_000, 1_000_000,
        "The same above the depth at which a tenant has all its requests in the device; at least \
         `gain`.";
    window_us: "us", 2000, 500, 100_000,
        "Least duration of a measurement of the device's speed.";
    rest_ms: "ms", 300, 0, 60_000,
        "How long at most the depth rests after rejected trials; ten times as long after one below \
         what clients fill. With 0 it never rests.";
    keep_slots: "%", 25, 0, 100,
        "How much of the depth is kept for tenants that have much outstanding and nothing waiting \
         for a moment; with 0 no request waits while the device has room.";
    grace_us: "us", 0, 0, 100_000,
        "How long a group or I/O context that has nothing waiting keeps its place in the order of \
         service. If it is away for longer, it counts as away for this long.";
    run_us: "us", 0, 0, 10_000,
        "How long one I/O context is served before the next, counted in what the device does in \
         that time, if that is more than one request; 0 goes by tags alone.";
    cost: "word", 0, 0, 3,
        "How a request is charged: by prices that are learned (learn), as one op whatever its size \
         (requests), by its bytes alone (bytes), or by the prices below (fixed).",
        ["learn", "requests", "bytes", "fixed"];
    cost_op_bytes: "bytes", 16_384, 512, 4_194_304,
        "How many bytes cost as much as one op: a request is charged one op and its bytes. If \
         prices are learned, learning begins with this and the next two.";
    cost_write: "%", 100, 6, 6400,
        "What a write, trim or zeroing costs, in percent of a read of the same size.";
    cost_fua: "%", 100, 6, 6400,
        "What a write with FUA costs, in percent of a read of the same size.";
    burst: "ms", 100, 1, 10_000,
        "How much a cap allows at once, in time at its rate: a group that asked for nothing may \
         have that much later.";
    class_age: "ms", 1000, 1, 60_000,
        "Wait behind a more urgent class after which a class gets a sixteenth of its group's \
         share, by cost.";
}

impl Tunables {
    /// The depth that is set; none where it is learned.
    pub(super) fn depth(&self) -> Option<u32> {
        (self.depth != 0).then(|| number(self.depth))
    }

    pub(super) fn depth_start(&self) -> u32 {
        number(self.depth_start)
    }

    pub(super) fn min_depth(&self) -> u32 {
        number(self.min_depth)
    }

    pub(super) fn max_depth(&self) -> u32 {
        number(self.max_depth)
    }

    pub(super) fn rules(&self) -> Rules {
        let gains = Gains { plain: self.gain, contested: self.contested.max(self.gain) };
        Rules { gains, rest: Nanos::from_millis(self.rest_ms.cast_unsigned()) }
    }

    #[inline]
    pub(super) fn window(&self) -> Nanos {
        Nanos::from_micros(self.window_us.cast_unsigned())
    }

    #[inline]
    pub(super) fn grace(&self) -> Nanos {
        Nanos::from_micros(self.grace_us.cast_unsigned())
    }

    #[inline]
    pub(super) fn run_us(&self) -> u64 {
        self.run_us.cast_unsigned()
    }

    pub(super) fn burst(&self) -> Nanos {
        Nanos::from_millis(self.burst.cast_unsigned())
    }

    #[inline]
    pub(super) fn class_age(&self) -> Nanos {
        Nanos::from_millis(self.class_age.cast_unsigned())
    }

    /// Returns whether prices are set as there.
    pub(super) fn has_prices_of(&self, other: &Self) -> bool {
        let prices = |set: &Self| (set.cost, set.cost_op_bytes, set.cost_write, set.cost_fua);
        prices(self) == prices(other)
    }

    pub(super) fn cost_mode(&self) -> CostMode {
        match self.cost {
            0 => CostMode::Learn,
            1 => CostMode::Requests,
            2 => CostMode::Bytes,
            _ => CostMode::Fixed,
        }
    }
}
