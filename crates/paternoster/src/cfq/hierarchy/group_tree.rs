//! The group tree: all groups with a busy queue, side by side in order of vdisktime, whatever their
//! depth in the hierarchy.

use std::cmp::Ordering;

use super::members::Members;
use crate::arena::{GroupId, Slot};
use crate::parts::keyed_tree::KeyedTree;

/// What a group was charged, scaled so that groups can be compared.
///
/// It wraps, so the order is that of signed differences. Linux takes differences from the minimum;
/// here they are taken between two groups. Both orders are equal while groups are less than 2⁶³
/// apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cfq) struct Vdisktime(pub(in crate::cfq) u64);

impl Vdisktime {
    #[inline]
    fn later(self, by: u64) -> Self {
        Self(self.0.wrapping_add(by))
    }
}

impl Ord for Vdisktime {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.wrapping_sub(other.0).cast_signed().cmp(&0)
    }
}

impl PartialOrd for Vdisktime {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A group's place on the tree.
#[derive(Debug, Default)]
pub(super) struct GroupPlace {
    /// Its vdisktime, or the last one that it had.
    vdisktime: Vdisktime,
    /// None while it has no busy queues.
    place: Option<Slot>,
}

impl GroupPlace {
    /// Returns whether the group is on the tree.
    pub(super) fn is_on_tree(&self) -> bool {
        self.place.is_some()
    }
}

/// The groups with busy queues, by vdisktime.
#[derive(Debug, Default)]
pub(in crate::cfq) struct GroupTree {
    tree: KeyedTree<Vdisktime, GroupId>,
    /// The greatest vdisktime that a chosen group had.
    min_vdisktime: Vdisktime,
    /// The groups on it, where they compete by weight alone.
    pub(super) members: Members,
}

impl GroupTree {
    /// Chooses the group to serve next; the minimum moves up to its vdisktime.
    #[inline]
    pub(super) fn choose(&mut self) -> Option<GroupId> {
        let (vdisktime, group) = self.tree.first()?;
        self.min_vdisktime = self.min_vdisktime.max(vdisktime);
        Some(group)
    }

    #[inline]
    pub(super) fn min_vdisktime(&self) -> Vdisktime {
        self.min_vdisktime
    }

    /// Puts the group, which becomes busy, right behind the last one, so far behind it. The group's
    /// former vdisktime is lost.
    #[inline]
    pub(super) fn join(&mut self, group: GroupId, place: &mut GroupPlace, delay: u64) {
        place.vdisktime = match self.tree.last() {
            Some((last, _)) => last.later(delay),
            None => self.min_vdisktime,
        };
        place.place = Some(self.tree.insert(place.vdisktime, group));
    }

    /// Takes the group off the tree.
    #[inline]
    pub(super) fn leave(&mut self, place: &mut GroupPlace) {
        let place = place.place.take().expect("a group leaves the tree once");
        self.tree.remove(place);
    }

    /// Moves the group so far back. Returns its vdisktime.
    #[inline]
    pub(super) fn charge(&mut self, place: &mut GroupPlace, by: u64) -> Vdisktime {
        place.vdisktime = place.vdisktime.later(by);
        let on_tree = place.place.expect("a group that is charged is on the tree");
        self.tree.set_key(on_tree, place.vdisktime);
        place.vdisktime
    }
}
