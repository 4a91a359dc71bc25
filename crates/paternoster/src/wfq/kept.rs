//! Places in the device that are kept for a tenant that has nothing waiting for a moment.
//!
//! ```text
//!   depth 20   │ ●●●●●●●●● of h  ●●●●●● of g │ 2 kept for h │ 3 free
//! ```
//!
//! A tenant with many requests outstanding has some of them on the way to and from its client. For
//! moments none of them waits, and others would take its places: they are lost to it, as nobody
//! gives them back. So a part of the depth (`keep_slots`) is not given to others while one that is
//! behind them has all its requests in the device or on the way. A request that a reservation
//! brings forward is not held.

use super::demand::Demand;
use super::node::{NodeId, Tree};

/// The nodes below the root for which places in the device are kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    absent: Vec<NodeId>,
}

impl Kept {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.absent.is_empty()
    }

    /// Returns whether a request below `top` has to wait, because what is left of `depth` is kept
    /// for others, who have so much of it at most.
    #[inline]
    pub(super) fn hold(
        &self,
        tree: &Tree,
        top: NodeId,
        in_device: u32,
        depth: u32,
        percent: u64,
    ) -> bool {
        if self.absent.is_empty() || in_device == 0 {
            return false;
        }
        let start = tree.nodes[top].start;
        let absent = self.absent.iter().filter(|&&absent| absent != top);
        let behind = absent.map(|&absent| &tree.nodes[absent]);
        let behind = behind.filter(|node| node.start < start);
        let kept: u64 = behind.map(|node| node.demand.kept_milli(depth)).sum();
        let most = u64::from(depth) * percent * 10;
        u64::from(in_device) * 1000 + kept.min(most) >= u64::from(depth) * 1000
    }

    /// Changes what `top`, a node below the root, has outstanding, and notes whether it is absent.
    #[inline]
    pub(super) fn change_outstanding(
        &mut self,
        tree: &mut Tree,
        top: NodeId,
        change: impl FnOnce(&mut Demand),
    ) {
        let node = &mut tree.nodes[top];
        change(&mut node.demand);
        if node.demand.is_absent() != node.absent {
            self.change_absence(tree, top);
        }
    }

    #[inline(never)]
    fn change_absence(&mut self, tree: &mut Tree, top: NodeId) {
        let absent = &mut tree.nodes[top].absent;
        *absent = !*absent;
        if *absent {
            self.absent.push(top);
        } else {
            self.absent.retain(|&other| other != top);
        }
    }
}
