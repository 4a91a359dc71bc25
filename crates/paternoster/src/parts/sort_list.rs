//! The sort list: requests by start sector; equal starts are in order of insertion.

use crate::arena::{Generation, RequestId, Slot};
use crate::parts::red_black::{Branch, Nodes, Place, Tree, TreeLinks};
use crate::request::{Bio, Sector};
use crate::requests::Requests;

/// A request in a sort list: what the tree reads on the way down, and its neighbours in sector
/// order. Two nodes are a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct SortNode {
    /// Where the request started when it was inserted.
    sector: Sector,
    links: TreeLinks,
    before: Slot,
    after: Slot,
    /// That of the request's key while it is in a list, else 0.
    generation: Generation,
}

/// The nodes of the requests of one elevator that are or were in a list, by slot.
#[derive(Debug)]
pub(crate) struct SortNodes(Vec<SortNode>);

impl Default for SortNodes {
    fn default() -> Self {
        Self(vec![SortNode::default()])
    }
}

impl SortNodes {
    /// Makes room for the node of a request.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, slot: Slot) {
        self.0.resize(slot.index() + 1, SortNode::default());
    }

    /// The slot of a request that is in a list.
    #[inline]
    fn slot(&self, rq: RequestId) -> Slot {
        debug_assert!(self.slot_if_listed(rq).is_some(), "a request is in a list");
        Slot::of(rq)
    }

    /// The slot of a request, or the empty one if it is in no list.
    #[inline]
    fn slot_if_listed(&self, rq: RequestId) -> Slot {
        let slot = Slot::of(rq);
        let node = self.0.get(slot.index());
        let is_listed = node.is_some_and(|node| node.generation == Generation::of(rq));
        if is_listed { slot } else { Slot::NONE }
    }

    #[inline]
    fn at(&self, slot: Slot) -> &SortNode {
        &self.0[slot.index()]
    }

    #[inline]
    fn at_mut(&mut self, slot: Slot) -> &mut SortNode {
        &mut self.0[slot.index()]
    }

    /// The gap at that place.
    #[inline]
    fn gap(&self, place: Place) -> Gap {
        let Place { parent, side } = place;
        let (before, after) = match side {
            Branch::Left => (self.at(parent).before, parent),
            Branch::Right => (parent, self.at(parent).after),
        };
        Gap { place, before, after }
    }

    /// The request in that slot, if it is not the empty one.
    #[inline]
    fn request(&self, slot: Slot) -> Option<RequestId> {
        slot.is_some().then(|| slot.key(self.at(slot).generation))
    }
}

/// Where a new node may go: its place in the tree, and between which two it is in sector order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    place: Place,
    before: Slot,
    after: Slot,
}

impl Nodes for SortNodes {
    #[inline]
    fn links(&self, slot: Slot) -> &TreeLinks {
        &self.at(slot).links
    }
    #[inline]
    fn links_mut(&mut self, slot: Slot) -> &mut TreeLinks {
        &mut self.at_mut(slot).links
    }
    #[inline]
    fn successor(&self, slot: Slot) -> Slot {
        self.at(slot).after
    }
}

/// Requests by start sector; equal starts are in order of insertion. A request is in one sort list
/// at a time, and has to be taken out before it is freed. When it grows, it may merge with its
/// neighbours there. Where its start changes, [`reposition`](Self::reposition) follows.
///
/// # Panics
///
/// Where a request is inserted that has never been made. In debug builds where one is inserted that
/// has neighbours in a sort list already, and where one is removed or moved that is in none, or is
/// not in this list, if its links show it.
#[derive(Debug, Default)]
pub struct SortList {
    tree: Tree,
    /// The request that starts lowest.
    first: Slot,
    /// Where a request of that start belongs. It is known from a search for a front merge, until
    /// the list changes: most bios merge nowhere, and their requests are inserted next.
    known: Option<(Sector, Gap)>,
}

impl SortList {
    /// The request that starts lowest.
    #[inline]
    pub fn first(&self, requests: &Requests) -> Option<RequestId> {
        requests.sort_nodes.request(self.first)
    }

    /// Inserts `rq` by its current start.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn insert(&mut self, requests: &mut Requests, rq: RequestId) {
        let sector = requests[rq].sector;
        let nodes = &mut requests.sort_nodes;
        let slot = Slot::of(rq);
        if slot.index() >= nodes.0.len() {
            nodes.grow(slot);
        }
        debug_assert!(self.tree.may_take(nodes, slot), "a request is in one sort list at a time");
        let Gap { place, before, after } = match self.known.take() {
            Some((start, gap)) if start == sector => {
                debug_assert_eq!(gap, self.gap_of(nodes, sector), "the list has not changed");
                gap
            }
            _ => self.gap_of(nodes, sector),
        };
        if before.is_none() {
            self.first = slot;
        } else {
            nodes.at_mut(before).after = slot;
        }
        if after.is_some() {
            nodes.at_mut(after).before = slot;
        }
        let node = nodes.at_mut(slot);
        (node.sector, node.before, node.after) = (sector, before, after);
        node.generation = Generation::of(rq);
        self.tree.insert_below(nodes, slot, place);
    }

    /// Looks for where a new request that starts at `sector` belongs.
    #[inline]
    fn gap_of(&self, nodes: &SortNodes, sector: Sector) -> Gap {
        let mut place = Place::ROOT;
        let mut slot = self.tree.root();
        while slot.is_some() {
            let node = nodes.at(slot);
            let side = Branch::right_if(sector >= node.sector);
            place = Place { parent: slot, side };
            slot = node.links.child(side);
        }
        nodes.gap(place)
    }

    /// Removes `rq`, which is in it. Returns the request that followed it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn remove(&mut self, requests: &mut Requests, rq: RequestId) -> Option<RequestId> {
        let nodes = &mut requests.sort_nodes;
        let slot = nodes.slot(rq);
        debug_assert!(self.tree.may_hold(nodes, slot), "a request is taken out where it is");
        self.known = None;
        self.tree.remove(nodes, slot);
        let node = nodes.at_mut(slot);
        let (before, after) = (node.before, node.after);
        node.generation = Generation::default();
        if before.is_none() {
            self.first = after;
        } else {
            nodes.at_mut(before).after = after;
        }
        if after.is_some() {
            nodes.at_mut(after).before = before;
        }
        if cfg!(debug_assertions) {
            let node = nodes.at_mut(slot);
            (node.before, node.after) = (Slot::NONE, Slot::NONE);
        }
        nodes.request(after)
    }

    /// Moves `rq` to its place after its start has changed.
    pub fn reposition(&mut self, requests: &mut Requests, rq: RequestId) {
        self.remove(requests, rq);
        self.insert(requests, rq);
    }

    /// Takes note that the start of `rq` has changed, without moving it.
    #[inline]
    pub(crate) fn set_start_in_place(&mut self, requests: &mut Requests, rq: RequestId) {
        self.known = None;
        let sector = requests[rq].sector;
        let slot = requests.sort_nodes.slot(rq);
        requests.sort_nodes.at_mut(slot).sector = sector;
    }

    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The request that follows `rq` in sector order; none if `rq` is in no list.
    pub fn after(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        let nodes = &requests.sort_nodes;
        nodes.request(nodes.at(nodes.slot_if_listed(rq)).after)
    }

    /// The request that precedes `rq` in sector order; none if `rq` is in no list.
    pub fn before(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        let nodes = &requests.sort_nodes;
        nodes.request(nodes.at(nodes.slot_if_listed(rq)).before)
    }

    /// Both neighbours in sector order of `rq`, which is in a list: the one before it and the one
    /// after it.
    #[inline]
    pub(crate) fn neighbours(
        requests: &Requests,
        rq: RequestId,
    ) -> (Option<RequestId>, Option<RequestId>) {
        let nodes = &requests.sort_nodes;
        let &SortNode { before, after, .. } = nodes.at(nodes.slot(rq));
        (nodes.request(before), nodes.request(after))
    }

    /// A request that starts at `sector`: of several, the first met on the way down, which
    /// depends on the tree's shape, in Linux as here.
    #[inline]
    pub fn find_start(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let nodes = &requests.sort_nodes;
        let mut slot = self.tree.root();
        while slot.is_some() && nodes.at(slot).sector != sector {
            let node = nodes.at(slot);
            slot = node.links.child(Branch::right_if(sector > node.sector));
        }
        nodes.request(slot)
    }

    /// A request that starts where `bio` ends, as [`find_start`](Self::find_start) finds it.
    ///
    /// ```text
    ///   … ●        [bio)         ● …      the way down to where the bio ends
    ///     before            after         leads between these two
    /// ```
    ///
    /// Where none starts inside the bio, its own request would belong there too, and an insertion
    /// that follows need not look again.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn find_front(&mut self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        let (nodes, end) = (&requests.sort_nodes, bio.end());
        let mut place = Place::ROOT;
        let mut slot = self.tree.root();
        while slot.is_some() {
            let node = nodes.at(slot);
            let side = Branch::right_if(end > node.sector);
            place = Place { parent: slot, side };
            slot = node.links.child(side);
        }
        let gap = nodes.gap(place);
        let Gap { before, after, .. } = gap;
        if after.is_some() && nodes.at(after).sector == end {
            return self.find_start(requests, end);
        }
        let is_free = before.is_none() || nodes.at(before).sector <= bio.sector;
        self.known = is_free.then_some((bio.sector, gap));
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

    /// Also where its slot was another request's, which had neighbours.
    #[test]
    fn request_that_is_in_no_list_has_no_neighbours() {
        let (mut list, mut requests) = (SortList::default(), Requests::default());
        let never = request(&mut requests, &bio(100..108));
        let [low, mid, high] = [92, 100, 108].map(|start| insert(&mut list, &mut requests, start));
        list.remove(&mut requests, mid);
        requests.remove(mid);
        let other = request(&mut requests, &bio(100..108));
        assert_eq!(Slot::of(other), Slot::of(mid));
        for rq in [never, mid, other] {
            let neighbours = [SortList::before(&requests, rq), SortList::after(&requests, rq)];
            assert_eq!(neighbours, [None, None]);
        }
        assert_eq!(SortList::neighbours(&requests, low), (None, Some(high)));
    }

    /// A bio at 100 belongs before the request at 108, until that one starts at 96.
    #[test]
    fn known_place_is_forgotten_where_a_start_changes_in_place() {
        let (mut list, mut requests) = (SortList::default(), Requests::default());
        let rq = insert(&mut list, &mut requests, 108);
        assert_eq!(list.find_front(&requests, &bio(100..104)), None);
        requests.get_mut(rq).sector = Sector(96);
        list.set_start_in_place(&mut requests, rq);
        let new = insert(&mut list, &mut requests, 100);
        assert_eq!(list.iter(&requests).collect::<Vec<_>>(), [rq, new]);
    }

    proptest! {
        /// The model is a list: a new request goes behind the last that does not start higher.
        #[test]
        fn requests_stand_by_start_and_equal_starts_by_insertion(
            steps in proptest::collection::vec((0_u64..16, any::<u16>(), 0_u8..4), 0..200),
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
                        list.find_front(&requests, &bio(start..start + 1));
                        requests.get_mut(rq).sector = Sector(start);
                        list.reposition(&mut requests, rq);
                        rq
                    }
                    _ => {
                        // A bio of 1 to 4 sectors looks for a front merge before.
                        let end = start + 1 + u64::from(pick % 4);
                        let found = list.find_front(&requests, &bio(start..end));
                        prop_assert_eq!(found, list.find_start(&requests, Sector(end)));
                        insert(&mut list, &mut requests, start)
                    }
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
