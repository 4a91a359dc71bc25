//! No scheduling: requests are dispatched in the order in which they arrived.
//!
//! This is the smallest complete scheduler; read it first. It has one list and does not sort. A bio
//! may merge into one of the newest requests of the list.

use crate::arena::RequestId;
use crate::parts::fifo::Fifo;
use crate::request::Bio;
use crate::scheduler::{Cx, InsertAt, MergeRules, Requeue, Rules, Scheduler};
use crate::trace::Trace;

/// Its name in sysfs.
pub(crate) const NAME: &str = "none";

/// Dispatches requests in order of arrival.
#[derive(Debug, Default)]
pub struct NoScheduler<T> {
    list: Fifo,
    trace: T,
}

impl<T: Trace> NoScheduler<T> {
    /// Makes an empty scheduler; its events go to `trace`.
    pub fn new(trace: T) -> Self {
        Self { list: Fifo::default(), trace }
    }
}

impl<T: Trace> Scheduler for NoScheduler<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        NAME
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert(&mut self, cx: &mut Cx, rq: RequestId, at: InsertAt) {
        match at {
            InsertAt::Sorted => self.list.push(&mut cx.requests, rq, cx.now),
            InsertAt::Head => self.list.push_front(&mut cx.requests, rq, cx.now),
        }
    }

    fn requeue(&mut self, cx: &mut Cx, rq: RequestId) -> Requeue {
        self.insert(cx, rq, InsertAt::Head);
        Requeue::Scheduler
    }

    fn rules(&self) -> Rules {
        Rules { merging: MergeRules::ListScan, ..Rules::default() }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn scan(&self, cx: &Cx, _bio: &Bio, newer: Option<RequestId>) -> Option<RequestId> {
        match newer {
            None => self.list.last(),
            Some(rq) => Fifo::older(&cx.requests, rq),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        self.list.pop(&mut cx.requests)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_work(&self) -> bool {
        !self.list.is_empty()
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
