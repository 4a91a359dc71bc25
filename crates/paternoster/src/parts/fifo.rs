//! The fifo: requests in order of arrival, each with a deadline from its scheduler.

use crate::arena::{List, RequestId};
use crate::requests::{ByArrival, Requests};
use crate::time::Instant;

/// Requests in order of arrival. A request is in one fifo at a time. It has to be taken out before
/// it is freed.
///
/// # Panics
///
/// Where a request does not exist. In debug builds where a request is pushed that has neighbours in
/// a fifo already, and where one is taken out that is not in this fifo, if its links show it.
#[derive(Debug, Default)]
pub struct Fifo {
    list: List<RequestId, ByArrival>,
}

impl Fifo {
    /// Returns whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The request that arrived first.
    #[inline]
    pub fn first(&self) -> Option<RequestId> {
        self.list.first()
    }

    /// Appends `rq`, due at `deadline`.
    #[inline]
    pub fn push(&mut self, requests: &mut Requests, rq: RequestId, deadline: Instant) {
        debug_assert!(self.list.may_take(requests, rq), "a request is in one fifo at a time");
        requests.get_mut(rq).deadline = deadline;
        self.list.push_back(requests, rq);
    }

    /// Puts `rq` before all others, due at `deadline`.
    #[inline]
    pub fn push_front(&mut self, requests: &mut Requests, rq: RequestId, deadline: Instant) {
        debug_assert!(self.list.may_take(requests, rq), "a request is in one fifo at a time");
        requests.get_mut(rq).deadline = deadline;
        self.list.push_front(requests, rq);
    }

    /// Takes out `rq`, which is in it.
    #[inline]
    pub fn remove(&mut self, requests: &mut Requests, rq: RequestId) {
        debug_assert!(self.list.may_hold(requests, rq), "a request is taken out where it is");
        self.list.remove(requests, rq);
    }

    /// Takes out the request that arrived first.
    #[inline]
    pub fn pop(&mut self, requests: &mut Requests) -> Option<RequestId> {
        self.list.pop_front(requests)
    }

    /// Takes out `absorbed`. If it was due earlier, `rq` takes over its deadline and its place.
    pub fn absorb(&mut self, requests: &mut Requests, rq: RequestId, absorbed: RequestId) {
        debug_assert!(self.list.may_hold(requests, rq), "both requests are in this fifo");
        debug_assert!(self.list.may_hold(requests, absorbed), "both requests are in this fifo");
        let earlier = requests[absorbed].deadline;
        if earlier < requests[rq].deadline {
            self.list.remove(requests, rq);
            self.list.replace(requests, absorbed, rq);
            requests.get_mut(rq).deadline = earlier;
        } else {
            self.list.remove(requests, absorbed);
        }
    }

    /// Returns the request that arrived just before `rq`.
    #[inline]
    pub fn older(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        List::<RequestId, ByArrival>::before(requests, rq)
    }

    /// The request that arrived last.
    #[inline]
    pub fn last(&self) -> Option<RequestId> {
        self.list.last()
    }

    /// Returns all of them in order of arrival.
    pub fn iter<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = RequestId> + use<'a> {
        std::iter::successors(self.first(), |&rq| List::<RequestId, ByArrival>::after(requests, rq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{bio, request};
    use crate::time::Nanos;
    use proptest::prelude::*;

    fn due(millis: u64) -> Instant {
        Instant::START + Nanos::from_millis(millis)
    }

    fn three(requests: &mut Requests, deadlines: [u64; 3]) -> (Fifo, [RequestId; 3]) {
        let mut fifo = Fifo::default();
        let members = deadlines.map(|deadline| {
            let rq = request(requests, &bio(0..8));
            fifo.push(requests, rq, due(deadline));
            rq
        });
        (fifo, members)
    }

    #[test]
    #[should_panic(expected = "a request is in one fifo at a time")]
    fn request_is_not_pushed_twice() {
        let mut requests = Requests::default();
        let (mut fifo, [first, ..]) = three(&mut requests, [10, 20, 30]);
        fifo.push(&mut requests, first, due(40));
    }

    #[test]
    #[should_panic(expected = "a request is taken out where it is")]
    fn request_is_not_taken_out_of_a_fifo_that_it_is_not_in() {
        let mut requests = Requests::default();
        let (_fifo, [first, ..]) = three(&mut requests, [10, 20, 30]);
        Fifo::default().remove(&mut requests, first);
    }

    #[test]
    fn absorbing_an_earlier_request_takes_its_deadline_and_place() {
        let mut requests = Requests::default();
        let (mut fifo, [early, middle, late]) = three(&mut requests, [10, 20, 30]);
        fifo.absorb(&mut requests, late, early);
        assert_eq!(fifo.iter(&requests).collect::<Vec<_>>(), [late, middle]);
        assert_eq!(requests[late].deadline, due(10));
    }

    #[test]
    fn absorbing_a_later_request_changes_neither_deadline_nor_place() {
        let mut requests = Requests::default();
        let (mut fifo, [early, middle, late]) = three(&mut requests, [10, 20, 30]);
        fifo.absorb(&mut requests, middle, late);
        assert_eq!(fifo.iter(&requests).collect::<Vec<_>>(), [early, middle]);
        assert_eq!(requests[middle].deadline, due(20));
    }

    #[test]
    fn absorbing_a_request_of_the_same_deadline_keeps_the_place() {
        let mut requests = Requests::default();
        let (mut fifo, [first, _, last]) = three(&mut requests, [10, 20, 10]);
        fifo.absorb(&mut requests, last, first);
        assert_eq!(fifo.last(), Some(last));
    }

    proptest! {
        #[test]
        fn any_fifo_holds_what_a_plain_list_holds(
            steps in proptest::collection::vec((0_u8..6, any::<u16>(), 0_u64..50), 0..300),
        ) {
            let (mut fifo, mut requests) = (Fifo::default(), Requests::default());
            let mut model: Vec<(RequestId, u64)> = vec![];
            for (what, pick, deadline) in steps {
                let pick = usize::from(pick) % model.len().max(1);
                match what {
                    0 => {
                        let popped = fifo.pop(&mut requests);
                        let first = (!model.is_empty()).then(|| model.remove(0).0);
                        prop_assert_eq!(popped, first);
                    }
                    1 if !model.is_empty() => fifo.remove(&mut requests, model.remove(pick).0),
                    2 if model.len() > 1 => {
                        let gone = model[pick];
                        let heir = (pick + 1) % model.len();
                        fifo.absorb(&mut requests, model[heir].0, gone.0);
                        if gone.1 < model[heir].1 {
                            model[pick].0 = model[heir].0;
                            model.remove(heir);
                        } else {
                            model.remove(pick);
                        }
                    }
                    3 => {
                        let rq = request(&mut requests, &bio(0..8));
                        fifo.push_front(&mut requests, rq, due(deadline));
                        model.insert(0, (rq, deadline));
                    }
                    _ => {
                        let rq = request(&mut requests, &bio(0..8));
                        fifo.push(&mut requests, rq, due(deadline));
                        model.push((rq, deadline));
                    }
                }
                let held: Vec<_> =
                    fifo.iter(&requests).map(|rq| (rq, requests[rq].deadline)).collect();
                let expected: Vec<_> =
                    model.iter().map(|&(rq, deadline)| (rq, due(deadline))).collect();
                prop_assert_eq!(&held, &expected);
                prop_assert_eq!(fifo.last(), model.last().map(|entry| entry.0));
                let older = |&rq: &RequestId| Fifo::older(&requests, rq);
                let backwards = std::iter::successors(fifo.last(), older);
                prop_assert!(backwards.eq(model.iter().rev().map(|entry| entry.0)));
            }
        }
    }
}
