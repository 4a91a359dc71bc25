//! The waiting requests of one queue: by sector and by arrival, with the next one chosen.
//!
//! ```text
//!   sort list   ●──●──●──●──●        by start sector
//!                     ▲ next         in the order of `seek_order.rs`
//!   fifo        ●─●─●─●─●            by arrival; its oldest is overdue after its deadline
//! ```
//!
//! CFQ and BFQ have one in each queue; a simpler scheduler may have a single one. Which queue is
//! served, how the head moves and when an overdue request goes first is theirs. mq-deadline has
//! lists of its own: there a direction may have requests and no next one.

use crate::arena::RequestId;
use crate::parts::fifo::Fifo;
use crate::parts::seek_order::SeekOrder;
use crate::parts::sort_list::SortList;
use crate::request::{Bio, Sector};
use crate::requests::Requests;
use crate::time::Instant;

/// What became of the next request of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is the one that it was.
    Stays,
    /// Another request is next now.
    Changed,
}

/// The waiting requests of one queue, by sector and by arrival. One of them may be next: the
/// scheduler says which when it removes another.
#[derive(Debug, Default)]
pub struct WaitingRequests {
    sorted: SortList,
    fifo: Fifo,
    next: Option<RequestId>,
    count: u32,
}

impl WaitingRequests {
    /// Returns whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many requests wait.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The request to dispatch next.
    #[inline]
    pub fn next(&self) -> Option<RequestId> {
        self.next
    }

    /// Returns the oldest request, if its deadline has passed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn overdue(&self, requests: &Requests, now: Instant) -> Option<RequestId> {
        self.fifo.first().filter(|&oldest| now >= requests[oldest].deadline)
    }

    /// A request that starts at `sector`; of several, see [`SortList::find_start`].
    #[inline]
    pub fn find_start(&self, requests: &Requests, sector: Sector) -> Option<RequestId> {
        self.sorted.find_start(requests, sector)
    }

    /// A request that starts where `bio` ends; see [`SortList::find_front`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn find_front(&mut self, requests: &Requests, bio: &Bio) -> Option<RequestId> {
        self.sorted.find_front(requests, bio)
    }

    /// Inserts a request that is due at `deadline`. This does not make it the next one: CFQ and BFQ
    /// call `prefer` in the same event.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn insert(&mut self, requests: &mut Requests, rq: RequestId, deadline: Instant) {
        self.fifo.push(requests, rq, deadline);
        self.sorted.insert(requests, rq);
        self.count += 1;
    }

    /// Makes `rq` the next request if it is better than the one that is; `rq` is new, or starts
    /// elsewhere than before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn prefer(&mut self, requests: &Requests, order: SeekOrder, rq: RequestId) -> Next {
        let before = self.next;
        let next = order.better(requests, before, Some(rq));
        self.next = next;
        if next == before { Next::Stays } else { Next::Changed }
    }

    /// The request to dispatch after `rq`, in the order of `order`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn next_after(
        &self,
        requests: &Requests,
        order: SeekOrder,
        rq: RequestId,
    ) -> Option<RequestId> {
        order.next_after(requests, &self.sorted, rq)
    }

    /// Removes `rq`; `next` is the next request from now on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn remove(&mut self, requests: &mut Requests, rq: RequestId, next: Option<RequestId>) {
        debug_assert!(next != Some(rq), "what is taken out is not next");
        self.next = next;
        self.sorted.remove(requests, rq);
        self.fifo.remove(requests, rq);
        self.count -= 1;
    }

    /// Removes `absorbed`, which `rq` has absorbed. If it was next, `rq` is next now.
    #[inline]
    pub fn absorb(&mut self, requests: &mut Requests, rq: RequestId, absorbed: RequestId) {
        if self.next == Some(absorbed) {
            self.next = Some(rq);
        }
        self.sorted.remove(requests, absorbed);
        self.fifo.absorb(requests, rq, absorbed);
        self.count -= 1;
    }

    /// Moves `rq` to its place after its start has changed. CFQ and BFQ call `prefer` next.
    #[inline]
    pub fn reposition(&mut self, requests: &mut Requests, rq: RequestId) {
        self.sorted.reposition(requests, rq);
    }

    /// Takes note that `rq` starts elsewhere, and leaves it where it is in the order of sectors.
    #[inline]
    pub(crate) fn set_start_in_place(&mut self, requests: &mut Requests, rq: RequestId) {
        self.sorted.set_start_in_place(requests, rq);
    }

    /// All of them in sector order.
    pub fn iter<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = RequestId> + use<'a> {
        self.sorted.iter(requests)
    }

    /// Asserts what holds in CFQ and BFQ between events: both lists have the same requests, and one
    /// is next.
    pub(crate) fn check(&self, requests: &Requests) {
        let mut sorted: Vec<_> = self.sorted.iter(requests).collect();
        let mut fifo: Vec<_> = self.fifo.iter(requests).collect();
        assert_eq!(sorted.len(), self.count as usize, "requests in the sort list");
        let next = self.next.filter(|next| sorted.contains(next));
        assert_eq!(next, self.next, "what is next waits");
        assert_eq!(next.is_none(), sorted.is_empty(), "one of what waits is next");
        sorted.sort();
        fifo.sort();
        assert_eq!(sorted, fifo, "both lists hold the same");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SectorCount;
    use crate::request::tests::{bio, request};
    use crate::time::Nanos;
    use proptest::prelude::*;

    /// Upwards from there, then from the lowest on: nothing behind the head is weighed.
    fn upwards_from(from: u64) -> SeekOrder {
        SeekOrder { from: Sector(from), back_max: SectorCount(0), back_penalty: 1 }
    }

    fn due(millis: u64) -> Instant {
        Instant::START + Nanos::from_millis(millis)
    }

    /// What waits, the oldest first, as start, deadline and request.
    #[derive(Clone, Debug, Default)]
    struct Model(Vec<(u64, u64, RequestId)>);

    impl Model {
        /// Where the next request starts, of all but the one at `without`, by a look at each.
        fn next_start(&self, from: u64, without: usize) -> Option<u64> {
            let others = self.0.iter().enumerate().filter(|&(at, _)| at != without);
            let starts: Vec<u64> = others.map(|(_, &(start, ..))| start).collect();
            let ahead = starts.iter().copied().filter(|&start| start >= from).min();
            ahead.or(starts.iter().copied().min())
        }

        fn overdue(&self, now: u64) -> Option<RequestId> {
            self.0.first().filter(|oldest| oldest.1 <= now).map(|oldest| oldest.2)
        }
    }

    /// Does one step on both: inserts, takes out, has one absorb another, or moves a start.
    fn step(
        waiting: &mut WaitingRequests,
        requests: &mut Requests,
        model: &mut Model,
        [what, pick, start, deadline]: [u64; 4],
    ) -> Result<(), TestCaseError> {
        let held = model.0.len();
        let pick = usize::try_from(pick).expect("it is small") % held.max(1);
        match what {
            0 if held > 0 => {
                let (from, _, rq) = model.0[pick];
                let next = waiting.next_after(requests, upwards_from(from), rq);
                let next_start = next.map(|next| requests[next].sector.0);
                prop_assert_eq!(next_start, model.next_start(from, pick), "the one after it");
                waiting.remove(requests, rq, next);
                prop_assert_eq!(waiting.next(), next);
                model.0.remove(pick);
            }
            1 if held > 1 => {
                let (absorbed, heir) = (model.0[pick], (pick + 1) % held);
                let was_next = waiting.next() == Some(absorbed.2);
                let rq = model.0[heir].2;
                waiting.absorb(requests, rq, absorbed.2);
                prop_assert!(!was_next || waiting.next() == Some(rq), "it is next in its place");
                if absorbed.1 < model.0[heir].1 {
                    model.0[pick] = (model.0[heir].0, absorbed.1, rq);
                    model.0.remove(heir);
                } else {
                    model.0.remove(pick);
                }
            }
            2 if held > 0 => {
                let rq = model.0[pick].2;
                requests.get_mut(rq).sector = Sector(start);
                model.0[pick].0 = start;
                waiting.reposition(requests, rq);
                waiting.prefer(requests, upwards_from(0), rq);
            }
            _ => {
                let rq = request(requests, &bio(start..start + 8));
                let before = waiting.next().map(|next| requests[next].sector.0);
                waiting.insert(requests, rq, due(deadline));
                model.0.push((start, deadline, rq));
                let next = waiting.prefer(requests, upwards_from(0), rq);
                let lower = before.is_none_or(|before| start < before);
                prop_assert_eq!(
                    next == Next::Changed,
                    lower,
                    "from sector 0 the lower one is next"
                );
                prop_assert_eq!(waiting.next() == Some(rq), lower);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_waiting_requests_are_those_of_a_plain_list(
            steps in proptest::collection::vec(
                [0_u64..6, 0_u64..64, 0_u64..32, 0_u64..50], 0..200
            ),
            now in 0_u64..50,
        ) {
            let mut waiting = WaitingRequests::default();
            let (mut requests, mut model) = (Requests::default(), Model::default());
            for one in steps {
                step(&mut waiting, &mut requests, &mut model, one)?;
                waiting.check(&requests);
                prop_assert_eq!(waiting.count() as usize, model.0.len());
                prop_assert_eq!(waiting.is_empty(), model.0.is_empty());
                prop_assert_eq!(waiting.overdue(&requests, due(now)), model.overdue(now));
                let starts: Vec<u64> =
                    waiting.iter(&requests).map(|rq| requests[rq].sector.0).collect();
                let mut expected: Vec<u64> = model.0.iter().map(|&(start, ..)| start).collect();
                expected.sort_unstable();
                prop_assert_eq!(&starts, &expected);
                for (start, _, _) in &model.0 {
                    let found = waiting.find_start(&requests, Sector(*start));
                    prop_assert_eq!(found.map(|rq| requests[rq].sector.0), Some(*start));
                }
            }
        }
    }

    #[test]
    fn request_that_grew_in_place_is_known_by_its_new_start() {
        let (mut waiting, mut requests) = (WaitingRequests::default(), Requests::default());
        let rq = request(&mut requests, &bio(100..108));
        waiting.insert(&mut requests, rq, due(1));
        waiting.prefer(&requests, upwards_from(0), rq);
        requests.get_mut(rq).sector = Sector(92);
        waiting.set_start_in_place(&mut requests, rq);
        assert_eq!(waiting.find_start(&requests, Sector(92)), Some(rq));
        waiting.check(&requests);
    }
}
