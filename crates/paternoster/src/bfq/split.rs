//! Splits. While a queue is merged with others, the state that it had is saved for its owner. A
//! user that leaves a shared queue gets that state back.

use crate::arena::IocId;
use crate::bfq::Bfq;
use crate::bfq::injection_limit::InjectionLimit;
use crate::bfq::io_pattern::IoPattern;
use crate::bfq::queue_id::QueueId;
use crate::bfq::raising::Raising;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::trace::{Event, QueueEvent, Trace};

/// A queue as it was when its owner was last moved to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    injection: InjectionLimit,
    io_pattern: IoPattern,
    weight: u32,
    raising: Raising,
    in_large_burst: bool,
    in_burst: bool,
}

impl<T: Trace> Bfq<T> {
    /// Keeps the state of the queue for its owner, if it has one.
    #[cold]
    #[inline(never)]
    pub(super) fn save(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        let Some(owner) = state.owner else { return };
        let is_new = state.fresh && !state.in_large_burst && self.tunables.low_latency();
        let raising = if is_new {
            // It would have been raised with its first request.
            let served =
                self.contexts[owner].saved.as_ref().map_or(0, |saved| saved.raising.served());
            state.raising().of_new_queue(cx.jiffies(), served, self.raising_lengths())
        } else {
            *state.raising()
        };
        let saved = Saved {
            injection: state.injection,
            io_pattern: state.io_pattern,
            weight: self.wf2q.own_weight(queue),
            raising,
            in_large_burst: state.in_large_burst,
            in_burst: self.burst.contains(queue),
        };
        self.contexts[owner].saved = Some(Box::new(saved));
    }

    /// The service of the queue ends: if it is shared and seeky, it is to be split.
    pub(super) fn plan_split_of_seeky(&mut self, cx: &Cx, queue: QueueId) {
        let state = &mut self.queues[queue];
        if state.shared && state.is_seeky() && !std::mem::replace(&mut state.split_due, true) {
            self.trace
                .event(cx.now, Event::Queue(QueueEvent::SplitPlanned { queue: state.name() }));
        }
    }

    /// Splits `ioc` from the shared queue. Returns its queue from now on: a new one, or the same if
    /// `ioc` is the last user. That queue gets the state back that was saved for `ioc`.
    #[cold]
    #[inline(never)]
    pub(super) fn split(&mut self, cx: &Cx, ioc: IocId, queue: QueueId) -> QueueId {
        let state = &mut self.queues[queue];
        self.trace.event(cx.now, Event::Queue(QueueEvent::QueueSplit { queue: state.name() }));
        let in_large_burst = state.in_large_burst;
        if in_large_burst && let Some(saved) = &mut self.contexts[ioc].saved {
            saved.in_large_burst = true;
        }
        let waker = self.waker_after_split(queue);
        let state = &mut self.queues[queue];
        if state.users == 1 && state.merge_into.is_none() {
            state.named_after = ioc;
            state.shared = false;
            state.split_due = false;
            self.restore(cx, ioc, queue);
            return queue;
        }
        self.set_queue(cx, ioc, Synchrony::Sync, None);
        self.drop_users_of_chain(cx, queue);
        self.drop_user(cx, queue);
        let new = self.make_sync_queue(cx, ioc);
        let saved = self.contexts[ioc].saved.as_deref();
        let in_burst = saved.is_some_and(|saved| saved.in_burst);
        let in_large_burst = (in_burst && self.burst.is_large())
            || saved.map_or(in_large_burst, |saved| saved.in_large_burst);
        let state = &mut self.queues[new];
        state.in_large_burst = in_large_burst;
        state.split_at = cx.jiffies();
        if in_burst && !in_large_burst {
            self.burst.put_back(new);
        }
        if let Some(waker) = waker {
            self.queues.set_waker(new, waker);
        }
        self.restore(cx, ioc, new);
        new
    }

    /// Returns the waker of the queue if it will still have users after a user has left the queue.
    /// A waker that is in the queue's chain of merges loses that user too.
    fn waker_after_split(&self, queue: QueueId) -> Option<QueueId> {
        let waker = self.queues[queue].waker?;
        let next = |&queue: &QueueId| self.queues[queue].merge_into;
        let in_chain = std::iter::successors(Some(queue), next).any(|queue| queue == waker);
        let lost = u32::from(in_chain);
        (self.queues[waker].users > lost).then_some(waker)
    }

    /// Gives a queue that is one user's own again the state that was saved for that user.
    fn restore(&mut self, cx: &Cx, ioc: IocId, queue: QueueId) {
        let Some(&saved) = self.contexts[ioc].saved.as_deref() else { return };
        self.wf2q.set_weight(queue, saved.weight);
        let state = &mut self.queues[queue];
        state.injection = saved.injection;
        state.io_pattern = saved.io_pattern;
        self.restore_raising(cx, queue, saved.raising);
    }
}
