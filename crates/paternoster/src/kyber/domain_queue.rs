//! The requests of a domain that wait.
//!
//! ```text
//!   insert ──▶ arrived ●─●─●─●  ──all, once ready is empty──▶  ready ●─●─●  ──▶ dispatch
//!                 ▲ a bio may merge                               no bio merges
//! ```
//!
//! What has arrived becomes ready only when there is a token for one of it, so that a domain
//! without tokens goes on merging.

use crate::arena::RequestId;
use crate::parts::fifo::Fifo;
use crate::requests::Requests;
use crate::scheduler::InsertAt;
use crate::time::Instant;

/// Requests in the order in which they are dispatched: all that is ready, then what has arrived.
#[derive(Debug, Default)]
pub(super) struct DomainQueue {
    arrived: Counted,
    ready: Counted,
}

/// A fifo that knows its length.
#[derive(Debug, Default)]
struct Counted {
    fifo: Fifo,
    length: u32,
}

impl DomainQueue {
    /// Returns whether no request waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.ready.length == 0 && self.arrived.length == 0
    }

    /// How many requests are ready.
    pub(super) fn ready(&self) -> u32 {
        self.ready.length
    }

    /// Adds a request to those that have arrived, as the last or as the first.
    #[inline]
    pub(super) fn insert(
        &mut self,
        requests: &mut Requests,
        rq: RequestId,
        at: InsertAt,
        now: Instant,
    ) {
        self.arrived.length += 1;
        match at {
            InsertAt::Sorted => self.arrived.fifo.push(requests, rq, now),
            InsertAt::Head => self.arrived.fifo.push_front(requests, rq, now),
        }
    }

    /// Returns the newest request that a bio may merge into, or the one before `newer`.
    #[inline]
    pub(super) fn merge_candidate(
        &self,
        requests: &Requests,
        newer: Option<RequestId>,
    ) -> Option<RequestId> {
        match newer {
            None => self.arrived.fifo.last(),
            Some(rq) => Fifo::older(requests, rq),
        }
    }

    /// Takes out the first request. If none is ready, all that have arrived become so.
    #[inline]
    pub(super) fn pop(&mut self, requests: &mut Requests) -> Option<RequestId> {
        if self.ready.length == 0 {
            self.ready = std::mem::take(&mut self.arrived);
        }
        let rq = self.ready.fifo.pop(requests)?;
        self.ready.length -= 1;
        Some(rq)
    }

    /// Asserts that the lengths are right.
    pub(super) fn check(&self, requests: &Requests) {
        for list in [&self.arrived, &self.ready] {
            assert_eq!(list.length as usize, list.fifo.iter(requests).count(), "requests counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{bio, request};

    #[test]
    fn what_arrives_later_becomes_ready_only_when_all_before_it_is_dispatched() {
        let (mut requests, mut queue) = (Requests::default(), DomainQueue::default());
        let [a, b, c, d] = [0, 8, 16, 24].map(|at| request(&mut requests, &bio(at..at + 8)));
        let mut insert = |queue: &mut DomainQueue, rq, at| {
            queue.insert(&mut requests, rq, at, Instant::START);
        };
        insert(&mut queue, a, InsertAt::Sorted);
        insert(&mut queue, b, InsertAt::Sorted);
        assert_eq!(queue.pop(&mut requests), Some(a));
        assert_eq!((queue.ready(), queue.merge_candidate(&requests, None)), (1, None));
        let mut insert = |queue: &mut DomainQueue, rq, at| {
            queue.insert(&mut requests, rq, at, Instant::START);
        };
        insert(&mut queue, c, InsertAt::Sorted);
        insert(&mut queue, d, InsertAt::Head);
        assert_eq!(queue.merge_candidate(&requests, None), Some(c));
        assert_eq!(queue.merge_candidate(&requests, Some(c)), Some(d));
        assert_eq!(queue.merge_candidate(&requests, Some(d)), None);
        queue.check(&requests);
        let order = std::iter::from_fn(|| queue.pop(&mut requests));
        assert_eq!(order.collect::<Vec<_>>(), [b, d, c]);
        assert!(queue.is_empty());
    }
}
