//! The seek order: which of two requests is next. It prefers those ahead, and goes back only a
//! little.

use crate::arena::RequestId;
use crate::parts::sort_list::SortList;
use crate::request::{Sector, SectorCount};
use crate::requests::Requests;

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
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn next_after(
        &self,
        requests: &Requests,
        sorted: &SortList,
        rq: RequestId,
    ) -> Option<RequestId> {
        let (before, after) = SortList::neighbours(requests, rq);
        let after = after.or_else(|| sorted.first(requests).filter(|&first| first != rq));
        self.better(requests, after, before)
    }

    /// Returns the request to dispatch first: a synchronous one before an asynchronous one, then
    /// one with the priority flag (metadata) before one without, then the one that costs less. A
    /// short way back counts `back_penalty` times; a longer one comes after all that is ahead.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn better(
        &self,
        requests: &Requests,
        a: Option<RequestId>,
        b: Option<RequestId>,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        let (rq_a, rq_b) = (&requests[first], &requests[second]);
        if rq_a.urgency != rq_b.urgency {
            return if rq_a.urgency > rq_b.urgency { a } else { b };
        }
        if self.is_first(rq_a.sector, rq_b.sector) { a } else { b }
    }

    /// Returns whether `a` costs less than `b`. Of two that cost the same the higher sector is
    /// first; of two that are too far behind to be weighed, the lower one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_first(&self, a: Sector, b: Sector) -> bool {
        match (a >= self.from, b >= self.from) {
            (true, true) => a <= b,
            (true, false) => a.0 - self.from.0 <= self.cost_back(b).unwrap_or(u64::MAX),
            (false, true) => b.0 - self.from.0 > self.cost_back(a).unwrap_or(u64::MAX),
            (false, false) => match (self.cost_back(a), self.cost_back(b)) {
                // Both belong to a new sweep, which begins with the lowest sector.
                (None, None) => a <= b,
                (None, Some(_)) => false,
                (Some(_), None) => true,
                (Some(_), Some(_)) => a >= b,
            },
        }
    }

    /// Returns what the way back to `sector` costs; none where it is too far behind to be weighed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn cost_back(&self, sector: Sector) -> Option<u64> {
        let distance = self.from.0 - sector.0;
        let is_near = distance <= u64::from(self.back_max.0);
        is_near.then(|| distance.saturating_mul(self.back_penalty.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;
    use crate::request::tests::{bio, request};
    use crate::request::{Bio, BioFlags, Op};

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

    proptest! {
        /// The model ranks each request by itself: urgency, then whether it is too far behind, then
        /// the cost, then the higher sector.
        #[test]
        fn any_two_requests_are_in_the_order_of_their_ranks(
            starts in [800_u64..1200, 800_u64..1200],
            flags in [0_u8..4, 0_u8..4],
        ) {
            let mut requests = Requests::default();
            let [a, b] = [0, 1].map(|one| {
                let sync = if flags[one] & 1 == 1 { BioFlags::SYNC } else { BioFlags::empty() };
                let prio = if flags[one] & 2 == 2 { BioFlags::PRIO } else { BioFlags::empty() };
                let bio = bio(starts[one]..starts[one] + 8).with_flags(sync | prio);
                request(&mut requests, &Bio { op: Op::Write, ..bio })
            });
            let rank = |rq: RequestId| {
                let request = &requests[rq];
                let (at, back) = (request.sector.0, 1000_u64.saturating_sub(request.sector.0));
                let far = back > 100;
                let cost = if far { at } else if back > 0 { back * 2 } else { at - 1000 };
                (!request.is_sync(), !request.has_prio(), far, cost, Reverse(at))
            };
            let expected = if rank(a) <= rank(b) { a } else { b };
            prop_assert_eq!(ORDER.better(&requests, Some(a), Some(b)), Some(expected));
        }
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
