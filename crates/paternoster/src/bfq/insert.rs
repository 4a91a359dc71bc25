//! Putting a request into its queue, and taking it out again. With a request, a queue becomes busy:
//! it may be raised, and it may take the device from the queue in service.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue::{QueueId, queue_of};
use crate::bfq::wf2q::{Comeback, Turn};
use crate::parts::sort_list::SortList;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::Nanos;
use crate::trace::{BudgetEnd, Event, PreemptReason, Trace};

/// A queue that is back within so many times `slice_idle` goes on with what it had.
const IN_TIME_IDLES: u64 = 3;
/// A single request shorter than this does not end the waiting for its queue: it may grow.
const SMALL: SectorCount = SectorCount(32);

impl<T: Trace> Bfq<T> {
    /// Takes a request into its queue, or into that of others that work on the same part of the
    /// device.
    pub(super) fn insert_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, sector) = (request.ioc, request.sector);
        let mut queue = queue_of(cx.requests, rq);
        if let Some(target) = self.cooperator(cx, queue, sector, ioc) {
            self.move_request(cx, rq, target);
            queue = target;
        }
        self.learn(cx, queue, rq, ioc);
        self.add(cx, queue, rq);
        let state = &mut self.queues[queue];
        let deadline = cx.now + self.tunables.fifo_expire(cx.requests[rq].is_sync());
        state.fifo.push(cx.requests, rq, deadline);
        state.last_end = cx.requests[rq].end();
        self.end_waiting(cx, queue, rq);
    }

    /// Puts a request into the order of its queue.
    fn add(&mut self, cx: &mut Cx<'_>, queue: QueueId, rq: RequestId) {
        let ioc = cx.requests[rq].ioc;
        let was_raised = self.wf2q.entities[queue].factor > 1;
        self.queues[queue].queued += 1;
        self.queued += 1;
        if self.queues[queue].sync {
            if self.contexts[ioc].requests_bound <= 1 {
                self.look_for_waker(cx, queue);
                self.maybe_measure(cx, queue);
            }
            self.judge_intensity(cx, queue);
        }
        self.queues[queue].sorted.insert(cx.requests, rq);
        let changed = self.prefer(cx, queue, rq);
        if changed {
            self.index_position(cx, queue);
        }
        let mut interactive = false;
        if self.queues[queue].busy {
            if self.tunables.low_latency() && !was_raised && !cx.requests[rq].is_sync() {
                self.raise_starved_async(cx, queue);
            }
            if changed {
                self.update_budget(cx, queue);
            }
        } else {
            interactive = self.become_busy(cx, queue, rq);
        }
        let is_raised = self.wf2q.entities[queue].factor > 1;
        if self.tunables.low_latency() && (!was_raised || !is_raised || interactive) {
            self.queues[queue].raising.since = cx.jiffies();
        }
    }

    /// Makes `rq` the queue's next request if it is the better one: whether it is.
    fn prefer(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) -> bool {
        let before = self.queues[queue].next();
        let next = self.sweep(self.peak_rate.head).better(cx.requests, before, Some(rq));
        self.queues[queue].set_next(cx.requests, next);
        next != before
    }

    /// A queue without requests has one now: whether it begins to be used interactively.
    fn become_busy(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) -> bool {
        let now = cx.jiffies();
        let merits = self.merits(cx, queue, cx.requests[rq].ioc);
        let state = &self.queues[queue];
        let patience = Nanos::new(self.tunables.slice_idle().as_nanos() * IN_TIME_IDLES);
        let in_time = cx.now <= state.habits.think.last_end() + patience;
        let goes_on = self.budget_for_activation(cx, queue, in_time);
        let state = &self.queues[queue];
        if !state.fresh
            && self.was_long_idle(now, queue)
            && now > state.turn_end + self.spans.burst_memory
        {
            self.leave_burst_list(queue);
            self.queues[queue].in_large_burst = false;
        }
        self.queues[queue].fresh = false;
        if self.tunables.low_latency() {
            self.raise_on_arrival(cx, queue, merits);
        }
        let state = &mut self.queues[queue];
        state.busy_since = now;
        state.served_since_busy = 0;
        state.soft_rt.due = false;
        self.add_busy(cx, queue);
        self.maybe_preempt(cx, queue, goes_on);
        merits.interactive
    }

    /// The queue is busy from now on.
    fn add_busy(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &mut self.queues[queue];
        let resumes = std::mem::take(&mut state.resumable);
        let comeback = if resumes { Comeback::InTime } else { Comeback::Anew };
        self.wf2q.activate(queue, comeback, cx.jiffies());
        self.free_forgotten(cx);
        let state = &mut self.queues[queue];
        state.busy = true;
        let (name, in_flight) = (state.name(), state.in_flight);
        self.trace.event(cx.now, Event::Listed { queue: name });
        let entity = &self.wf2q.entities[queue];
        self.symmetry.becomes_busy(entity.class);
        if entity.factor > 1 {
            self.symmetry.raised_busy += 1;
        } else if in_flight == 0 {
            self.wf2q.count(queue);
        }
        self.note_woken(queue);
    }

    /// Schedules a queue anew in another group.
    pub(super) fn reactivate_busy(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let resumes = std::mem::take(&mut self.queues[queue].resumable);
        let comeback = if resumes { Comeback::InTime } else { Comeback::Anew };
        self.wf2q.activate(queue, comeback, cx.jiffies());
        self.free_forgotten(cx);
    }

    /// The queue has become busy: it may take the device from the one in service, if that is not
    /// worth waiting for anyway or has less claim to it.
    fn maybe_preempt(&mut self, cx: &Cx<'_>, queue: QueueId, goes_on: bool) {
        let Some(active) = self.in_service else { return };
        let Some(why) = self.should_preempt(cx, queue, active, goes_on) else { return };
        if self.wf2q.may_preempt(cx.groups.root()) {
            let (by, over) = (self.queues[queue].name(), self.queues[active].name());
            self.trace.event(cx.now, Event::Preempted { by, over, why });
            self.expire(cx, active, BudgetEnd::Preempted);
        }
    }

    fn should_preempt(
        &self,
        cx: &Cx<'_>,
        queue: QueueId,
        active: QueueId,
        goes_on: bool,
    ) -> Option<PreemptReason> {
        let (new, old) = (&self.wf2q.entities[queue], &self.wf2q.entities[active]);
        if goes_on && new.factor >= old.factor {
            Some(PreemptReason::InTime)
        } else if new.class < old.class {
            Some(PreemptReason::Class)
        } else if self.weighs_more(queue, active) {
            Some(PreemptReason::Weight)
        } else if !self.is_idling_better(cx, active) {
            Some(PreemptReason::NotIdling)
        } else {
            None
        }
    }

    /// Whether `queue` has more weight than `active`, or its group has, where they are of two.
    fn weighs_more(&self, queue: QueueId, active: QueueId) -> bool {
        let same_group = self.wf2q.entities[queue].above == self.wf2q.entities[active].above;
        let weight = |queue| {
            let group = if same_group { None } else { self.wf2q.above(queue) };
            self.wf2q.entities[group.unwrap_or(queue)].weight
        };
        weight(queue) > weight(active)
    }

    /// What the queue in service was waited for has come. A small one that is alone leaves the
    /// timer running, where waiting pays: the next dispatch finds the request anyway, and it may
    /// grow until then.
    fn end_waiting(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) {
        let state = &self.queues[queue];
        if self.in_service != Some(queue) || !state.waiting {
            return;
        }
        let small = state.queued == 1 && cx.requests[rq].sectors < SMALL;
        let late = cx.jiffies() >= state.turn_end;
        if small && !late && self.idling_boosts_throughput(cx, queue) {
            return;
        }
        self.stop_waiting(queue);
        if late {
            self.expire(cx, queue, BudgetEnd::Timeout);
        }
    }

    /// Takes a waiting request out of its queue.
    pub(super) fn remove(&mut self, cx: &mut Cx<'_>, queue: QueueId, rq: RequestId) {
        if self.queues[queue].next() == Some(rq) {
            let follower = self.follower(cx, queue, rq);
            self.queues[queue].set_next(cx.requests, follower);
            self.update_budget(cx, queue);
        }
        let state = &mut self.queues[queue];
        state.fifo.remove(cx.requests, rq);
        state.sorted.remove(cx.requests, rq);
        self.forget_waiting(cx, queue);
    }

    /// One request less waits in the queue, which is out of its lists.
    fn forget_waiting(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &mut self.queues[queue];
        state.queued -= 1;
        self.queued -= 1;
        if !state.sorted.is_empty() {
            self.index_position(cx, queue);
            return;
        }
        state.set_next(cx.requests, None);
        if state.busy && self.in_service != Some(queue) {
            self.remove_busy(cx, queue, Turn::GoesOn);
            let entity = &mut self.wf2q.entities[queue];
            entity.budget = SectorCount(0);
            entity.service = SectorCount(0);
        }
        self.unindex_position(queue);
    }

    /// The request has grown at its start. It stays where it is in the order of its queue, unless
    /// it starts before the one before it now.
    pub(super) fn grown_at_front(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let queue = queue_of(cx.requests, rq);
        SortList::set_start_in_place(cx.requests, rq);
        let state = &mut self.queues[queue];
        if state.next() == Some(rq) {
            state.set_next(cx.requests, Some(rq));
        }
        let before = SortList::before(cx.requests, rq);
        if before.is_some_and(|before| cx.requests[rq].sector < cx.requests[before].sector) {
            self.queues[queue].sorted.reposition(cx.requests, rq);
            if self.prefer(cx, queue, rq) {
                self.update_budget(cx, queue);
                self.index_position(cx, queue);
            }
        }
    }

    /// `absorbed`, which may never have been inserted and may be of another queue, has become part
    /// of `rq`.
    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        let queue = queue_of(cx.requests, rq);
        let other = queue_of(cx.requests, absorbed);
        if !cx.requests[absorbed].is_queued() {
            return self.unbind_request(cx, absorbed);
        }
        if queue == other {
            let state = &mut self.queues[queue];
            if state.next() == Some(absorbed) {
                // The budget stays as it is.
                state.set_next(cx.requests, Some(rq));
            }
            state.fifo.absorb(cx.requests, rq, absorbed);
            state.sorted.remove(cx.requests, absorbed);
            self.forget_waiting(cx, queue);
        } else {
            self.remove(cx, other, absorbed);
        }
        self.unbind_request(cx, absorbed);
    }
}
