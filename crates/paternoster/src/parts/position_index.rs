//! The position index: queues by the first sector of their next request, to find one that is near.
//!
//! An entry stays in its place when its sector changes, as in Linux, but comparisons read the
//! current sector. So the tree may be out of order for a while, and which neighbour is found
//! depends on its shape.

use std::fmt::Debug;

use crate::parts::red_black::{Branch, Nodes, Tree};
use crate::request::Sector;

/// Two positions are near if they are at most this many sectors apart: 4 MiB.
const CLOSE: u64 = 8 * 1024;

/// Returns whether two positions are near each other.
#[inline]
pub(crate) fn is_close(a: Sector, b: Sector) -> bool {
    a.0.abs_diff(b.0) <= CLOSE
}

/// The queues that may be on an index.
pub(crate) trait NextSectors<K>: Nodes<K> {
    /// Where the next request of `queue`, which is on an index, starts.
    fn next_sector(&self, queue: K) -> Sector;
}

/// A textbook red-black tree of queues by their next sector, at most one for each sector.
#[derive(Debug)]
pub(crate) struct PositionIndex<K> {
    tree: Tree<K>,
}

impl<K> Default for PositionIndex<K> {
    fn default() -> Self {
        Self { tree: Tree::default() }
    }
}

impl<K: Copy + Eq + Debug> PositionIndex<K> {
    /// Inserts `queue`, unless the next request of another queue on it starts at the same sector.
    /// Returns whether it was inserted.
    pub(crate) fn insert(&mut self, queues: &mut impl NextSectors<K>, queue: K) -> bool {
        let sector = queues.next_sector(queue);
        let mut below = None;
        let mut node = self.tree.root();
        while let Some(parent) = node {
            let there = queues.next_sector(parent);
            if sector == there {
                return false;
            }
            let branch = if sector > there { Branch::Right } else { Branch::Left };
            below = Some((parent, branch));
            node = Tree::child(queues, parent, branch);
        }
        self.tree.insert_below(queues, queue, below);
        true
    }

    pub(crate) fn remove(&mut self, queues: &mut impl NextSectors<K>, queue: K) {
        self.tree.remove(queues, queue);
    }

    /// Returns whether `queue`, which is on some index, is on this one: its parents lead to the
    /// root.
    pub(crate) fn contains(&self, queues: &impl NextSectors<K>, queue: K) -> bool {
        self.tree.root() == Some(Tree::root_above(queues, queue))
    }

    /// Returns the queue at `sector`. Without one, it returns the last queue on the way down if
    /// that is near, or else its neighbour on the other side of `sector` if that is near.
    pub(crate) fn nearest(&self, queues: &impl NextSectors<K>, sector: Sector) -> Option<K> {
        let mut node = self.tree.root();
        let mut last = None;
        while let Some(here) = node {
            let there = queues.next_sector(here);
            if there == sector {
                return Some(here);
            }
            last = Some((here, there));
            let branch = if sector > there { Branch::Right } else { Branch::Left };
            node = Tree::child(queues, here, branch);
        }
        let (last, there) = last?;
        if is_close(there, sector) {
            return Some(last);
        }
        let branch = if there < sector { Branch::Right } else { Branch::Left };
        let other = Tree::neighbour(queues, last, branch)?;
        is_close(queues.next_sector(other), sector).then_some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::red_black::TreeLinks;

    /// Queues by number, each with its next sector.
    struct Queues(Vec<(u64, TreeLinks<usize>)>);

    impl Nodes<usize> for Queues {
        fn links(&self, queue: usize) -> &TreeLinks<usize> {
            &self.0[queue].1
        }
        fn links_mut(&mut self, queue: usize) -> &mut TreeLinks<usize> {
            &mut self.0[queue].1
        }
    }

    impl NextSectors<usize> for Queues {
        fn next_sector(&self, queue: usize) -> Sector {
            Sector(self.0[queue].0)
        }
    }

    fn index_of(sectors: &[u64]) -> (PositionIndex<usize>, Queues) {
        let mut queues = Queues(sectors.iter().map(|&at| (at, TreeLinks::default())).collect());
        let mut index = PositionIndex::default();
        for queue in 0..sectors.len() {
            assert!(index.insert(&mut queues, queue), "sectors are distinct");
        }
        (index, queues)
    }

    #[test]
    fn second_queue_at_a_sector_stays_off() {
        let (mut index, mut queues) = index_of(&[100]);
        queues.0.push((100, TreeLinks::default()));
        assert!(!index.insert(&mut queues, 1));
        assert_eq!(index.nearest(&queues, Sector(100)), Some(0));
    }

    /// 20 000 at the root, 10 000 and 30 000 below it. Down to 21 000: root, then 30 000, which is
    /// not near; its neighbour below is. Down to 19 000: 10 000 is not near, 20 000 is.
    #[test]
    fn the_last_on_the_way_down_or_its_neighbour_across_is_nearest() {
        let (index, queues) = index_of(&[20_000, 10_000, 30_000]);
        assert_eq!(index.nearest(&queues, Sector(21_000)), Some(0));
        assert_eq!(index.nearest(&queues, Sector(19_000)), Some(0));
        assert_eq!(index.nearest(&queues, Sector(29_000)), Some(2));
        assert_eq!(index.nearest(&queues, Sector(50_000)), None);
    }

    /// Down to 26 000: 30 000 is the last and near, though 25 999 below the root is nearer.
    #[test]
    fn the_nearest_of_all_is_not_looked_for() {
        let (index, queues) = index_of(&[25_999, 10_000, 30_000]);
        assert_eq!(index.nearest(&queues, Sector(26_000)), Some(2));
    }

    #[test]
    fn near_is_up_to_4_mib() {
        assert!(is_close(Sector(0), Sector(8192)));
        assert!(!is_close(Sector(8193), Sector(0)));
    }
}
