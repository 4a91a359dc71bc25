//! Requests in order of arrival, each with the deadline that its scheduler gave it.

use crate::arena::{List, RequestId};
use crate::request::{ByArrival, Requests};
use crate::time::Instant;

/// A list in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    list: List<RequestId, ByArrival>,
}

impl Fifo {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The request that arrived first.
    #[inline]
    pub(crate) fn first(&self) -> Option<RequestId> {
        self.list.first()
    }

    /// Appends `rq`, due at `deadline`.
    #[inline]
    pub(crate) fn push(&mut self, requests: &mut Requests, rq: RequestId, deadline: Instant) {
        requests[rq].deadline = deadline;
        self.list.push_back(requests, rq);
    }

    /// Puts `rq` before all others, due at `deadline`.
    #[inline]
    pub(crate) fn push_front(&mut self, requests: &mut Requests, rq: RequestId, deadline: Instant) {
        requests[rq].deadline = deadline;
        self.list.push_front(requests, rq);
    }

    #[inline]
    pub(crate) fn remove(&mut self, requests: &mut Requests, rq: RequestId) {
        self.list.remove(requests, rq);
    }

    #[inline]
    pub(crate) fn pop(&mut self, requests: &mut Requests) -> Option<RequestId> {
        self.list.pop_front(requests)
    }

    /// `absorbed` leaves; where it was due earlier, `rq` takes over its deadline and its place.
    pub(crate) fn absorb(&mut self, requests: &mut Requests, rq: RequestId, absorbed: RequestId) {
        let earlier = requests[absorbed].deadline;
        if earlier < requests[rq].deadline {
            self.list.remove(requests, rq);
            self.list.replace(requests, absorbed, rq);
            requests[rq].deadline = earlier;
        } else {
            self.list.remove(requests, absorbed);
        }
    }

    /// The request before `rq`, counted from the newest: what arrived just earlier.
    #[inline]
    pub(crate) fn older(requests: &Requests, rq: RequestId) -> Option<RequestId> {
        List::<RequestId, ByArrival>::before(requests, rq)
    }

    /// The request that arrived last.
    #[inline]
    pub(crate) fn last(&self) -> Option<RequestId> {
        self.list.last()
    }

    /// All of them, the first to arrive first.
    pub(crate) fn iter<'a>(
        &self,
        requests: &'a Requests,
    ) -> impl Iterator<Item = RequestId> + use<'a> {
        std::iter::successors(self.first(), |&rq| List::<RequestId, ByArrival>::after(requests, rq))
    }
}
