//! Who waits for a cap alone, by the time at which it may go on.

use std::collections::BTreeSet;

use crate::request::Direction;
use crate::time::Instant;
use crate::wfq::node::NodeId;

/// The nodes that their caps keep out of the order of service.
#[derive(Debug, Default)]
pub(super) struct Parking {
    /// A node may be here twice: its directions until different times. They are numbers here, which
    /// have an order.
    until: BTreeSet<(Instant, NodeId, u8)>,
}

impl Parking {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    /// When the first may go on.
    #[inline]
    pub(super) fn first(&self) -> Option<(Instant, NodeId)> {
        self.until.first().map(|&(at, node, _)| (at, node))
    }

    /// All of them; one that is here twice is here twice.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        self.until.iter().map(|&(_, node, _)| node).collect()
    }

    /// Moves a node in that direction to another place, if it is parked then.
    pub(super) fn move_to(
        &mut self,
        node: NodeId,
        direction: Direction,
        from: Option<Instant>,
        to: Option<Instant>,
    ) {
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.until.remove(&(from, node, direction as u8));
        }
        if let Some(to) = to {
            self.until.insert((to, node, direction as u8));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.until.len()
    }
}
