//! Which of two requests is next for a head: a sweep over the device that may turn back a little.

use std::cmp::Reverse;

use crate::arena::RequestId;
use crate::parts::sort_list::SortList;
use crate::request::{Request, Requests, Sector, SectorCount};

/// How a head moves on from where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep {
    /// Where the head is.
    pub(crate) from: Sector,
    /// How far behind it a request may lie to be weighed against those ahead.
    pub(crate) back_max: SectorCount,
    /// How many times farther a request behind it counts than one ahead.
    pub(crate) back_penalty: u32,
}

impl Sweep {
    /// The request to send after `rq`, of those in `sorted`: the one behind it, from the last on
    /// the first, or the one before it.
    pub(crate) fn follower(
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

    /// Which of two requests to send: sync before async, one with the priority flag (metadata)
    /// before one without, then the cheaper to reach; a little way back counts `back_penalty`
    /// times, a longer one is a new sweep.
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

    /// How far the head has to go; where the request is too far behind it, its place in the next
    /// sweep, beyond all that are of this one. Computed without a jump: which it is, is as good as
    /// random.
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
    const SWEEP: Sweep = Sweep { from: Sector(1000), back_max: SectorCount(100), back_penalty: 2 };

    /// Of requests at those sectors the one that is better, whichever is named first.
    fn better(a: u64, b: u64) -> u64 {
        let mut requests = Requests::default();
        let [first, second] =
            [a, b].map(|start| Some(request(&mut requests, &bio(start..start + 8))));
        let found = SWEEP.better(&requests, first, second);
        assert_eq!(found, SWEEP.better(&requests, second, first), "the order does not matter");
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
