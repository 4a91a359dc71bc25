//! Whose turn it is: which queue to send from, or why to wait.
//!
//! First the active queue is judged; if its turn is to end, a group is chosen by vdisktime, then a
//! class, a kind of work and a queue of it. What is chosen may still be held back by the gate, in
//! `dispatch.rs`.

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue::{Queue, QueueId};
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, ExpireReason, Trace, WaitReason, Workload};

/// A workload has at least so many ticks.
const MIN_WORKLOAD_TICKS: u64 = 2;

/// What is served: until its time is over, the next queue is of the same group and workload.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) group: Option<GroupId>,
    pub(super) class: IoClass,
    pub(super) workload: Workload,
    /// When the time of the workload is over. Looked at only when the next queue is chosen.
    pub(super) end: Instant,
}

impl Serving {
    pub(super) fn new(now: Instant) -> Self {
        Self { group: None, class: IoClass::Be, workload: Workload::Async, end: now }
    }
}

/// What is to happen with the active queue.
enum Verdict {
    /// It sends.
    Serve,
    /// It keeps the device, and nobody sends.
    Wait(WaitReason),
    /// It has nothing to send and no timer runs for it: more is to be asked.
    RanEmpty,
    /// Its turn ends.
    Expire(ExpireReason),
    /// Its turn ends for that of a queue with a request near the head, without another choice.
    GiveTo(QueueId),
}

impl<T: Trace> Cfq<T> {
    /// The queue to send from; it has a request.
    pub(super) fn select(&mut self, cx: &Cx<'_>) -> Option<QueueId> {
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
                self.queues[active].turn.waited = true;
                self.trace.event(cx.now, Event::Waiting { why });
                return None;
            }
            Verdict::Expire(why) => self.expire(cx, why),
            Verdict::GiveTo(near) => {
                self.set_up_merge(cx, active, near);
                self.expire(cx, ExpireReason::Cooperator);
                self.activate(cx, near);
                return Some(near);
            }
            Verdict::RanEmpty => unreachable!("an empty queue was judged"),
        }
        self.choose_queue(cx)
    }

    /// What is to happen with the active queue. The order of the questions matters.
    fn judge_active(&self, cx: &Cx<'_>, active: QueueId) -> Verdict {
        let queue = &self.queues[active];
        if queue.turn.busy_wait && !queue.is_empty() {
            return Verdict::Expire(ExpireReason::WaitBusy);
        }
        if queue.turn.is_over(cx.now) && !queue.turn.forced {
            return self.judge_spent(cx, queue);
        }
        if !queue.is_empty() {
            return Verdict::Serve;
        }
        if let Some(near) = self.close_cooperator(active) {
            return Verdict::GiveTo(near);
        }
        if self.idle_timer.is_some() {
            return Verdict::Wait(WaitReason::IdleTimer);
        }
        Verdict::RanEmpty
    }

    /// The slice is over. The only queue of its group keeps the device while its requests are in
    /// flight, even with others to send: else its group would leave the tree and lose its place.
    fn judge_spent(&self, cx: &Cx<'_>, queue: &Queue) -> Verdict {
        let alone = self.groups[queue.group].listed == 1;
        if alone && queue.is_empty() && queue.in_flight > 0 && self.should_idle(cx, queue) {
            Verdict::Wait(WaitReason::InFlight)
        } else if self.judge_group_idle(queue) {
            Verdict::Wait(WaitReason::GroupInFlight)
        } else {
            Verdict::Expire(ExpireReason::SliceUsed)
        }
    }

    /// The queue has nothing to send and is not waited for by the timer.
    fn judge_empty(&self, cx: &Cx<'_>, active: QueueId) -> Verdict {
        let queue = &self.queues[active];
        if queue.in_flight > 0 && self.should_idle(cx, queue) {
            Verdict::Wait(WaitReason::InFlight)
        } else if self.judge_group_idle(queue) {
            Verdict::Wait(WaitReason::GroupInFlight)
        } else {
            Verdict::Expire(ExpireReason::Empty)
        }
    }

    /// A seeky queue that has run empty with more than half of its slice left is not waited for
    /// any more. Linux decides that here, in the middle of judging, after the timer was looked at
    /// and before the requests in flight are.
    fn give_up_window_of_seeky(&mut self, cx: &Cx<'_>, active: QueueId) {
        let queue = &mut self.queues[active];
        if queue.is_seeky() && queue.idle_window && queue.turn.has_half_left(cx.now) {
            queue.deep = false;
            queue.idle_window = false;
            self.trace.event(cx.now, Event::WindowGivenUp { queue: queue.name() });
        }
    }

    /// Begins the turn of the queue that is due.
    fn choose_queue(&mut self, cx: &Cx<'_>) -> Option<QueueId> {
        let group = self.group_tree.choose()?;
        self.choose_workload_of(cx, group);
        let trees = &self.groups[group].trees;
        let queue = trees.of(self.serving.class, self.serving.workload).first();
        let queue = queue.expect("a workload is chosen for its queues");
        self.activate(cx, queue);
        Some(queue)
    }

    /// Serves `group` from now on: with what it was served with when its last turn ended, if time
    /// of that is left, or with what is due.
    fn choose_workload_of(&mut self, cx: &Cx<'_>, group: GroupId) {
        self.serving.group = Some(group);
        let saved = self.groups[group].saved;
        if let Some(saved) = saved {
            self.serving.class = saved.class;
            self.serving.workload = saved.workload;
            self.serving.end = cx.now + saved.span;
        }
        let trees = &self.groups[group].trees;
        let class = trees.first_class();
        let goes_on = saved.is_some_and(|saved| {
            saved.class == class && !trees.of(class, saved.workload).is_empty()
        });
        self.serving.class = class;
        if class == IoClass::Idle {
            // The workload is left as it is: there is one tree.
            self.serving.end = cx.now + cx.device.hz.tick();
            return;
        }
        if goes_on {
            return;
        }
        let workload = trees.due_workload(class);
        self.serving.workload = workload;
        let span = self.workload_span(cx, group);
        self.serving.end = cx.now + span;
        self.trace.event(cx.now, Event::Workload { group, class, workload, span });
    }

    /// How long the chosen workload is served: its part of the group's span by its number of
    /// queues, async ones less, at least two ticks.
    fn workload_span(&self, cx: &Cx<'_>, group: GroupId) -> Nanos {
        let Serving { class, workload, .. } = self.serving;
        let state = &self.groups[group];
        let queues = u64::from(state.trees.of(class, workload).len());
        let busy = state.trees.busy_of(class).max(state.average_busy[class as usize]);
        let span = self.group_span(group).as_nanos().wrapping_mul(queues) / u64::from(busy);
        let span = if workload == Workload::Async {
            let target = self.tunables.target_latency().as_nanos();
            let of_async = u64::from(state.trees.busy_async());
            let cap = target.wrapping_mul(of_async) / u64::from(self.busy);
            let [async_part, whole] =
                [false, true].map(|sync| self.tunables.slice(sync).as_nanos());
            span.min(cap).wrapping_mul(async_part) / whole
        } else {
            span.max(2 * self.tunables.slice_idle().as_nanos())
        };
        Nanos::new(span.max(MIN_WORKLOAD_TICKS * cx.device.hz.tick().as_nanos()))
    }
}
