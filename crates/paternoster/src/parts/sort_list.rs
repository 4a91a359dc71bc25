//! Requests by start sector; equal starts in order of insertion.

use crate::arena::RequestId;
use crate::parts::red_black::{Branch, Tree};
use crate::request::{Requests, Sector};

/// A tree of requests by start sector.
#[derive(Debug, Default)]
pub(crate) struct SortList {
    tree: Tree<RequestId>,
}

impl SortList {
    /// The request that starts lowest.
    #[inline]
    pub(crate) fn first(&self, requests: &Requests) -> Option<RequestId> {
        self.tree.outermost(requests, Branch::Left)
    }

    #[inline]
    pub(crate) fn insert(&mut self, requests: &mut Requests, rq: RequestId) {
        let sector = requests[rq].sector;
        let mut below = None;
        let mut node = self.tree.root();
        while let Some(parent) = node {
            let branch =
                if sector < requests[parent].sector { Branch::Left } else { Branch::Right };
            below = Some((parent, branch));
            node = Tree::child(requests, parent, branch);
        }
        self.tree.insert_below(requests, rq, below);
    }

    #[inline]
    pub(crate) fn remove(&mut self, requests: &mut Requests, rq: RequestId) {
        self.tree.remove(requests, rq);
    }

    /// Finds its place anew after its start has changed.
    pub(crate) fn reposition(&mut self, requests: &mut Requests, rq: RequestId) {
        self.tree.remove(requests, rq);
        self.insert(requests, rq);
    }

    /// The request that follows `rq` in sector order.
    #[inline]
    pub(crate) fn after(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        Tree::neighbour(requests, rq, Branch::Right)
    }

    /// The request that precedes `rq` in sector order.
    #[inline]
    pub(crate) fn before(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        Tree::neighbour(requests, rq, Branch::Left)
    }

    /// A request that starts at `sector`: of several, the first met on the way down, which
    /// depends on the tree's shape, in Linux as here.
    #[inline]
    pub(crate) fn find_start(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        let mut node = self.tree.root();
        while let Some(rq) = node {
            let start = requests[rq].sector;
            if start == sector {
                return Some(rq);
            }
            let branch = if sector < start { Branch::Left } else { Branch::Right };
            node = Tree::child(requests, rq, branch);
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
