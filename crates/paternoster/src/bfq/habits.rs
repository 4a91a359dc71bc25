//! How the users of a queue behave: how long they think, whether they seek, whether they keep it
//! busy. By that it is decided whether to wait for them.

use crate::arena::{IocId, RequestId};
use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::io_context::IoClass;
use crate::parts::think_time::ThinkTime;
use crate::request::{Request, Sector, SectorCount};
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::Trace;

/// Farther from the end of the request before is a seek …
const SEEK_FAR: u64 = 8 * 100;
/// … but where the device does not rotate, only for requests shorter than this: 32 KiB.
const SEEK_SMALL: SectorCount = SectorCount(8 * 8);
/// A queue is I/O-bound unless it is empty for more than a part of its time: 1 in this many.
const IDLE_PARTS: u64 = 5;
/// Time is looked at in a window of this length, the older half of which is forgotten.
const WINDOW: Nanos = Nanos::from_millis(200);

/// What is known of a queue's users. Kept for each of them while their queues are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    pub(super) think: ThinkTime,
    /// They come back soon, for all that is known.
    pub(super) think_briefly: bool,
    /// They mostly wait for I/O.
    pub(super) io_bound: bool,
    window_start: Instant,
    /// Nanoseconds of the window during which the queue was empty with nothing in flight; wraps.
    idle_total: u64,
}

impl Habits {
    /// Of a queue just made.
    ///
    /// Its last completion is put one nanosecond ahead, as in Linux, where that is meant as long
    /// ago. Here an event has one instant, in the laboratory as in the engine, so the first think
    /// time, from then to now, wraps and counts as the longest there is; so does the first idle
    /// time. Under Linux's running clock it would be next to nothing: three requests later that
    /// makes no difference. Queues of the idle class begin
    /// with a short think time as well, and keep it.
    pub(super) fn new(now: Instant, sync: bool) -> Self {
        Self {
            think: ThinkTime::new(now + Nanos::new(1)),
            think_briefly: sync,
            io_bound: true,
            window_start: now,
            idle_total: 0,
        }
    }

    /// A request arrives: whether the queue is I/O-bound, if it had one before.
    fn request_arrives(&mut self, now: Instant, is_first: bool, was_idle: bool) {
        if was_idle {
            let idle = now.wrapping_since(self.think.last_end());
            self.idle_total = self.idle_total.wrapping_add(idle.as_nanos());
        }
        if is_first {
            return;
        }
        let window = now.wrapping_since(self.window_start);
        self.io_bound = self.idle_total.wrapping_mul(IDLE_PARTS) <= window.as_nanos();
        if window > WINDOW {
            self.window_start = now.saturating_sub(Nanos::new(window.as_nanos() / 2));
            self.idle_total /= 2;
        }
    }
}

/// Whether `request`, after one that ended at `last_end`, is a seek. 0 stands for no request
/// before.
#[inline]
pub(super) fn is_seek(cx: &Cx<'_>, last_end: Sector, request: &Request) -> bool {
    last_end != Sector(0)
        && request.sector.0.abs_diff(last_end.0) > SEEK_FAR
        && (cx.device.rotational || request.sectors < SEEK_SMALL)
}

impl<T: Trace> Bfq<T> {
    /// Learns from a request of `ioc` that is about to be added to `queue`.
    pub(super) fn learn(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId, ioc: IocId) {
        let slice_idle = self.tunables.slice_idle();
        let state = &mut self.queues[queue];
        if state.in_flight == 0 && !state.busy {
            state.habits.think.request_made(cx.now, slice_idle);
        }
        self.judge_think_time(cx, queue, ioc);
        let state = &mut self.queues[queue];
        state.seeks.push(is_seek(cx, state.last_end, &cx.requests[rq]));
        if state.seeks.all_seeks() {
            self.stop_soft_rt_of_seeky(cx, queue);
        }
    }

    /// Whether the users come back soon. Not judged for a while after they parted from others.
    fn judge_think_time(&mut self, cx: &Cx<'_>, queue: QueueId, ioc: IocId) {
        let now = cx.jiffies();
        let slice_idle = self.tunables.slice_idle();
        let state = &mut self.queues[queue];
        if !state.sync
            || self.wf2q.entities[queue].class == IoClass::Idle
            || slice_idle == Nanos::ZERO
            || now <= state.split_at + self.spans.raise_min_idle
        {
            return;
        }
        let half = Nanos::new(slice_idle.as_nanos() / 2);
        let briefly = cx.contexts.alive(ioc) && !state.habits.think.exceeds(half);
        let before = std::mem::replace(&mut state.habits.think_briefly, briefly);
        let injection = &state.injection;
        let unsettled = injection.base_time == Nanos::ZERO
            && (now >= injection.since + self.spans.think_change_gap || !briefly);
        if before != briefly && unsettled {
            self.reset_injection(cx, queue);
        }
    }

    /// Whether the queue keeps its users waiting, now that a request of theirs arrives.
    pub(super) fn judge_intensity(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &mut self.queues[queue];
        let was_idle = state.sorted.is_empty() && state.in_flight == 0;
        state.habits.request_arrives(cx.now, state.fresh, was_idle);
    }
}
