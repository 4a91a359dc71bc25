//! Decides when the device idles for a request that has not come yet.
//!
//! Idling pays if the next request of the queue is likely to come soon and near the last one, so
//! that it costs less than a seek away and back. There are three kinds:
//!
//! ```text
//!   wait busy    the slice of the group's only queue would      should_wait_busy
//!                end just before the next request
//!   queue idle   the device idles for the queue                 judge_idle, should_idle
//!   group idle   the device idles for the group, which has no   judge_idle, and judge_group_idle
//!                other queue                                    while requests are in flight
//!
//!   complete ──▶ should_wait_busy ──▶ judge_idle ──no──▶ nothing; select ends the slice when
//!                                         │yes           another queue has requests
//!                                         ▼
//!              the idle timer ──▶ insert (same queue): it stops, and the slice goes on; if a
//!                    │            small request comes alone, the timer keeps running
//!                    └──────────▶ idle_timer_fired: the slice ends
//! ```
//!
//! A queue earns its *idle window* request by request (`idle_window.rs`). The gate in
//! `dispatch.rs` asks `should_idle` too: a queue for which the device would idle waits until
//! asynchronous requests have completed. In BFQ a queue has no idle window; `bfq/idle.rs` decides
//! at once, and idles also to keep shares (`bfq/symmetry.rs`).

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue::Queue;
use crate::cfq::queue_id::QueueId;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{CfqEvent, Event, NoIdleReason, QueueEvent, SliceEnd, Trace};

/// For whom the device idles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdleFor {
    Queue,
    Group,
}

/// Ends idling if the expected request has not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleTimer {
    /// When it fires.
    pub(super) at: Instant,
    /// The group of the active queue, for its statistics.
    group: GroupId,
}

impl<T: Trace> Cfq<T> {
    /// Returns for whom the device is to idle, as the active queue has run empty before the end of
    /// its slice, or the first reason why it does not idle.
    fn judge_idle(&self, cx: &Cx, active: QueueId) -> Result<IdleFor, NoIdleReason> {
        let queue = &self.queues[active];
        let group_idle = self.tunables.group_idle();
        let idles_for_groups = group_idle > Nanos::ZERO;
        let on_fast_device = idles_for_groups && self.kernel.may_idle_for_group_on_fast_device();
        if self.is_fast(cx) && !on_fast_device {
            return Err(NoIdleReason::FastDevice);
        }
        if self.kernel.idles_only_if_asked()
            && !self.serving.is_idling_asked()
            && self.groups[queue.group].entities > 1
        {
            return Err(NoIdleReason::NotAsked);
        }
        let worth_it = self.should_idle(cx, queue);
        if !worth_it && !idles_for_groups {
            return Err(NoIdleReason::NotWorthIt);
        }
        if queue.in_flight > 0 {
            return Err(NoIdleReason::InFlight);
        }
        if !self.active_context.is_some_and(|ioc| cx.contexts.alive(ioc)) {
            return Err(NoIdleReason::TaskGone);
        }
        if self.will_think_beyond(queue) {
            return Err(NoIdleReason::ThinksBeyondSlice);
        }
        if worth_it {
            return Ok(IdleFor::Queue);
        }
        let group = &self.groups[queue.group];
        if group.entities > 1 {
            return Err(NoIdleReason::GroupHasOthers);
        }
        // As in Linux v4.20, it is the think time on the tree of the queue, not that of the group.
        if !self.kernel.waits_for_group_that_thinks_long()
            && group.trees.tree(queue.tree()).think.exceeds(group_idle)
        {
            return Err(NoIdleReason::GroupThinksTooLong);
        }
        Ok(IdleFor::Group)
    }

    /// Returns whether the device should idle for `queue`, which is busy: the queue has an idle
    /// window and the device is not fast, or it is the last one of a tree with a short think time.
    pub(super) fn should_idle(&self, cx: &Cx, queue: &Queue) -> bool {
        let slice_idle = self.tunables.slice_idle();
        if slice_idle == Nanos::ZERO || queue.class() == IoClass::Idle {
            return false;
        }
        if queue.idle_window.is_open() && !self.is_fast(cx) {
            return true;
        }
        let tree = self.groups[queue.group].trees.tree(queue.tree());
        tree.len() == 1 && queue.synchrony.is_sync() && !tree.think.exceeds(slice_idle)
    }

    /// Returns whether the active queue keeps the device for the sake of its group: it is the only
    /// busy queue of the group, and requests of the group are in flight.
    pub(super) fn judge_group_idle(&self, queue: &Queue) -> bool {
        let group_idle = self.tunables.group_idle();
        let group = &self.groups[queue.group];
        group_idle > Nanos::ZERO
            && group.entities == 1
            && group.in_flight > 0
            && (self.kernel.waits_for_group_that_thinks_long() || !group.think.exceeds(group_idle))
    }

    /// Returns whether the slice of the active queue is to be stretched: its group would leave the
    /// tree, and lose its place, just before the group's next request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn should_wait_busy(&self, cx: &Cx, active: QueueId) -> bool {
        let queue = &self.queues[active];
        let group = &self.groups[queue.group];
        if !queue.is_empty()
            || group.entities > 1
            || group.think.exceeds(self.tunables.group_idle())
        {
            return false;
        }
        queue.slice.is_over(self.now)
            || self.will_think_beyond(queue)
            || queue.slice.left(self.now) <= cx.device.hz.tick().as_nanos().cast_signed()
    }

    /// Returns whether the rest of the slice is shorter than the mean think time of the active
    /// context.
    fn will_think_beyond(&self, queue: &Queue) -> bool {
        let left = queue.slice.left(self.now).cast_unsigned();
        self.active_think_mean().is_some_and(|mean| left < mean.as_nanos())
    }

    /// Stretches the slice of the active queue, the only one of its group, so that the group does
    /// not leave the tree before its next request.
    pub(super) fn wait_busy(&mut self, cx: &Cx, active: QueueId) {
        let slice_idle = self.tunables.slice_idle();
        let stretch =
            if slice_idle > Nanos::ZERO { slice_idle } else { self.tunables.group_idle() };
        let state = &mut self.queues[active];
        state.slice.stretch(self.now, stretch);
        self.trace.event(cx.now, Event::Cfq(CfqEvent::WaitBusy { queue: state.name() }));
    }

    /// Arms the idle timer if the device is to idle for the active queue, which has run empty
    /// before the end of its slice, or for its group.
    #[cold]
    #[inline(never)]
    pub(super) fn arm_idle_timer(&mut self, cx: &Cx, active: QueueId) {
        let idle_for = match self.judge_idle(cx, active) {
            Ok(idle_for) => idle_for,
            Err(why) => {
                let queue = self.queues[active].name();
                return self.trace.event(cx.now, Event::Cfq(CfqEvent::NotIdling { queue, why }));
            }
        };
        let for_group = idle_for == IdleFor::Group;
        let length =
            if for_group { self.tunables.group_idle() } else { self.tunables.slice_idle() };
        let state = &mut self.queues[active];
        state.slice.start_idling();
        let (queue, group) = (state.name(), state.group);
        self.groups[group].stats.idle_begins(self.now);
        self.idle_timer = Some(IdleTimer { at: self.now + length, group });
        self.trace.event(cx.now, Event::Cfq(CfqEvent::SliceIdling { queue, length, for_group }));
    }

    /// Stops the idle timer if it runs.
    #[cold]
    #[inline(never)]
    pub(super) fn stop_idle_timer(&mut self) {
        if let Some(timer) = self.idle_timer.take() {
            self.groups[timer.group].stats.idle_ends(self.now);
        }
    }

    /// Handles the idle timer: the expected request has not come in time.
    pub(super) fn idle_timer_fired(&mut self, cx: &Cx) {
        self.stop_idle_timer();
        self.trace.event(cx.now, Event::Queue(QueueEvent::IdleTimerFired));
        let Some(active) = self.active else { return };
        let queue = &mut self.queues[active];
        if queue.slice.is_forced() {
            return;
        }
        if queue.slice.is_over(self.now) {
            return self.expire(cx, SliceEnd::SliceUsed);
        }
        if !queue.is_empty() {
            return;
        }
        queue.idle_window.idled_in_vain();
        self.expire(cx, SliceEnd::IdleTimer);
    }

    /// Returns whether the device is fast: non-rotational, and it may queue requests itself.
    fn is_fast(&self, cx: &Cx) -> bool {
        !cx.device.rotational && self.hw_queueing.may_queue()
    }
}
