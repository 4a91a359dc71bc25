//! What a queue had for itself is kept for its owner while it is merged with others; a user that
//! leaves a shared queue gets it back.

use crate::arena::IocId;
use crate::bfq::Bfq;
use crate::bfq::context::SYNC;
use crate::bfq::habits::Habits;
use crate::bfq::inject::InjectionLimit;
use crate::bfq::queue::QueueId;
use crate::bfq::weight_raising::Raising;
use crate::scheduler::Cx;
use crate::trace::{Event, Trace};

/// A queue as it was when its owner was last moved to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    injection: InjectionLimit,
    habits: Habits,
    weight: u32,
    /// The factor of raising, and the rest of it.
    factor: u32,
    raising: Raising,
    in_large_burst: bool,
    in_burst: bool,
}

/// How a user came out of a shared queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// As the last one: the queue is its own again.
    Kept,
    /// Into a queue of its own.
    Left,
}

impl<T: Trace> Bfq<T> {
    /// Keeps the state of the queue for its owner, if it has one.
    pub(super) fn save(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let Some(owner) = state.owner else { return };
        let entity = &self.wf2q.entities[queue];
        let newborn = state.fresh && !state.in_large_burst && self.tunables.low_latency();
        let (factor, raising) = if newborn {
            // It has not had the chance to be raised, and would have been.
            let served =
                self.contexts[owner].saved.as_ref().map_or(0, |saved| saved.raising.served);
            self.raising_of_newborn(cx.jiffies(), Raising { served, ..state.raising })
        } else {
            (entity.factor, state.raising)
        };
        let saved = Saved {
            injection: state.injection,
            habits: state.habits,
            weight: entity.own_weight,
            factor,
            raising,
            in_large_burst: state.in_large_burst,
            in_burst: state.in_burst,
        };
        self.contexts[owner].saved = Some(Box::new(saved));
    }

    /// `ioc` leaves the shared queue that is to be split, or keeps it if it is the last user.
    pub(super) fn split(&mut self, cx: &Cx<'_>, ioc: IocId, queue: QueueId) -> (QueueId, Split) {
        let state = &mut self.queues[queue];
        self.trace.event(cx.now, Event::QueueSplit { queue: state.name() });
        let in_large_burst = state.in_large_burst;
        if in_large_burst && let Some(saved) = &mut self.contexts[ioc].saved {
            saved.in_large_burst = true;
        }
        let waker = self.waker_after_split(queue);
        let state = &mut self.queues[queue];
        if state.users == 1 && state.merge_into.is_none() {
            state.made_by = ioc;
            state.shared = false;
            state.split_due = false;
            return (queue, Split::Kept);
        }
        self.set_queue(cx, ioc, SYNC, None);
        self.drop_chain(cx, queue);
        self.drop_user(cx, queue);
        let new = self.make_sync_queue(cx, ioc);
        let saved = self.contexts[ioc].saved.as_deref();
        let in_burst = saved.is_some_and(|saved| saved.in_burst);
        let in_large_burst = (in_burst && self.burst.large)
            || saved.map_or(in_large_burst, |saved| saved.in_large_burst);
        let state = &mut self.queues[new];
        state.in_large_burst = in_large_burst;
        state.split_at = cx.jiffies();
        if in_burst && !in_large_burst {
            self.put_on_burst_list(new);
        }
        if let Some(waker) = waker {
            self.set_waker(new, waker);
        }
        (new, Split::Left)
    }

    /// The waker of the queue, as far as it will still be one after a user has left. One that is
    /// in the queue's chain loses a user with it.
    fn waker_after_split(&self, queue: QueueId) -> Option<QueueId> {
        let waker = self.queues[queue].waker.waker?;
        let next = |&queue: &QueueId| self.queues[queue].merge_into;
        let in_chain = std::iter::successors(Some(queue), next).any(|queue| queue == waker);
        let lost = u32::from(in_chain);
        (self.queues[waker].users > lost).then_some(waker)
    }

    /// Gives a queue that is one user's own again what was kept for that user.
    pub(super) fn restore(&mut self, cx: &Cx<'_>, ioc: IocId, queue: QueueId, split: Split) {
        let Some(&saved) = self.contexts[ioc].saved.as_deref() else { return };
        let now = cx.jiffies();
        let entity = &mut self.wf2q.entities[queue];
        entity.new_weight = saved.weight;
        entity.change_due = true;
        let before = if self.tunables.low_latency() {
            std::mem::replace(&mut entity.factor, saved.factor)
        } else {
            1
        };
        let is_raised = entity.factor > 1;
        let state = &mut self.queues[queue];
        state.injection = saved.injection;
        state.habits = saved.habits;
        state.raising = saved.raising;
        let in_large_burst = state.in_large_burst;
        if is_raised && (in_large_burst || now > saved.raising.since + saved.raising.span) {
            let interactive_end = saved.raising.interactive_since + self.interactive_span();
            if self.is_soft_rt(queue) && !in_large_burst && now <= interactive_end {
                self.back_to_interactive(queue);
            } else {
                self.wf2q.entities[queue].factor = 1;
            }
        }
        let is_raised = self.wf2q.entities[queue].factor > 1;
        if split == Split::Kept && self.queues[queue].busy {
            self.symmetry.raised_busy += i32::from(is_raised) - i32::from(before > 1);
        }
        self.trace_raising(cx, queue);
    }
}
