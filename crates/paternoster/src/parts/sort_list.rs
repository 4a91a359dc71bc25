//! The sort list: requests by start sector; equal starts are in order of insertion.

use std::hint::select_unpredictable;

use crate::arena::{RequestId, Slot};
use crate::parts::red_black::{Branch, Nodes, Tree, TreeLinks};
use crate::request::{Requests, Sector};

/// The part of a request that the tree reads. On the way down it reads nothing else: half a cache
/// line for each level.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct SortNode {
    /// Where the request started when it was inserted.
    sector: Sector,
    rq: RequestId,
    links: TreeLinks<Slot>,
}

impl SortNode {
    fn new(rq: RequestId) -> Self {
        Self { sector: Sector(0), rq, links: TreeLinks::default() }
    }
}

/// The nodes of all requests of one elevator, by slot. The first belongs to no request; a search
/// ends there.
#[derive(Debug)]
pub(crate) struct SortNodes(Vec<SortNode>);

impl Default for SortNodes {
    fn default() -> Self {
        Self(vec![SortNode::new(RequestId::default())])
    }
}

impl SortNodes {
    /// Makes the node of a request that was just made.
    #[inline]
    pub(crate) fn add(&mut self, rq: RequestId) {
        let node = SortNode::new(rq);
        let index = Slot::of(rq).index();
        if index >= self.0.len() {
            self.0.resize(index + 1, node);
        }
        self.0[index] = node;
    }

    /// The slot of `rq`, which exists.
    #[inline]
    fn slot(&self, rq: RequestId) -> Slot {
        let slot = Slot::of(rq);
        assert!(self.0[slot.index()].rq == rq, "a request exists while it is in a list");
        slot
    }

    #[inline]
    fn at(&self, slot: Option<Slot>) -> &SortNode {
        &self.0[slot.map_or(0, Slot::index)]
    }

    /// Takes one step of a search: returns the node on that side below `node`, and its slot. The
    /// side cannot be predicted, so both nodes are looked up and one is chosen without a branch.
    #[inline]
    fn below(&self, node: &SortNode, branch: Branch) -> (Option<Slot>, &SortNode) {
        let [left, right] = [Branch::Left, Branch::Right].map(|branch| node.links.child(branch));
        let to_left = branch == Branch::Left;
        let slot = select_unpredictable(to_left, left, right);
        (slot, select_unpredictable(to_left, self.at(left), self.at(right)))
    }

    #[inline]
    fn neighbour(&self, rq: RequestId, branch: Branch) -> Option<RequestId> {
        Tree::neighbour(self, self.slot(rq), branch).map(|slot| self.0[slot.index()].rq)
    }
}

impl Nodes<Slot> for SortNodes {
    #[inline]
    fn links(&self, slot: Slot) -> &TreeLinks<Slot> {
        &self.0[slot.index()].links
    }
    #[inline]
    fn links_mut(&mut self, slot: Slot) -> &mut TreeLinks<Slot> {
        &mut self.0[slot.index()].links
    }
}

/// Requests by start sector; equal starts are in order of insertion. A request is in one sort list
/// at a time, and has to be taken out before it is freed. When it grows, it may merge with its
/// neighbours there. Where its start changes, [`reposition`](Self::reposition) follows.
///
/// # Panics
///
/// Where a request does not exist. In debug builds where a request is inserted that has neighbours
/// in a sort list already, and where one is removed that is not in this list, if its links show it.
#[derive(Debug, Default)]
pub struct SortList {
    tree: Tree<Slot>,
}

impl SortList {
    /// The request that starts lowest.
    #[inline]
    pub fn first(&self, requests: &Requests) -> Option<RequestId> {
        let nodes = &requests.sort_nodes;
        self.tree.outermost(nodes, Branch::Left).map(|slot| nodes.0[slot.index()].rq)
    }

    /// Inserts `rq` by its current start.
    #[inline]
    pub fn insert(&mut self, requests: &mut Requests, rq: RequestId) {
        let sector = requests[rq].sector;
        let nodes = &mut requests.sort_nodes;
        let slot = nodes.slot(rq);
        debug_assert!(self.tree.may_take(nodes, slot), "a request is in one sort list at a time");
        nodes.0[slot.index()].sector = sector;
        let mut below = None;
        let mut place = self.tree.root();
        let mut node = nodes.at(place);
        while let Some(parent) = place {
            let branch = if sector < node.sector { Branch::Left } else { Branch::Right };
            below = Some((parent, branch));
            (place, node) = nodes.below(node, branch);
        }
        self.tree.insert_below(nodes, slot, below);
    }

    /// Removes `rq`, which is in it.
    #[inline]
    pub fn remove(&mut self, requests: &mut Requests, rq: RequestId) {
        let slot = requests.sort_nodes.slot(rq);
        let nodes = &requests.sort_nodes;
        debug_assert!(self.tree.may_hold(nodes, slot), "a request is taken out where it is");
        self.tree.remove(&mut requests.sort_nodes, slot);
    }

    /// Moves `rq` to its place after its start has changed.
    pub fn reposition(&mut self, requests: &mut Requests, rq: RequestId) {
        self.remove(requests, rq);
        self.insert(requests, rq);
    }

    /// Takes note that the start of `rq` has changed, without moving it.
    #[inline]
    pub(crate) fn set_start_in_place(requests: &mut Requests, rq: RequestId) {
        let sector = requests[rq].sector;
        let slot = requests.sort_nodes.slot(rq);
        requests.sort_nodes.0[slot.index()].sector = sector;
    }

    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tree.root().is_none()
    }

    /// The request that follows `rq` in sector order.
    #[inline]
    pub fn after(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        requests.sort_nodes.neighbour(rq, Branch::Right)
    }

    /// The request that precedes `rq` in sector order.
    #[inline]
    pub fn before(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        requests.sort_nodes.neighbour(rq, Branch::Left)
    }

    /// A request that starts at `sector`: of several, the first met on the way down, which
    /// depends on the tree's shape, in Linux as here.
    #[inline]
    pub fn find_start(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let nodes = &requests.sort_nodes;
        let mut place = self.tree.root();
        let mut node = nodes.at(place);
        while place.is_some() {
            if node.sector == sector {
                return Some(node.rq);
            }
            let branch = if sector < node.sector { Branch::Left } else { Branch::Right };
            (place, node) = nodes.below(node, branch);
        }
        None
    }

    /// All of them in sector order.
    pub fn iter<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = RequestId> + use<'a> {
        std::iter::successors(self.first(requests), |&rq| Self::after(requests, rq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{bio, request};
    use proptest::prelude::*;

    #[test]
    #[should_panic(expected = "a request is in one sort list at a time")]
    fn request_is_not_inserted_twice() {
        let (mut list, mut requests) = (SortList::default(), Requests::default());
        let rq = insert(&mut list, &mut requests, 100);
        list.insert(&mut requests, rq);
    }

    #[test]
    #[should_panic(expected = "a request is taken out where it is")]
    fn request_is_not_removed_from_a_list_that_it_is_not_in() {
        let (mut list, mut requests) = (SortList::default(), Requests::default());
        let rq = insert(&mut list, &mut requests, 100);
        SortList::default().remove(&mut requests, rq);
    }

    fn insert(list: &mut SortList, requests: &mut Requests, sector: u64) -> RequestId {
        let rq = request(requests, &bio(sector..sector + 8));
        list.insert(requests, rq);
        rq
    }

    /// Three equal starts: the second insertion goes right of the first, the third right of the
    /// second, and one turn brings the second to the root. So it is found, neither the oldest nor
    /// the newest.
    #[test]
    fn of_equal_starts_the_first_met_on_the_way_down_is_found() {
        let (mut list, mut requests) = (SortList::default(), Requests::default());
        let equals = [100, 100, 100].map(|start| insert(&mut list, &mut requests, start));
        assert_eq!(list.find_start(&requests, Sector(100)), Some(equals[1]));
        // A fourth goes below the third and moves nothing but colours.
        insert(&mut list, &mut requests, 100);
        assert_eq!(list.find_start(&requests, Sector(100)), Some(equals[1]));
        // Without the root its successor, the third, takes its place.
        list.remove(&mut requests, equals[1]);
        assert_eq!(list.find_start(&requests, Sector(100)), Some(equals[2]));
        assert_eq!(list.find_start(&requests, Sector(99)), None);
    }

    proptest! {
        /// The model is a list: a new request goes behind the last that does not start higher.
        #[test]
        fn requests_stand_by_start_and_equal_starts_by_insertion(
            steps in proptest::collection::vec((0_u64..16, any::<u16>(), 0_u8..3), 0..200),
        ) {
            let (mut list, mut requests) = (SortList::default(), Requests::default());
            let mut model: Vec<RequestId> = vec![];
            for (start, pick, what) in steps {
                let picked = (!model.is_empty()).then(|| usize::from(pick) % model.len().max(1));
                let rq = match (what, picked) {
                    (0, Some(picked)) => {
                        list.remove(&mut requests, model.remove(picked));
                        continue;
                    }
                    (1, Some(picked)) => {
                        let rq = model.remove(picked);
                        requests.get_mut(rq).sector = Sector(start);
                        list.reposition(&mut requests, rq);
                        rq
                    }
                    _ => insert(&mut list, &mut requests, start),
                };
                let at = model.partition_point(|&other| requests[other].sector.0 <= start);
                model.insert(at, rq);
                list.tree.check(&requests.sort_nodes);
                prop_assert_eq!(list.iter(&requests).collect::<Vec<_>>(), model.clone());
                let found = list.find_start(&requests, Sector(start));
                prop_assert_eq!(found.map(|rq| requests[rq].sector), Some(Sector(start)));
                for pair in model.windows(2) {
                    prop_assert_eq!(SortList::after(&requests, pair[0]), Some(pair[1]));
                    prop_assert_eq!(SortList::before(&requests, pair[1]), Some(pair[0]));
                }
            }
        }
    }
}
