//! The position index: queues by the first sector of their next request, to find one that is near.
//!
//! An entry stays in its place when its sector changes, as in Linux, but comparisons read the
//! current sector. So the tree may be out of order for a while, and which neighbour is found
//! depends on its shape. The sectors are in the nodes of the index: the scheduler reports each
//! change ([`PositionIndex::set_sector`]), and a search reads nothing of the queues.

use crate::arena::Slot;
use crate::parts::red_black::{Branch, Nodes, Place, Tree};
use crate::parts::tree_nodes::TreeNodes;
use crate::request::Sector;

/// Two positions are near if they are at most this many sectors apart: 4 MiB.
const CLOSE: u64 = 8 * 1024;

/// Returns whether two positions are near each other.
#[inline]
pub(crate) fn is_close(a: Sector, b: Sector) -> bool {
    a.0.abs_diff(b.0) <= CLOSE
}

/// A textbook red-black tree of queues by their next sector, at most one for each sector. A queue
/// is named by the slot of its node.
#[derive(Debug)]
pub(crate) struct PositionIndex<Q> {
    nodes: TreeNodes<Entry<Q>>,
    tree: Tree,
}

#[derive(Clone, Copy, Debug)]
struct Entry<Q> {
    /// Where the queue's next request starts.
    sector: Sector,
    queue: Q,
}

impl<Q> Default for PositionIndex<Q> {
    fn default() -> Self {
        Self { nodes: TreeNodes::default(), tree: Tree::default() }
    }
}

impl<Q: Copy + Eq> PositionIndex<Q> {
    /// Inserts `queue`, whose next request starts at `sector`, unless that of another queue on it
    /// does. Returns its slot if it was inserted.
    #[inline]
    pub(crate) fn insert(&mut self, queue: Q, sector: Sector) -> Option<Slot> {
        let place = self.place_of(sector)?;
        let slot = self.nodes.add(Entry { sector, queue });
        self.tree.insert_below(&mut self.nodes, slot, place);
        Some(slot)
    }

    /// Moves the queue at `slot` to where `sector` belongs, at which its next request starts. It
    /// leaves the index if the next request of another queue starts there; then this returns false.
    #[inline]
    pub(crate) fn reposition(&mut self, slot: Slot, sector: Sector) -> bool {
        self.tree.remove(&mut self.nodes, slot);
        let Some(place) = self.place_of(sector) else {
            self.nodes.free(slot);
            return false;
        };
        self.nodes[slot].sector = sector;
        self.tree.insert_below(&mut self.nodes, slot, place);
        true
    }

    /// Returns where a queue at `sector` belongs; nothing if another queue is there.
    #[inline]
    fn place_of(&self, sector: Sector) -> Option<Place> {
        let mut place = Place::ROOT;
        let mut node = self.tree.root();
        while node.is_some() {
            let there = self.nodes[node].sector;
            if sector == there {
                return None;
            }
            place = Place { parent: node, side: Branch::right_if(sector > there) };
            node = self.nodes.links(node).child(place.side);
        }
        Some(place)
    }

    /// Removes the queue at `slot`.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.tree.remove(&mut self.nodes, slot);
        self.nodes.free(slot);
    }

    /// Takes note that the next request of the queue at `slot` starts at `sector`. The queue keeps
    /// its place.
    #[inline]
    pub(crate) fn set_sector(&mut self, slot: Slot, sector: Sector) {
        self.nodes[slot].sector = sector;
    }

    /// Returns whether `queue`, whose next request starts at `sector`, is at `slot`: its parents
    /// lead to the root.
    pub(crate) fn has(&self, slot: Slot, queue: Q, sector: Sector) -> bool {
        let entry = self.nodes[slot];
        let is_there = self.tree.root() == Tree::root_above(&self.nodes, slot);
        is_there && entry.queue == queue && entry.sector == sector
    }

    /// Returns the queue at `sector`. Without one, it returns the last queue on the way down if
    /// that is near, or else its neighbour on the other side of `sector` if that is near.
    pub(crate) fn nearest(&self, sector: Sector) -> Option<Q> {
        let mut last = Slot::NONE;
        let mut node = self.tree.root();
        while node.is_some() {
            let Entry { sector: there, queue } = self.nodes[node];
            if there == sector {
                return Some(queue);
            }
            last = node;
            node = self.nodes.links(node).child(Branch::right_if(sector > there));
        }
        if last.is_none() {
            return None;
        }
        let Entry { sector: there, queue } = self.nodes[last];
        if is_close(there, sector) {
            return Some(queue);
        }
        let other = Tree::neighbour(&self.nodes, last, Branch::right_if(there < sector));
        let near = other.is_some() && is_close(self.nodes[other].sector, sector);
        near.then(|| self.nodes[other].queue)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn index_of(sectors: &[u64]) -> PositionIndex<usize> {
        let mut index = PositionIndex::default();
        for (queue, &sector) in sectors.iter().enumerate() {
            assert!(index.insert(queue, Sector(sector)).is_some(), "sectors are distinct");
        }
        index
    }

    #[test]
    fn second_queue_at_a_sector_stays_off() {
        let mut index = index_of(&[100]);
        assert_eq!(index.insert(1, Sector(100)), None);
        assert_eq!(index.nearest(Sector(100)), Some(0));
    }

    /// 20 000 at the root, 10 000 and 30 000 below it. Down to 21 000: root, then 30 000, which is
    /// not near; its neighbour below is. Down to 19 000: 10 000 is not near, 20 000 is.
    #[test]
    fn the_last_on_the_way_down_or_its_neighbour_across_is_nearest() {
        let index = index_of(&[20_000, 10_000, 30_000]);
        assert_eq!(index.nearest(Sector(21_000)), Some(0));
        assert_eq!(index.nearest(Sector(19_000)), Some(0));
        assert_eq!(index.nearest(Sector(29_000)), Some(2));
        assert_eq!(index.nearest(Sector(50_000)), None);
    }

    /// Down to 26 000: 30 000 is the last and near, though 25 999 below the root is nearer.
    #[test]
    fn the_nearest_of_all_is_not_looked_for() {
        let index = index_of(&[25_999, 10_000, 30_000]);
        assert_eq!(index.nearest(Sector(26_000)), Some(2));
    }

    /// 20 000 at the root goes to 40 000 and stays there. On the way down to 30 000 it leads to the
    /// left, where 10 000 is not near; its neighbour to the right is the root, which is not either.
    #[test]
    fn queue_keeps_its_place_though_its_sector_changes() {
        let mut index = PositionIndex::default();
        let root = index.insert(0, Sector(20_000)).expect("it is alone");
        for (queue, sector) in [(1, 10_000), (2, 30_000)] {
            index.insert(queue, Sector(sector)).expect("sectors are distinct");
        }
        index.set_sector(root, Sector(40_000));
        assert!(index.has(root, 0, Sector(40_000)));
        assert_eq!(index.nearest(Sector(30_000)), None, "2 is there, but not on the way");
        assert_eq!(index.nearest(Sector(40_000)), Some(0));
    }

    #[test]
    fn near_is_up_to_4_mib() {
        assert!(is_close(Sector(0), Sector(8192)));
        assert!(!is_close(Sector(8193), Sector(0)));
    }

    proptest! {
        /// The model is a map by sector.
        #[test]
        fn any_index_holds_one_queue_a_sector(
            steps in proptest::collection::vec((any::<bool>(), 0_u64..32), 0..200),
        ) {
            let (mut index, mut model) = (PositionIndex::default(), BTreeMap::new());
            for (queue, (removes, sector)) in steps.into_iter().enumerate() {
                // Far enough apart that nothing is near.
                let sector = Sector(sector * 10 * CLOSE);
                match model.get(&sector) {
                    Some(&(slot, other)) if removes => {
                        model.remove(&sector);
                        let to = Sector(sector.0 / 2 / (10 * CLOSE) * (10 * CLOSE));
                        if queue % 2 == 0 {
                            index.remove(slot);
                        } else if index.reposition(slot, to) {
                            prop_assert_eq!(model.insert(to, (slot, other)), None);
                        } else {
                            prop_assert!(model.contains_key(&to), "another one is there");
                        }
                    }
                    Some(_) => prop_assert_eq!(index.insert(queue, sector), None),
                    None => {
                        let slot = index.insert(queue, sector).expect("the sector is free");
                        model.insert(sector, (slot, queue));
                    }
                }
                index.tree.check(&index.nodes);
                for (&sector, &(slot, queue)) in &model {
                    prop_assert!(index.has(slot, queue, sector));
                    prop_assert_eq!(index.nearest(sector), Some(queue));
                    prop_assert_eq!(index.nearest(Sector(sector.0 + CLOSE)), Some(queue));
                    prop_assert_eq!(index.nearest(Sector(sector.0 + CLOSE + 1)), None);
                }
            }
        }
    }
}
