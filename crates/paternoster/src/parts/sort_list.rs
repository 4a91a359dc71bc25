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
    pub(crate) fn first(&self, requests: &Requests) -> Option<RequestId> {
        self.tree.outermost(requests, Branch::Left)
    }

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

    pub(crate) fn remove(&mut self, requests: &mut Requests, rq: RequestId) {
        self.tree.remove(requests, rq);
    }

    /// Finds its place anew after its start has changed.
    pub(crate) fn reposition(&mut self, requests: &mut Requests, rq: RequestId) {
        self.tree.remove(requests, rq);
        self.insert(requests, rq);
    }

    /// The request that follows `rq` in sector order.
    pub(crate) fn after(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        Tree::neighbour(requests, rq, Branch::Right)
    }

    /// The request that precedes `rq` in sector order.
    pub(crate) fn before(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        Tree::neighbour(requests, rq, Branch::Left)
    }

    /// A request that starts at `sector`: of several, the first met on the way down, which
    /// depends on the tree's shape, in Linux as here.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{bio, request};
    use proptest::prelude::*;

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
                        requests[rq].sector = Sector(start);
                        list.reposition(&mut requests, rq);
                        rq
                    }
                    _ => insert(&mut list, &mut requests, start),
                };
                let at = model.partition_point(|&other| requests[other].sector.0 <= start);
                model.insert(at, rq);
                list.tree.check(&requests);
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
