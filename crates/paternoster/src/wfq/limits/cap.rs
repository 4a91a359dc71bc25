//! Caps: whether a node may have a request now, by its direction, its count and its bytes.
//!
//! ```text
//!   tat: the time at which all that was dispatched would be done at the rate of the cap
//!
//!      now            now + burst
//!   ────┼──────●───────────┼─────────▶      tat here: it may have one more
//!       │      tat         │      ●         tat here: when now + burst has come to it
//!   dispatched: tat := max(tat, now) + amount / rate
//! ```
//!
//! So over any time τ it has at most rate × (τ + burst), and one request: of the bytes of a request
//! only that they have begun is asked. A cap of 1 a second therefore lets 1 MiB pass at once.

use std::num::NonZeroU64;

use super::time::{Moment, before};
use crate::group_limits::GroupLimits;
use crate::request::{Direction, Op, Request};
use crate::time::{Instant, Nanos};

/// What a request that moves no bytes counts as, as a discard does under `io.max`.
const BYTES_OF_NONE: u64 = 512;

/// What a request counts as.
#[derive(Clone, Copy, Debug)]
pub(in crate::wfq) struct Amount {
    pub(in crate::wfq) direction: Direction,
    pub(in crate::wfq) bytes: u64,
}

impl Amount {
    #[inline]
    pub(in crate::wfq) fn of(rq: &Request) -> Self {
        let bytes = match rq.op {
            Op::Read | Op::Write => rq.sectors.bytes(),
            Op::Discard | Op::WriteZeroes | Op::Flush => BYTES_OF_NONE,
        };
        Self { direction: rq.direction(), bytes }
    }
}

/// The caps of a node.
#[derive(Debug, Default)]
pub(super) struct Caps {
    by_direction: [Pair; 2],
    /// Those of both directions together.
    together: Pair,
}

/// The caps of one direction, or of both.
#[derive(Debug, Default)]
struct Pair {
    requests: Option<Clock>,
    bytes: Option<Clock>,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    per_s: NonZeroU64,
    /// When all that was dispatched would be done at that rate.
    tat: Moment,
}

impl Caps {
    pub(super) fn set(&mut self, to: &GroupLimits, now: Instant, burst: Nanos, busy: bool) {
        let Self { by_direction: [reads, writes], together } = self;
        let all = [
            (&mut reads.requests, to.riops),
            (&mut reads.bytes, to.rbps),
            (&mut writes.requests, to.wiops),
            (&mut writes.bytes, to.wbps),
            (&mut together.requests, to.iops),
            (&mut together.bytes, to.bps),
        ];
        for (clock, per_s) in all {
            Clock::set(clock, per_s, now, burst, busy);
        }
    }

    pub(super) fn count(&mut self, now: Instant, amount: Amount) {
        for pair in [&mut self.by_direction[amount.direction as usize], &mut self.together] {
            if let Some(clock) = &mut pair.requests {
                clock.count(now, 1);
            }
            if let Some(clock) = &mut pair.bytes {
                clock.count(now, amount.bytes);
            }
        }
    }

    /// When it may have the next request of that direction.
    pub(super) fn ready(&self, direction: Direction, burst: Nanos) -> Instant {
        let pairs = [&self.by_direction[direction as usize], &self.together];
        let clocks = pairs.into_iter().flat_map(|Pair { requests, bytes }| [requests, bytes]);
        let tats = clocks.flatten().map(|clock| clock.tat);
        before(tats.max().unwrap_or(Moment::ZERO).ceil(), burst)
    }
}

impl Clock {
    /// Another rate holds from now on, for who waits and who comes: nobody waits for what was
    /// dispatched at the rate before. Who is busy as a cap comes has no burst, so that the cap is
    /// what it has from then on.
    fn set(
        clock: &mut Option<Self>,
        per_s: Option<NonZeroU64>,
        now: Instant,
        burst: Nanos,
        busy: bool,
    ) {
        let before = clock.take();
        let Some(per_s) = per_s else { return };
        let at_most = Moment::of(now + burst);
        let tat = match before {
            Some(before) if before.per_s == per_s => before.tat,
            _ if busy => at_most,
            Some(before) => before.tat.min(at_most),
            None => Moment::ZERO,
        };
        *clock = Some(Self { per_s, tat });
    }

    fn count(&mut self, now: Instant, amount: u64) {
        self.tat = self.tat.max(Moment::of(now)).after(amount, self.per_s);
    }
}
