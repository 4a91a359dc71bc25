//! Weight raising: queues that a person waits for are served before the rest. It is decided here
//! which queues are *interactive* or *soft real time*.
//!
//! ```text
//!   idle for 2 s, or new ──▶ interactive: weight × 30, until the device has served what starts
//!                            a large application, or the time for that is over
//!   arrives regularly,   ──▶ soft real time: weight × 3000, for 300 ms from each arrival
//!   at a modest rate
//! ```
//!
//! Only queues of the default level are raised, and none that becomes busy in a large burst. A
//! queue is found raised or not as it becomes busy, and falls back as a request of it is
//! dispatched. How one is raised is a value of `raising.rs`; `Bfq::set_raising` gives it to a
//! queue. CFQ raises no weight; a request with the priority flag raises the priority of its queue
//! there (`boost` in `cfq/queue.rs`).

use crate::arena::IocId;
use crate::bfq::Bfq;
use crate::bfq::peak_rate::reference_rate;
use crate::bfq::queue_id::QueueId;
use crate::bfq::raising::{EligibleAs, Raising, RaisingLengths};
use crate::bfq::time_constants::TimeConstants;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::{Jiffies, Nanos, Ticks};
use crate::trace::{BfqEvent, Event, Trace};

/// A queue that is served at a higher rate, in sectors a second, is not soft real time.
const SOFT_RT_MAX_RATE: u64 = 7000;
/// By so many ticks more than `slice_idle` a soft real-time batch has to follow the one before.
const SOFT_RT_MIN_GAP: i64 = 4;

/// Whether a queue's arrivals look like soft real time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftRealTime {
    /// Only a batch that begins after this may be soft real time.
    pub(super) not_before: Jiffies,
    /// To be computed at the completion after which the queue is idle.
    pub(super) due: bool,
}

impl SoftRealTime {
    pub(super) fn new(now: Jiffies) -> Self {
        Self { not_before: now, due: false }
    }
}

/// As what a queue that becomes busy is eligible to be raised.
#[derive(Clone, Copy, Debug)]
pub(super) struct RaisingEligibility {
    pub(super) eligible_as: EligibleAs,
    /// It may begin to be raised if it is not: it is a sync queue with one user.
    may_begin: bool,
}

impl<T: Trace> Bfq<T> {
    #[inline]
    pub(super) fn is_raised(&self, queue: QueueId) -> bool {
        self.queues[queue].raising().is_raised()
    }

    /// Returns for how long queues are raised on this device.
    pub(super) fn raising_lengths(&self) -> RaisingLengths {
        RaisingLengths::new(&self.times, self.reference_product, self.peak_rate.rate())
    }

    /// Returns what the reference device of that kind serves while it starts a large application.
    pub(super) fn reference_product_of(cx: &Cx, times: &TimeConstants) -> u64 {
        let rotational = cx.device.rotational;
        let span = if rotational { times.reference_rotational } else { times.reference_solid };
        u64::from(reference_rate(rotational)) * span.count().cast_unsigned()
    }

    /// Returns as what the queue is eligible to be raised, as a request of `ioc` makes it busy.
    pub(super) fn raising_eligibility(
        &self,
        cx: &Cx,
        queue: QueueId,
        ioc: IocId,
    ) -> RaisingEligibility {
        let state = &self.queues[queue];
        let now = cx.jiffies();
        let eligible_as = if state.in_large_burst {
            EligibleAs::OneOfLargeBurst
        } else if !self.wf2q.is_of_default_weight(queue) {
            EligibleAs::Nothing
        } else if self.was_long_idle(now, queue) {
            EligibleAs::Interactive
        } else if !state.seekiness.only_seeks()
            && now > state.soft_rt.not_before
            && state.in_flight == 0
        {
            EligibleAs::SoftRealTime
        } else {
            EligibleAs::Nothing
        };
        // Queues that were merged at creation count as one.
        let may_begin = state.synchrony.is_sync()
            && (state.owner.is_some() || self.contexts[ioc].stably_merged);
        RaisingEligibility { eligible_as, may_begin }
    }

    /// Returns whether the queue was idle for so long that it is interactive when it is used again.
    pub(super) fn was_long_idle(&self, now: Jiffies, queue: QueueId) -> bool {
        self.queues[queue].was_idle_for(self.times.raise_min_idle, now)
    }

    /// The queue becomes busy: raising starts, changes or ends. For a while after a split nothing
    /// changes.
    pub(super) fn raise_on_arrival(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        RaisingEligibility { eligible_as, may_begin }: RaisingEligibility,
    ) {
        let now = cx.jiffies();
        let min_idle = self.times.raise_min_idle;
        let state = &mut self.queues[queue];
        if state.split_at > now {
            state.split_at = now - min_idle - Ticks::new(1);
        }
        if now <= state.split_at + min_idle {
            return;
        }
        let before = *state.raising();
        let raising = if before.is_raised() {
            before.continued(now, eligible_as, self.raising_lengths())
        } else if may_begin {
            before.begun(eligible_as, self.raising_lengths())
        } else {
            return;
        };
        self.set_raising(queue, raising);
        if !before.is_raised() && raising.is_raised() {
            // A small one; its first request may be larger.
            let budget = SectorCount(2 * self.budgets.lower().0);
            self.wf2q.set_budget(queue, self.wf2q.budget(queue).min(budget));
        }
        if raising.factor() != before.factor() {
            self.trace_raising(cx, queue);
        }
    }

    /// An async request arrives for a queue that is busy and had none for long: it is raised.
    pub(super) fn raise_starved_async(&mut self, cx: &Cx, queue: QueueId) {
        let raising = *self.queues[queue].raising();
        if cx.jiffies() > raising.since() + self.times.raise_async_gap {
            self.set_raising(queue, raising.as_interactive(self.raising_lengths()));
            self.trace_raising(cx, queue);
        }
    }

    /// A request of the queue in service was dispatched: its raising may be over. The weight
    /// changes at once, in the middle of the service.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn update_raising(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        if state.raising().is_raised() {
            if state.in_large_burst {
                self.end_raising(cx, queue);
            } else if state.raising().is_over(cx.jiffies()) {
                self.end_or_change_raising(cx, queue);
            }
            if self.queues[queue].raising().is_overserved() {
                self.end_raising(cx, queue);
            }
        }
        self.wf2q.settle_raising(queue);
    }

    /// The time is over for which the queue was raised: as interactive, if that still goes on
    /// beneath soft real time, or not at all.
    fn end_or_change_raising(&mut self, cx: &Cx, queue: QueueId) {
        let raising = *self.queues[queue].raising();
        let lengths = self.raising_lengths();
        if raising.is_interactive_beneath(cx.jiffies(), lengths) {
            self.set_raising(queue, raising.back_to_interactive(lengths));
            self.trace_raising(cx, queue);
        } else {
            self.end_raising(cx, queue);
        }
    }

    /// Ends soft real time for a queue that only seeks.
    pub(super) fn stop_soft_rt_of_seeky(&mut self, cx: &Cx, queue: QueueId) {
        let raising = self.queues[queue].raising();
        if raising.is_raised() && raising.is_soft_rt() {
            self.end_or_change_raising(cx, queue);
        }
    }

    /// Ends the raising of the queue.
    fn end_raising(&mut self, cx: &Cx, queue: QueueId) {
        let now = cx.jiffies();
        let raising = *self.queues[queue].raising();
        if !raising.is_soft_rt() {
            self.queues[queue].soft_rt.not_before = now;
        }
        self.set_raising(queue, raising.ended(now));
        if raising.is_raised() {
            self.trace_raising(cx, queue);
        }
    }

    /// Low latency is turned off: nothing is raised any more. As in Linux this goes wrong twice: a
    /// busy queue that is not raised is taken from the number of raised ones too, and the queue in
    /// service, which is on none of the lists, stays as it is.
    pub(super) fn end_all_raising(&mut self, cx: &Cx) {
        let on_trees = self.wf2q.active_queues().chain(self.wf2q.idle_queues());
        let of_groups =
            self.groups.values().flat_map(|group| group.async_queues.iter().flatten().copied());
        let all: Vec<QueueId> = on_trees.chain(of_groups).collect();
        for queue in all {
            let state = &self.queues[queue];
            if state.busy && !state.raising().is_raised() {
                self.busy.remove_unraised();
            }
            self.end_raising(cx, queue);
        }
    }

    /// A raised queue is so no longer: the one into which it merges is, unless it was.
    pub(super) fn hand_over_raising(&mut self, cx: &Cx, queue: QueueId, target: QueueId) {
        let (from, into) = (*self.queues[queue].raising(), *self.queues[target].raising());
        if !from.is_raised() {
            return;
        }
        if !into.is_raised() {
            self.set_raising(target, from.handed_over(into));
            self.trace_raising(cx, target);
        }
        self.set_raising(queue, from.without_factor());
        self.trace_raising(cx, queue);
    }

    /// Gives a user the raising back that it had before its queue was merged, unless the time of
    /// that is over or the queue is in a large burst.
    pub(super) fn restore_raising(&mut self, cx: &Cx, queue: QueueId, saved: Raising) {
        let now = cx.jiffies();
        let state = &self.queues[queue];
        let before = *state.raising();
        let mut raising = saved;
        if !self.tunables.low_latency() {
            raising = saved.with_factor_of(before);
            if state.busy && before.is_raised() {
                self.busy.add_raised_again();
            }
        }
        let state = &self.queues[queue];
        if raising.is_raised() && (state.in_large_burst || raising.is_over(now)) {
            let lengths = self.raising_lengths();
            let goes_back = !state.in_large_burst && raising.is_interactive_beneath(now, lengths);
            raising = if goes_back {
                raising.back_to_interactive(lengths)
            } else {
                raising.without_factor()
            };
        }
        self.set_raising(queue, raising);
        self.trace_raising(cx, queue);
    }

    /// The queue is idle: sets when its next batch may be soft real time. That is not before its
    /// sectors are worth their time at the highest rate of soft real time, and not right after the
    /// last completion.
    pub(super) fn update_soft_rt_bound(&mut self, cx: &Cx, queue: QueueId) {
        let hz = cx.device.hz;
        let gap = hz.whole_ticks(self.tunables.slice_idle()).count() + SOFT_RT_MIN_GAP;
        let state = &mut self.queues[queue];
        let paid_off = u64::from(hz.ticks_per_s()) * state.served_since_busy / SOFT_RT_MAX_RATE;
        let paid_off = state.busy_since + Ticks::new(paid_off.cast_signed());
        let after_idling = cx.jiffies() + Ticks::new(gap);
        state.soft_rt.not_before = state.soft_rt.not_before.max(paid_off).max(after_idling);
    }

    fn trace_raising(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        let factor = state.raising().factor();
        let length = Nanos::from_millis(cx.device.hz.millis(state.raising().length()));
        self.trace
            .event(cx.now, Event::Bfq(BfqEvent::Raised { queue: state.name(), factor, length }));
    }
}
