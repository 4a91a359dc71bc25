//! Every decision CFQ makes to leave the device free for a request that has not come yet.
//!
//! Idling pays where the next request of this queue is likely soon and near, so that waiting costs
//! less than a seek away and back. Three kinds:
//!
//! ```text
//!   wait busy    the group's only queue would end its turn     should_wait_busy
//!                just before its next request
//!   queue idle   the queue itself is worth waiting for         judge_idle, should_idle
//!   group idle   else its group, which has no other queue      judge_idle, and judge_group_idle
//!                                                              while requests are in flight
//!
//!   complete ──▶ should_wait_busy ──▶ judge_idle ──no──▶ nothing; select ends the turn when
//!                                         │yes           somebody else waits
//!                                         ▼
//!              the idle timer ──▶ insert (same queue): stopped, served on; a small request
//!                    │            alone leaves it running
//!                    └──────────▶ idle_timer_fired: the turn ends
//! ```
//!
//! A queue earns its *idle window* request by request, by `should_have_window`. The gate, in
//! `dispatch.rs`, asks `should_idle` once more: a queue that is waited for first lets async
//! requests drain.

use crate::arena::{GroupId, IocId, RequestId};
use crate::cfq::Cfq;
use crate::cfq::queue::{Queue, QueueId};
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, ExpireReason, NoIdleReason, Trace};

/// So many requests in a queue at a time make it deep.
const DEEP: u32 = 4;

/// Whether, and for whose sake, the device is to be kept free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdleFor {
    Queue,
    Group,
}

/// The device is kept free up to then, unless the request comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleTimer {
    pub(super) at: Instant,
    group: GroupId,
}

impl<T: Trace> Cfq<T> {
    /// Whether the device is to be kept free for the active queue, which has run empty with its
    /// slice not over, and for whose sake. The first reason against it is told.
    fn judge_idle(&self, cx: &Cx<'_>, active: QueueId) -> Result<IdleFor, NoIdleReason> {
        let queue = &self.queues[active];
        let group_idle = self.tunables.group_idle();
        let groups_are_waited_for = group_idle > Nanos::ZERO;
        if self.is_fast(cx) && !groups_are_waited_for {
            return Err(NoIdleReason::FastDevice);
        }
        let worth_it = self.should_idle(cx, queue);
        if !worth_it && !groups_are_waited_for {
            return Err(NoIdleReason::NotWorthIt);
        }
        if queue.in_flight > 0 {
            return Err(NoIdleReason::InFlight);
        }
        if !self.active_context.is_some_and(|ioc| cx.contexts.alive(ioc)) {
            return Err(NoIdleReason::TaskGone);
        }
        if self.will_think_beyond(cx, queue) {
            return Err(NoIdleReason::ThinksBeyondSlice);
        }
        if worth_it {
            return Ok(IdleFor::Queue);
        }
        let group = &self.groups[queue.group];
        if group.listed > 1 {
            return Err(NoIdleReason::GroupHasOthers);
        }
        // Linux asks the think time of the tree here, not the group's.
        if group.trees.tree(queue.tree()).think.exceeds(group_idle) {
            return Err(NoIdleReason::GroupThinksTooLong);
        }
        Ok(IdleFor::Group)
    }

    /// Whether `queue`, which is on a tree, is worth waiting for: it has an idle window and the
    /// device seeks, or it is the last of its tree, whose tasks come back soon.
    pub(super) fn should_idle(&self, cx: &Cx<'_>, queue: &Queue) -> bool {
        let slice_idle = self.tunables.slice_idle();
        if slice_idle == Nanos::ZERO || queue.class() == IoClass::Idle {
            return false;
        }
        if queue.idle_window && !self.is_fast(cx) {
            return true;
        }
        let tree = self.groups[queue.group].trees.tree(queue.tree());
        tree.len() == 1 && queue.sync && !tree.think.exceeds(slice_idle)
    }

    /// Whether the active queue, the only one of its group, keeps the device for the sake of the
    /// group, which has requests in flight.
    pub(super) fn judge_group_idle(&self, queue: &Queue) -> bool {
        let group_idle = self.tunables.group_idle();
        let group = &self.groups[queue.group];
        group_idle > Nanos::ZERO
            && group.listed == 1
            && group.in_flight > 0
            && !group.think.exceeds(group_idle)
    }

    /// Whether the slice of the active queue is to be stretched: its group would leave the tree,
    /// and lose its place, just before the group's next request.
    pub(super) fn should_wait_busy(&self, cx: &Cx<'_>, active: QueueId) -> bool {
        let queue = &self.queues[active];
        let group = &self.groups[queue.group];
        if !queue.is_empty() || group.listed > 1 || group.think.exceeds(self.tunables.group_idle())
        {
            return false;
        }
        queue.turn.is_over(cx.now)
            || self.will_think_beyond(cx, queue)
            || queue.turn.left(cx.now) <= cx.device.hz.tick().as_nanos().cast_signed()
    }

    /// Whether the rest of the slice is surely too short for the task's next request.
    fn will_think_beyond(&self, cx: &Cx<'_>, queue: &Queue) -> bool {
        let left = queue.turn.left(cx.now).cast_unsigned();
        self.active_think_mean().is_some_and(|mean| left < mean.as_nanos())
    }

    /// The slice of the active queue, the only one of its group, is stretched, so that the group
    /// does not leave the tree before its next request.
    pub(super) fn wait_busy(&mut self, cx: &Cx<'_>, active: QueueId) {
        let slice_idle = self.tunables.slice_idle();
        let stretch =
            if slice_idle > Nanos::ZERO { slice_idle } else { self.tunables.group_idle() };
        let state = &mut self.queues[active];
        state.turn.end = cx.now + stretch;
        state.turn.busy_wait = true;
        self.trace.event(cx.now, Event::WaitBusy { queue: state.name() });
    }

    /// The active queue has run empty with its slice not over: the device is kept free for its
    /// next request, or that of its group, if that pays.
    pub(super) fn arm_idle_timer(&mut self, cx: &Cx<'_>, active: QueueId) {
        let idle_for = match self.judge_idle(cx, active) {
            Ok(idle_for) => idle_for,
            Err(why) => {
                let queue = self.queues[active].name();
                return self.trace.event(cx.now, Event::NotIdling { queue, why });
            }
        };
        let for_group = idle_for == IdleFor::Group;
        let length =
            if for_group { self.tunables.group_idle() } else { self.tunables.slice_idle() };
        let state = &mut self.queues[active];
        state.turn.awaiting = true;
        let (queue, group) = (state.name(), state.group);
        self.groups[group].stats.idle_begins(cx.now);
        self.idle_timer = Some(IdleTimer { at: cx.now + length, group });
        self.trace.event(cx.now, Event::IdleArmed { queue, length, for_group });
    }

    /// The idle timer, if it runs, does not any more.
    pub(super) fn stop_idle_timer(&mut self, cx: &Cx<'_>) {
        if let Some(timer) = self.idle_timer.take() {
            self.groups[timer.group].stats.idle_ends(cx.now);
        }
    }

    /// What the device was kept free for has not come in time.
    pub(super) fn idle_timer_fired(&mut self, cx: &Cx<'_>) {
        self.stop_idle_timer(cx);
        self.trace.event(cx.now, Event::IdleTimerFired);
        let Some(active) = self.active else { return };
        let queue = &mut self.queues[active];
        if queue.turn.forced {
            return;
        }
        if queue.turn.is_over(cx.now) {
            return self.expire(cx, ExpireReason::SliceUsed);
        }
        if !queue.is_empty() {
            return;
        }
        queue.deep = false;
        self.expire(cx, ExpireReason::IdleTimer);
    }

    /// A sync request was inserted: its queue may become worth waiting for, or cease to be.
    pub(super) fn update_idle_window(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) {
        let state = &mut self.queues[queue];
        if state.queued >= DEEP {
            state.deep = true;
        }
        let on = self.should_have_window(cx, queue, cx.requests[rq].ioc);
        let state = &mut self.queues[queue];
        if std::mem::replace(&mut state.idle_window, on) != on {
            self.trace.event(cx.now, Event::IdleWindow { queue: state.name(), on });
        }
    }

    /// Whether the queue, for which `ioc` has just made a request, is worth waiting for by its
    /// habits. A deep queue may seek; until the task's think time is known, nothing changes.
    fn should_have_window(&self, cx: &Cx<'_>, queue: QueueId, ioc: IocId) -> bool {
        let state = &self.queues[queue];
        let slice_idle = self.tunables.slice_idle();
        let next = state.next().expect("a request was inserted");
        let lost = cx.requests[next].is_noidle()
            || !cx.contexts.alive(ioc)
            || slice_idle == Nanos::ZERO
            || (!state.deep && state.is_seeky());
        let mean = self.contexts.get(ioc).and_then(|context| context.think.mean());
        !lost && mean.map_or(state.idle_window, |mean| mean <= slice_idle)
    }

    /// Whether the device does not seek and queues requests itself, for all that is known.
    fn is_fast(&self, cx: &Cx<'_>) -> bool {
        !cx.device.rotational && self.may_queue_in_hardware()
    }
}
