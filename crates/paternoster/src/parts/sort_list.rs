//! Requests by start sector; equal starts in order of insertion.

use crate::arena::{RequestId, Slot};
use crate::parts::red_black::{Branch, Nodes, Tree, TreeLinks};
use crate::request::{Requests, Sector};

/// What a tree looks at of a request. On the way down nothing else is read: half a cache line a
/// level.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct SortNode {
    /// Where the request started when it was inserted.
    sector: Sector,
    rq: RequestId,
    links: TreeLinks<Slot>,
}

/// The nodes of all requests of one elevator, by slot.
#[derive(Debug, Default)]
pub(crate) struct SortNodes(Vec<SortNode>);

impl SortNodes {
    /// Makes the node of a request that was just made.
    #[inline]
    pub(crate) fn add(&mut self, rq: RequestId) {
        let node = SortNode { sector: Sector(0), rq, links: TreeLinks::default() };
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

/// A tree of requests by start sector.
#[derive(Debug, Default)]
pub(crate) struct SortList {
    tree: Tree<Slot>,
}

impl SortList {
    /// The request that starts lowest.
    #[inline]
    pub(crate) fn first(&self, requests: &Requests) -> Option<RequestId> {
        let nodes = &requests.sort_nodes;
        self.tree.outermost(nodes, Branch::Left).map(|slot| nodes.0[slot.index()].rq)
    }

    #[inline]
    pub(crate) fn insert(&mut self, requests: &mut Requests, rq: RequestId) {
        let sector = requests[rq].sector;
        let nodes = &mut requests.sort_nodes;
        let slot = nodes.slot(rq);
        nodes.0[slot.index()].sector = sector;
        let mut below = None;
        let mut node = self.tree.root();
        while let Some(parent) = node {
            let SortNode { sector: start, links, .. } = &nodes.0[parent.index()];
            let branch = if sector < *start { Branch::Left } else { Branch::Right };
            below = Some((parent, branch));
            node = links.child(branch);
        }
        self.tree.insert_below(nodes, slot, below);
    }

    #[inline]
    pub(crate) fn remove(&mut self, requests: &mut Requests, rq: RequestId) {
        let slot = requests.sort_nodes.slot(rq);
        self.tree.remove(&mut requests.sort_nodes, slot);
    }

    /// Finds its place anew after its start has changed.
    pub(crate) fn reposition(&mut self, requests: &mut Requests, rq: RequestId) {
        self.remove(requests, rq);
        self.insert(requests, rq);
    }

    /// The request that follows `rq` in sector order.
    #[inline]
    pub(crate) fn after(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        requests.sort_nodes.neighbour(rq, Branch::Right)
    }

    /// The request that precedes `rq` in sector order.
    #[inline]
    pub(crate) fn before(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        requests.sort_nodes.neighbour(rq, Branch::Left)
    }

    /// A request that starts at `sector`: of several, the first met on the way down, which
    /// depends on the tree's shape, in Linux as here.
    #[inline]
    pub(crate) fn find_start(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let mut node = self.tree.root();
        while let Some(slot) = node {
            let SortNode { sector: start, rq, links } = &requests.sort_nodes.0[slot.index()];
            if *start == sector {
                return Some(*rq);
            }
            node = links.child(if sector < *start { Branch::Left } else { Branch::Right });
        }
        None
    }

    /// All of them in sector order.
    pub(crate) fn iter<'a>(
        &self,
        requests: &'a Requests,
    ) -> impl Iterator<Item = RequestId> + use<'a> {
        std::iter::successors(self.first(requests), |&rq| Self::after(requests, rq))
    }
}
