//! Reservations: whether a node is behind what it shall have at least.
//!
//! ```text
//!   due: the time by which the next request has to be dispatched for the rate to hold
//!
//!        now − credit     now
//!   ──●──────┼───────●─────┼──────●───▶
//!     │              │            └ not due: it competes by its tag alone
//!     └ was idle     └ due: the least of all that are due goes first
//!   dispatched: due := max(due, now − credit) + amount / rate, whyever it was dispatched
//! ```
//!
//! As what it gets by weight counts too, it is brought forward only where its weight does not give
//! it as much. With two rates it is behind while it is behind one of them.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use super::cap::Amount;
use super::time::{Moment, before};
use crate::group_limits::GroupLimits;
use crate::time::{Instant, Nanos};
use crate::wfq::node::NodeId;
use crate::wfq::service::Units;

/// How much of its rate a node may have later because it asked for nothing.
const CREDIT: Nanos = Nanos::from_millis(10);

/// The reservation of a node.
#[derive(Debug, Default)]
pub(super) struct Reservation {
    ops: Option<Clock>,
    bytes: Option<Clock>,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    per_s: NonZeroU64,
    due: Moment,
}

impl Reservation {
    pub(super) fn set(&mut self, to: &GroupLimits) {
        for (clock, per_s) in [(&mut self.ops, to.min_iops), (&mut self.bytes, to.min_bps)] {
            // At another rate it is due at once.
            let due = clock.filter(|before| Some(before.per_s) == per_s);
            let due = due.map_or(Moment::ZERO, |before| before.due);
            *clock = per_s.map(|per_s| Clock { per_s, due });
        }
    }

    pub(super) fn count(&mut self, now: Instant, amount: Amount, charge: Units) {
        let earliest = Moment::of(before(now, CREDIT));
        if let Some(Clock { per_s, due }) = &mut self.ops {
            *due = (*due).max(earliest).after_fraction(charge.count(), *per_s);
        }
        if let Some(Clock { per_s, due }) = &mut self.bytes {
            *due = (*due).max(earliest).after(amount.bytes, *per_s);
        }
    }

    /// By when it has to be served next; none without a reservation.
    pub(super) fn due(&self) -> Option<Moment> {
        [self.ops, self.bytes].into_iter().flatten().map(|clock| clock.due).min()
    }
}

/// The active nodes that have a reservation, by when they are due.
#[derive(Debug, Default)]
pub(super) struct Dues {
    nodes: BTreeSet<(Moment, NodeId)>,
}

impl Dues {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Those that are due now, the first to be served first.
    #[inline]
    pub(super) fn until(&self, now: Instant) -> impl Iterator<Item = NodeId> {
        let now = Moment::of(now);
        self.nodes.iter().take_while(move |&&(due, _)| due <= now).map(|&(_, node)| node)
    }

    /// Moves a node to where it is due now, if it is active.
    pub(super) fn relist(&mut self, node: NodeId, from: Option<Moment>, to: Option<Moment>) {
        if let Some(from) = from {
            self.nodes.remove(&(from, node));
        }
        if let Some(to) = to {
            self.nodes.insert((to, node));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }
}
