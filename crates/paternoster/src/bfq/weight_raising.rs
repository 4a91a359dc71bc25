//! Weight raising: what somebody waits for in person goes before the rest.
//!
//! ```text
//!   idle for 2 s, or new ──▶ interactive: weight × 30, until the device has served what starts
//!                            a large application, or the time for that is over
//!   arrives regularly,   ──▶ soft real time: weight × 3000, for 300 ms from each arrival
//!   at a modest rate
//! ```
//!
//! Only queues of the default level are raised, and none that becomes busy in a large burst. A
//! queue is found raised or not as it becomes busy, and falls back as a request of it is sent.

use crate::arena::IocId;
use crate::bfq::Bfq;
use crate::bfq::peak_rate::reference_rate;
use crate::bfq::queue::QueueId;
use crate::bfq::spans::Spans;
use crate::bfq::wf2q::weight_of;
use crate::io_context::IoPrio;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::{Jiffies, Nanos, Ticks};
use crate::trace::{Event, Trace};

/// The factor of what is interactive.
const INTERACTIVE: u32 = 30;
/// On top of that the factor of what is soft real time.
const SOFT_RT: u32 = 100;
/// A queue that is served at a higher rate, in sectors a second, is not soft real time.
const SOFT_RT_MAX_RATE: u64 = 7000;
/// By so many ticks more than `slice_idle` a soft real-time batch has to follow the one before.
const SOFT_RT_MIN_GAP: i64 = 4;
/// So many sectors start any application: an interactive queue that gets more is none.
const MAX_SERVED: u64 = 120_000;

/// How a queue is raised; the factor is in its entity. Kept for each user while queues are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raising {
    /// For how long; that of soft real time tells what it is. 0 after it has ended.
    pub(super) span: Ticks,
    /// Since when it is raised, or is not any more.
    pub(super) since: Jiffies,
    /// When it was raised as interactive, before it was as soft real time.
    pub(super) interactive_since: Jiffies,
    /// Sectors served while raised.
    pub(super) served: u64,
}

impl Raising {
    pub(super) fn new(now: Jiffies) -> Self {
        Self { span: Ticks::new(0), since: now, interactive_since: Jiffies::LONG_AGO, served: 0 }
    }
}

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

/// What a queue that becomes busy deserves.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent verdicts
pub(super) struct Merits {
    /// It is raised already, or may be now.
    pub(super) raise: bool,
    pub(super) interactive: bool,
    pub(super) soft_rt: bool,
    pub(super) in_large_burst: bool,
}

impl<T: Trace> Bfq<T> {
    /// For how long a queue is raised as interactive: what the reference device needs, scaled by
    /// how much slower this one is.
    pub(super) fn interactive_span(&self) -> Ticks {
        let ticks = self.reference_product / u64::from(self.peak_rate.rate);
        let ticks = Ticks::new(ticks.cast_signed());
        ticks.clamp(self.spans.raise_min, self.spans.raise_max)
    }

    /// What the reference device of that kind serves in its time.
    pub(super) fn reference_product_of(cx: &Cx<'_>, spans: &Spans) -> u64 {
        let rotational = cx.device.rotational;
        let span = if rotational { spans.reference_rotational } else { spans.reference_solid };
        u64::from(reference_rate(rotational)) * span.count().cast_unsigned()
    }

    /// Whether it is, or was last, raised as soft real time, by the length of that.
    #[inline]
    pub(super) fn is_soft_rt(&self, queue: QueueId) -> bool {
        self.queues[queue].raising.span == self.spans.soft_rt
    }

    /// What the queue deserves, with a request about to make it busy.
    pub(super) fn merits(&self, cx: &Cx<'_>, queue: QueueId, ioc: IocId) -> Merits {
        let now = cx.jiffies();
        let state = &self.queues[queue];
        let entity = &self.wf2q.entities[queue];
        let in_large_burst = state.in_large_burst;
        let may_be = !in_large_burst && entity.new_weight == weight_of(IoPrio::default());
        let soft_rt = may_be
            && !state.seeks.all_seeks()
            && now > state.soft_rt.not_before
            && state.in_flight == 0;
        let interactive = may_be && self.was_long_idle(now, queue);
        // Those that were merged at their birth count as one.
        let of_one_user = || state.owner.is_some() || self.contexts[ioc].stably_merged;
        let raise = self.tunables.low_latency()
            && (entity.factor > 1 || (state.sync && (interactive || soft_rt) && of_one_user()));
        Merits { raise, interactive, soft_rt, in_large_burst }
    }

    /// Whether the queue was idle for so long that somebody begins to use it anew.
    pub(super) fn was_long_idle(&self, now: Jiffies, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        state.in_flight == 0 && now > state.turn_end + self.spans.raise_min_idle
    }

    /// The queue becomes busy: it is raised, or goes on in another way, or not any more. Not for a
    /// while after its users parted.
    pub(super) fn raise_on_arrival(&mut self, cx: &Cx<'_>, queue: QueueId, merits: Merits) {
        let now = cx.jiffies();
        let min_idle = self.spans.raise_min_idle;
        let state = &mut self.queues[queue];
        if state.split_at > now {
            state.split_at = now - min_idle - Ticks::new(1);
        }
        if now <= state.split_at + min_idle {
            return;
        }
        let before = self.wf2q.entities[queue].factor;
        if before == 1 && merits.raise {
            self.begin_raising(queue, merits);
        } else if before > 1 {
            self.go_on_raising(now, queue, merits);
        }
        if self.wf2q.entities[queue].factor != before {
            self.wf2q.entities[queue].change_due = true;
            self.trace_raising(cx, queue);
        }
    }

    fn begin_raising(&mut self, queue: QueueId, merits: Merits) {
        if merits.interactive {
            self.queues[queue].raising.served = 0;
            self.set_interactive(queue);
        } else {
            self.queues[queue].raising.interactive_since = Jiffies::LONG_AGO;
            self.set_soft_rt(queue);
        }
        // A small one; its first request may be larger.
        let budget = SectorCount(2 * self.budgets.lower().0);
        let entity = &mut self.wf2q.entities[queue];
        entity.budget = entity.budget.min(budget);
    }

    fn go_on_raising(&mut self, now: Jiffies, queue: QueueId, merits: Merits) {
        if merits.interactive {
            self.set_interactive(queue);
        } else if merits.in_large_burst {
            self.wf2q.entities[queue].factor = 1;
        } else if merits.soft_rt {
            if !self.is_soft_rt(queue) {
                let raising = &mut self.queues[queue].raising;
                raising.interactive_since = raising.since;
                self.set_soft_rt(queue);
            }
            self.queues[queue].raising.since = now;
        }
    }

    fn set_interactive(&mut self, queue: QueueId) {
        self.queues[queue].raising.span = self.interactive_span();
        self.wf2q.entities[queue].factor = INTERACTIVE;
    }

    fn set_soft_rt(&mut self, queue: QueueId) {
        self.queues[queue].raising.span = self.spans.soft_rt;
        self.wf2q.entities[queue].factor = INTERACTIVE * SOFT_RT;
    }

    /// An async request arrives for a queue that is busy and had none for long: it is raised. What
    /// was served of it while it was raised before counts on.
    pub(super) fn raise_starved_async(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        if cx.jiffies() > state.raising.since + self.spans.raise_async_gap {
            self.set_interactive(queue);
            self.symmetry.raised_busy += 1;
            self.wf2q.entities[queue].change_due = true;
            self.trace_raising(cx, queue);
        }
    }

    /// A request of the queue in service was sent: its raising may be over. The weight changes at
    /// once, in the middle of the turn.
    pub(super) fn update_raising(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let now = cx.jiffies();
        if self.wf2q.entities[queue].factor > 1 {
            let state = &self.queues[queue];
            if state.in_large_burst {
                self.end_raising(cx, queue);
            } else if now > state.raising.since + state.raising.span {
                self.end_or_change_raising(cx, queue);
            }
            let served = self.queues[queue].raising.served;
            if self.wf2q.entities[queue].factor > 1
                && !self.is_soft_rt(queue)
                && served > MAX_SERVED
            {
                self.end_raising(cx, queue);
            }
        }
        let entity = &self.wf2q.entities[queue];
        if (entity.weight > entity.own_weight) != (entity.factor > 1) {
            self.wf2q.apply_weight(queue);
        }
    }

    /// The time is over for which the queue was raised: as interactive, if that still goes on
    /// beneath soft real time, or not at all.
    fn end_or_change_raising(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let since = self.queues[queue].raising.interactive_since;
        let is_over = cx.jiffies() > since + self.interactive_span();
        if !self.is_soft_rt(queue) || is_over {
            self.end_raising(cx, queue);
        } else {
            self.back_to_interactive(queue);
            self.wf2q.entities[queue].change_due = true;
            self.trace_raising(cx, queue);
        }
    }

    /// What is raised as soft real time and only seeks is no such thing.
    pub(super) fn stop_soft_rt_of_seeky(&mut self, cx: &Cx<'_>, queue: QueueId) {
        if self.wf2q.entities[queue].factor > 1 && self.is_soft_rt(queue) {
            self.end_or_change_raising(cx, queue);
        }
    }

    /// Nothing of the queue is raised any more.
    pub(super) fn end_raising(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let now = cx.jiffies();
        if !self.is_soft_rt(queue) {
            self.queues[queue].soft_rt.not_before = now;
        }
        let state = &mut self.queues[queue];
        if state.busy {
            self.symmetry.raised_busy -= 1;
        }
        state.raising.span = Ticks::new(0);
        state.raising.since = now;
        let entity = &mut self.wf2q.entities[queue];
        entity.change_due = true;
        if std::mem::replace(&mut entity.factor, 1) > 1 {
            self.trace_raising(cx, queue);
        }
    }

    pub(super) fn back_to_interactive(&mut self, queue: QueueId) {
        self.set_interactive(queue);
        let raising = &mut self.queues[queue].raising;
        raising.since = raising.interactive_since;
    }

    /// How a queue that never had a request is raised when its user is moved to another: as one
    /// that begins.
    pub(super) fn raising_of_newborn(&self, now: Jiffies, before: Raising) -> (u32, Raising) {
        let raising = Raising {
            span: self.interactive_span(),
            since: now,
            interactive_since: Jiffies::LONG_AGO,
            ..before
        };
        (INTERACTIVE, raising)
    }

    /// Whether the queue is raised as interactive.
    pub(super) fn is_raised_as_interactive(&self, queue: QueueId) -> bool {
        self.wf2q.entities[queue].factor == INTERACTIVE
    }

    /// Raised as soft real time, the queue is put in service after its turn ended long ago: the
    /// time it waited does not count.
    pub(super) fn prolong_soft_rt(&mut self, now: Jiffies, queue: QueueId) {
        let is_soft_rt = self.is_soft_rt(queue);
        let state = &mut self.queues[queue];
        if now > state.raising.since
            && self.wf2q.entities[queue].factor > 1
            && is_soft_rt
            && now > state.turn_end
        {
            state.raising.since = if state.turn_end > state.raising.since {
                state.raising.since + (now - state.turn_end)
            } else {
                now
            };
        }
    }

    /// The queue is idle: when its next batch may be soft real time. Not before what was served of
    /// it is worth its time at the highest rate, and not right after the last completion.
    pub(super) fn update_soft_rt_bound(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let hz = cx.device.hz;
        let gap = hz.whole_ticks(self.tunables.slice_idle()).count() + SOFT_RT_MIN_GAP;
        let state = &mut self.queues[queue];
        let paid_off = u64::from(hz.ticks_per_s()) * state.served_since_busy / SOFT_RT_MAX_RATE;
        let paid_off = state.busy_since + Ticks::new(paid_off.cast_signed());
        let after_idling = cx.jiffies() + Ticks::new(gap);
        state.soft_rt.not_before = state.soft_rt.not_before.max(paid_off).max(after_idling);
    }

    /// Low latency is turned off: nothing is raised any more. As in Linux this goes wrong twice: a
    /// busy queue that is not raised is taken from the number of raised ones too, and the queue in
    /// service, which is on none of the lists, stays as it is.
    pub(super) fn end_all_raising(&mut self, cx: &Cx<'_>) {
        let listed = self.wf2q.active_queues().chain(self.wf2q.idle_queues());
        let of_groups =
            self.groups.values().flat_map(|group| group.async_queues.iter().flatten().copied());
        let all: Vec<QueueId> = listed.chain(of_groups).collect();
        for queue in all {
            self.end_raising(cx, queue);
        }
    }

    pub(super) fn trace_raising(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let factor = self.wf2q.entities[queue].factor;
        let state = &self.queues[queue];
        let length = Nanos::from_millis(cx.device.hz.millis(state.raising.span));
        self.trace.event(cx.now, Event::Raised { queue: state.name(), factor, length });
    }
}
