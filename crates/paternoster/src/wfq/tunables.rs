//! The tunables of `wfq`. They are of this project: Linux has no such scheduler.

use crate::time::Nanos;
use crate::tunable::{number, tunables};

/// How requests are priced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CostMode {
    /// By `cost_op_bytes` and `cost_write`.
    Fixed,
    /// All requests cost the same, whatever their size.
    Requests,
    /// By their bytes alone.
    Bytes,
}

tunables! {
    pub(super) struct Tunables of super::NAME;
    depth: "requests", 16, 1, 4096,
        "How many requests may be in the device at once.";
    grace_us: "us", 0, 0, 100_000,
        "For how long a group or I/O context that has nothing waiting keeps its place in the order \
         of service. One that was away for longer is treated as if it had been away for this long.";
    cost: "mode", 3, 1, 3,
        "How a request is charged: 1 as one op whatever its size, 2 by its bytes alone, 3 by \
         cost_op_bytes.";
    cost_op_bytes: "bytes", 16_384, 512, 4_194_304,
        "How many bytes cost as much as one op: a request is charged one op and its bytes.";
    cost_write: "%", 100, 6, 6400,
        "What a write, trim or zeroing costs, in percent of a read of the same size.";
    cost_fua: "%", 100, 6, 6400,
        "What a write with FUA costs, in percent of a read of the same size.";
    burst: "ms", 100, 1, 10_000,
        "How much a cap allows at once, in time at its rate: a group that asked for nothing may \
         have that much later.";
    class_age: "ms", 1000, 1, 60_000,
        "After how long behind a more urgent class a class gets one request of 16 of its group.";
}

impl Tunables {
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        number(self.depth)
    }

    #[inline]
    pub(super) fn grace(&self) -> Nanos {
        Nanos::from_micros(self.grace_us.cast_unsigned())
    }

    pub(super) fn burst(&self) -> Nanos {
        Nanos::from_millis(self.burst.cast_unsigned())
    }

    #[inline]
    pub(super) fn class_age(&self) -> Nanos {
        Nanos::from_millis(self.class_age.cast_unsigned())
    }

    pub(super) fn cost_mode(&self) -> CostMode {
        match self.cost {
            1 => CostMode::Requests,
            2 => CostMode::Bytes,
            _ => CostMode::Fixed,
        }
    }
}
