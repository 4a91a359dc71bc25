//! The seek order: which of two requests is next. It prefers those ahead, and goes back only a
//! little.

use std::cmp::Reverse;

use crate::arena::RequestId;
use crate::parts::sort_list::SortList;
use crate::request::{Request, Requests, Sector, SectorCount};

/// The rule for the next request after a position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeekOrder {
    /// The position.
    pub(crate) from: Sector,
    /// How far behind it a request may lie to be compared with those ahead.
    pub(crate) back_max: SectorCount,
    /// The factor by which the distance of a request behind it counts more.
    pub(crate) back_penalty: u32,
}

impl SeekOrder {
    /// Returns the request of `sorted` to dispatch after `rq`: the better of the one before it and
    /// the one behind it. Behind the last is the first.
    pub(crate) fn next_after(
        &self,
        requests: &Requests,
        sorted: &SortList,
        rq: RequestId,
    ) -> Option<RequestId> {
        let after = SortList::after(requests, rq)
            .or_else(|| sorted.first(requests).filter(|&first| first != rq));
        let before = SortList::before(requests, rq);
        self.better(requests, after, before)
    }

    /// Returns the request to dispatch first: a synchronous one before an asynchronous one, then
    /// one with the priority flag (metadata) before one without, then the one that costs less. A
    /// short way back counts `back_penalty` times; a longer one comes after all that is ahead.
    #[inline]
    pub(crate) fn better(
        &self,
        requests: &Requests,
        a: Option<RequestId>,
        b: Option<RequestId>,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        let (rq_a, rq_b) = (&requests[first], &requests[second]);
        if rq_a.is_sync() != rq_b.is_sync() {
            return if rq_a.is_sync() { a } else { b };
        }
        if rq_a.has_prio() != rq_b.has_prio() {
            return if rq_a.has_prio() { a } else { b };
        }
        let rank = |rq: &Request| (self.cost(rq), Reverse(rq.sector));
        if rank(rq_a) <= rank(rq_b) { a } else { b }
    }

    /// Returns the distance to the request. For one too far behind it is beyond all those ahead, in
    /// sector order. It is computed without a branch, which could not be predicted.
    fn cost(&self, rq: &Request) -> u128 {
        let distance = rq.sector.0.abs_diff(self.from.0);
        let ahead = rq.sector >= self.from;
        let too_far_behind = !ahead && distance > u64::from(self.back_max.0);
        let here = distance.saturating_mul(if ahead { 1 } else { self.back_penalty.into() });
        let cost = if too_far_behind { rq.sector.0 } else { here };
        (u128::from(too_far_behind) << u64::BITS) | u128::from(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{bio, request};

    /// A head at 1000 that looks 100 sectors back, at twice the price.
    const ORDER: SeekOrder =
        SeekOrder { from: Sector(1000), back_max: SectorCount(100), back_penalty: 2 };

    /// Of requests at those sectors the one that is better, whichever is named first.
    fn better(a: u64, b: u64) -> u64 {
        let mut requests = Requests::default();
        let [first, second] =
            [a, b].map(|start| Some(request(&mut requests, &bio(start..start + 8))));
        let found = ORDER.better(&requests, first, second);
        assert_eq!(found, ORDER.better(&requests, second, first), "the order does not matter");
        requests[found.expect("one of two")].sector.0
    }

    #[test]
    fn little_way_back_counts_double_and_a_longer_one_is_a_new_sweep() {
        assert_eq!(better(1041, 980), 980); // 40 against 41
        assert_eq!(better(1039, 980), 1039); // 39 against 40
        assert_eq!(better(1040, 980), 1040); // 40 each: the higher
        assert_eq!(better(900, 1_000_000), 900); // 100 back is weighed
        assert_eq!(better(899, 1_000_000), 1_000_000); // 101 is not
        assert_eq!(better(899, 5), 5); // of the next sweep the lower
    }
}
