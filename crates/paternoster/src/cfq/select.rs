//! Selects the queue from which to dispatch, or says why to wait.
//!
//! First the active queue is judged. If its slice is to end, a group is chosen by vdisktime, then a
//! class, a workload and a queue. The gate in `dispatch.rs` may still refuse a request of the
//! selected queue.

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::idle_window::IdleWindow;
use crate::cfq::queue::Queue;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::TreeId;
use crate::cfq::slice::Slice;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::time::{Instant, Nanos};
use crate::trace::{CfqEvent, ElevatorEvent, Event, SliceEnd, Trace, WaitReason, Workload};

/// A workload is served for at least so many ticks.
const MIN_WORKLOAD_TICKS: u64 = 2;

/// The group and workload that are served. Until the workload's time is over, the next queue is one
/// of these.
#[derive(Debug)]
pub(super) struct Serving {
    group: Option<GroupId>,
    served: ServedWorkload,
    /// Since the workload was chosen, a request that asks for idling was the last of a queue.
    /// Matters if the kernel idles only if asked.
    idling_asked: bool,
}

/// A workload that is served.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServedWorkload {
    class: IoClass,
    workload: Workload,
    /// When the time of the workload is over; matters only when a queue is chosen.
    end: Instant,
}

impl ServedWorkload {
    pub(super) fn new(now: Instant) -> Self {
        Self { class: IoClass::Be, workload: Workload::Async, end: now }
    }

    /// Returns what its group needs to resume the workload, if time of it is left.
    #[inline]
    pub(super) fn save(self, now: Instant) -> Option<SavedWorkload> {
        let span = self.end.saturating_since(now);
        let saved = SavedWorkload { span, class: self.class, workload: self.workload };
        (span > Nanos::ZERO).then_some(saved)
    }
}

/// The workload of a group that was served when its last slice ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedWorkload {
    /// What was left of the workload's time; more than 0.
    span: Nanos,
    class: IoClass,
    workload: Workload,
}

impl Serving {
    pub(super) fn new(now: Instant) -> Self {
        Self { group: None, served: ServedWorkload::new(now), idling_asked: false }
    }

    /// Returns whether `group` is served.
    #[inline]
    pub(super) fn is_served(&self, group: GroupId) -> bool {
        self.group == Some(group)
    }

    /// The workload that is served.
    #[inline]
    pub(super) fn served(&self) -> ServedWorkload {
        self.served
    }

    /// The kind of the workload that is served.
    #[inline]
    pub(super) fn workload(&self) -> Workload {
        self.served.workload
    }

    /// Notes that the last request of a queue asks for idling.
    pub(super) fn ask_for_idling(&mut self) {
        self.idling_asked = true;
    }

    /// Returns whether the served workload, or a request since it was chosen, asks for idling.
    pub(super) fn is_idling_asked(&self) -> bool {
        self.served.workload == Workload::Sync || self.idling_asked
    }

    /// Serves `group` no more, which is about to go.
    pub(super) fn forget(&mut self, group: GroupId) {
        if self.is_served(group) {
            self.group = None;
        }
    }
}

/// What happens with the active queue.
enum Verdict {
    /// It dispatches a request.
    Serve,
    /// It keeps the device, and nothing is dispatched.
    Wait(WaitReason),
    /// It is empty and the idle timer does not run: `judge_empty` decides.
    RanEmpty,
    /// Its slice ends.
    Expire(SliceEnd),
    /// Its slice ends, and this queue, whose next request is near the head, becomes active without
    /// another choice.
    GiveTo(QueueId),
}

impl<T: Trace> Cfq<T> {
    /// Selects the queue from which to dispatch; it has a request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn select(&mut self, cx: &Cx) -> Option<QueueId> {
        let Some(active) = self.active else { return self.choose_queue(cx) };
        if self.queued == 0 {
            return None;
        }
        let mut verdict = self.judge_active(cx, active);
        if matches!(verdict, Verdict::RanEmpty) {
            self.give_up_window_of_seeky(cx, active);
            verdict = self.judge_empty(cx, active);
        }
        match verdict {
            Verdict::Serve => return Some(active),
            Verdict::Wait(why) => {
                self.queues[active].slice.hold_while_empty();
                self.trace.event(cx.now, Event::Elevator(ElevatorEvent::Waiting { why }));
                return None;
            }
            Verdict::Expire(why) => self.expire(cx, why),
            Verdict::GiveTo(close) => {
                self.set_up_merge(cx, active, close);
                self.expire(cx, SliceEnd::Cooperator);
                self.activate(cx, close);
                return Some(close);
            }
            Verdict::RanEmpty => unreachable!("an empty queue was judged"),
        }
        self.choose_queue(cx)
    }

    /// Judges the active queue. The order of the questions matters.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn judge_active(&self, cx: &Cx, active: QueueId) -> Verdict {
        let queue = &self.queues[active];
        if queue.slice.is_stretched() && !queue.is_empty() {
            return Verdict::Expire(SliceEnd::WaitBusy);
        }
        if queue.slice.is_over(self.now) && !queue.slice.is_forced() {
            return self.judge_spent(cx, queue);
        }
        if !queue.is_empty() {
            return Verdict::Serve;
        }
        if let Some(close) = self.close_cooperator(active) {
            return Verdict::GiveTo(close);
        }
        if self.idle_timer.is_some() {
            return Verdict::Wait(WaitReason::IdleTimer);
        }
        Verdict::RanEmpty
    }

    /// Judges the active queue when its slice is over. The only queue of a group keeps the device
    /// while requests are in flight, or its group would leave the tree and lose its place.
    #[cold]
    #[inline(never)]
    fn judge_spent(&self, cx: &Cx, queue: &Queue) -> Verdict {
        let alone = self.groups[queue.group].entities == 1;
        if alone && queue.is_empty() && queue.in_flight > 0 && self.should_idle(cx, queue) {
            Verdict::Wait(WaitReason::InFlight)
        } else if self.judge_group_idle(queue) {
            Verdict::Wait(WaitReason::GroupInFlight)
        } else {
            Verdict::Expire(SliceEnd::SliceUsed)
        }
    }

    /// Judges the active queue when it is empty and the idle timer does not run.
    #[cold]
    #[inline(never)]
    fn judge_empty(&self, cx: &Cx, active: QueueId) -> Verdict {
        let queue = &self.queues[active];
        if queue.in_flight > 0 && self.should_idle(cx, queue) {
            Verdict::Wait(WaitReason::InFlight)
        } else if self.judge_group_idle(queue) {
            Verdict::Wait(WaitReason::GroupInFlight)
        } else {
            Verdict::Expire(SliceEnd::Empty)
        }
    }

    /// Takes the idle window from a seeky queue that has run empty with more than half of its slice
    /// left. Linux does this in the middle of judging: after it asks for the timer, and before it
    /// asks for requests in flight.
    #[cold]
    #[inline(never)]
    fn give_up_window_of_seeky(&mut self, cx: &Cx, active: QueueId) {
        let queue = &mut self.queues[active];
        let is_open = queue.idle_window.is_open();
        if queue.is_seeky() && is_open && queue.slice.has_half_left(self.now) {
            queue.idle_window = IdleWindow::new(false);
            self.trace.event(cx.now, Event::Cfq(CfqEvent::WindowGivenUp { queue: queue.name() }));
        }
    }

    /// Chooses the queue whose slice is due, and activates it.
    #[cold]
    #[inline(never)]
    fn choose_queue(&mut self, cx: &Cx) -> Option<QueueId> {
        let queue = self.find_queue(cx)?;
        self.activate(cx, queue);
        Some(queue)
    }

    /// Serves `group` from now on. It resumes the workload with which its last slice ended, if time
    /// of that is left; else the workload that is due is chosen. Returns the tree of the workload.
    #[inline]
    pub(super) fn choose_workload_of(&mut self, cx: &Cx, group: GroupId) -> TreeId {
        self.serving.group = Some(group);
        let saved = self.groups[group].saved;
        let served = &mut self.serving.served;
        if let Some(saved) = saved {
            served.class = saved.class;
            served.workload = saved.workload;
            served.end = self.now + saved.span;
        }
        let trees = &self.groups[group].trees;
        let class = trees.first_class();
        let resumes = saved.is_some_and(|saved| {
            saved.class == class && !trees.of(class, saved.workload).is_empty()
        });
        served.class = class;
        if class == IoClass::Idle {
            // The workload is left as it is: there is one tree.
            served.end = self.now + cx.device.hz.tick();
            return TreeId::IDLE;
        }
        if resumes {
            return TreeId::new(class, served.workload);
        }
        let workload = self.due_workload(group, class);
        self.serving.served.workload = workload;
        self.serving.idling_asked = false;
        let span = self.workload_span(cx, group);
        self.serving.served.end = self.now + span;
        self.trace.event(cx.now, Event::Cfq(CfqEvent::Workload { group, class, workload, span }));
        TreeId::new(class, workload)
    }

    /// Returns how long the chosen workload is served: its part of the group's time by its number
    /// of queues, less if they are asynchronous, and at least two ticks.
    fn workload_span(&self, cx: &Cx, group: GroupId) -> Nanos {
        let ServedWorkload { class, workload, .. } = self.serving.served;
        let state = &self.groups[group];
        let queues = u64::from(state.trees.of(class, workload).len());
        let busy = state.trees.busy_of(class).max(state.average_busy[class as usize]);
        let span = self.kernel.portion(self.group_span(cx, group), queues, busy.into());
        let span = if workload == Workload::Async {
            let target = self.tunables.target_latency();
            let of_async = u64::from(state.trees.busy_async());
            let cap = self.kernel.portion(target, of_async, self.busy.into());
            let [async_part, whole] =
                Synchrony::ALL.map(|synchrony| self.tunables.slice(synchrony).as_nanos());
            self.kernel.portion(span.min(cap), async_part, whole)
        } else {
            span.max(Nanos::new(2 * self.tunables.slice_idle().as_nanos()))
        };
        span.max(Nanos::new(MIN_WORKLOAD_TICKS * cx.device.hz.tick().as_nanos()))
    }

    /// Makes the queue active, with a new slice.
    #[cold]
    #[inline(never)]
    pub(super) fn activate(&mut self, cx: &Cx, queue: QueueId) {
        let since = self.preempted_at.take().unwrap_or_else(|| self.service_speed.mark(self.now));
        let state = &mut self.queues[queue];
        let (name, group) = (state.name(), state.group);
        state.slice = Slice::activate(self.now, since);
        self.stop_idle_timer();
        self.active = Some(queue);
        let state = &mut self.groups[group];
        state.stats.activated(self.now, state.queued);
        let ServedWorkload { class, workload, .. } = self.serving.served;
        self.trace
            .event(cx.now, Event::Cfq(CfqEvent::Active { queue: name, group, class, workload }));
    }
}
