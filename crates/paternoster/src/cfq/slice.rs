//! A slice: how long a queue may have the device, and what happens meanwhile.
//!
//! `select.rs` gives a slice; `expire.rs` ends it and charges for it. BFQ gives budgets instead
//! (`bfq/budget.rs`).
//!
//! ```text
//!   activate      first completion                          expire
//!      │ fresh          │◀──────────── slice ─────────▶│       │
//!      ├────────────────┼──────────────────────────────┼───────┤
//!      dispatch_start   start                          end
//!                       └──────── used, at most the slice ──────┘
//!      └─────────────────── charged if `charge_whole_turn` is set ───────────────────┘
//! ```

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::io_context::IoClass;
use crate::parts::service_speed::Mark;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::time::{Hz, Instant, Nanos};
use crate::trace::{CfqEvent, Event, Trace};

/// A level is worth 1/5 of the slice of level 4.
const SLICE_STEP: u64 = 5;
/// The level whose slice is the tunable itself.
const NORMAL_LEVEL: u64 = 4;

/// A queue's slice: what happens from the queue's activation to its expiry.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
pub(super) struct Slice {
    /// When the queue was activated.
    dispatch_start: Instant,
    /// Since when the group has kept others from the device. This is before the activation if the
    /// queue preempted another one while the device was full.
    since: Mark,
    /// When the slice began: at the first completion.
    start: Option<Instant>,
    /// When the slice ends; valid once it has begun.
    end: Instant,
    /// How long the slice is; valid once it has begun.
    length: Nanos,
    /// Requests dispatched.
    dispatched: u32,
    /// Sectors dispatched.
    sectors: u64,
    /// The queue held the device while it was empty and others had requests.
    held_while_empty: bool,
    /// The queue dispatched its last waiting request.
    ran_empty: bool,
    /// The device idles for the queue: the idle timer was armed, and no request has ended that.
    idling: bool,
    /// The queue's next request passes the gate, whatever is in flight.
    forced: bool,
    /// The queue has had its admission grant: one request beyond the bound on requests.
    grant_used: bool,
    /// The oldest request was already looked at.
    fifo_checked: bool,
    /// The slice was stretched for the sake of the group: the queue expires with its next request.
    busy_wait: bool,
}

impl Slice {
    /// The slice of a queue that becomes active, whose group has kept others from the device since
    /// `since`.
    #[inline]
    pub(super) fn activate(now: Instant, since: Mark) -> Self {
        Self {
            dispatch_start: now,
            since,
            start: None,
            end: Instant::from_nanos(0),
            length: Nanos::ZERO,
            dispatched: 0,
            sectors: 0,
            held_while_empty: false,
            ran_empty: false,
            idling: false,
            forced: false,
            grant_used: false,
            fifo_checked: false,
            busy_wait: false,
        }
    }

    /// Begins the slice, which is that long.
    #[inline]
    fn begin(&mut self, now: Instant, length: Nanos) {
        self.start = Some(now);
        self.length = length;
        self.end = now + length;
    }

    /// Returns whether the slice has not begun.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        self.start.is_none()
    }

    /// How long the slice is, once it has begun.
    #[inline]
    pub(super) fn length(&self) -> Nanos {
        self.length
    }

    /// Returns whether the slice is used up.
    #[inline]
    pub(super) fn is_over(&self, now: Instant) -> bool {
        !self.is_fresh() && now >= self.end
    }

    /// Returns whether the slice, which has begun, ends before `moment`.
    #[inline]
    pub(super) fn ends_before(&self, moment: Instant) -> bool {
        moment > self.end
    }

    /// Returns whether more of the slice is left than was used. As in Linux the arithmetic is
    /// unsigned: of a slice that is over, everything is left.
    pub(super) fn has_half_left(&self, now: Instant) -> bool {
        let left = self.left(now).cast_unsigned();
        self.start.is_none_or(|start| left > now.saturating_since(start).as_nanos())
    }

    /// What is left of the slice in ns, negative once it is over.
    #[inline]
    pub(super) fn left(&self, now: Instant) -> i64 {
        self.end.as_nanos().wrapping_sub(now.as_nanos()).cast_signed()
    }

    /// Stretches the slice for the sake of the group: it ends so long from now, or with the queue's
    /// next request.
    pub(super) fn stretch(&mut self, now: Instant, by: Nanos) {
        self.end = now + by;
        self.busy_wait = true;
    }

    /// Returns whether the slice was stretched.
    #[inline]
    pub(super) fn is_stretched(&self) -> bool {
        self.busy_wait
    }

    /// Notes that the queue expires.
    pub(super) fn expire(&mut self) {
        self.idling = false;
        self.busy_wait = false;
    }

    /// Counts a request that is dispatched.
    #[inline]
    pub(super) fn count_dispatch(&mut self, sectors: SectorCount) {
        self.dispatched += 1;
        self.sectors += u64::from(sectors.0);
        self.forced = false;
    }

    /// How many requests were dispatched.
    #[inline]
    pub(super) fn dispatched(&self) -> u32 {
        self.dispatched
    }

    /// How many sectors were dispatched.
    #[inline]
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Lets the queue's next request pass the gate.
    #[inline]
    pub(super) fn force_next(&mut self) {
        self.forced = true;
    }

    /// Returns whether the queue's next request passes the gate, whatever is in flight.
    #[inline]
    pub(super) fn is_forced(&self) -> bool {
        self.forced
    }

    /// Notes that the oldest request was looked at.
    #[inline]
    pub(super) fn mark_fifo_checked(&mut self) {
        self.fifo_checked = true;
    }

    /// Returns whether the oldest request was already looked at.
    #[inline]
    pub(super) fn is_fifo_checked(&self) -> bool {
        self.fifo_checked
    }

    /// Notes that the queue dispatched its last waiting request.
    #[inline]
    pub(super) fn run_empty(&mut self) {
        self.ran_empty = true;
    }

    /// Returns whether the queue was short of requests at some time.
    #[inline]
    pub(super) fn has_run_empty(&self) -> bool {
        self.ran_empty
    }

    /// Notes that the queue holds the device while it is empty and others have requests.
    #[inline]
    pub(super) fn hold_while_empty(&mut self) {
        self.held_while_empty = true;
    }

    /// Returns whether the queue held the device while it was empty and others had requests.
    #[inline]
    pub(super) fn was_held_while_empty(&self) -> bool {
        self.held_while_empty
    }

    /// Notes that the device idles for the queue.
    pub(super) fn start_idling(&mut self) {
        self.idling = true;
    }

    /// Notes that a request has ended idling for the queue.
    pub(super) fn stop_idling(&mut self) {
        self.idling = false;
    }

    /// Returns whether the device idles for the queue.
    #[inline]
    pub(super) fn is_idling(&self) -> bool {
        self.idling
    }

    /// Returns whether the queue has an admission grant: the device idles for it, and the grant of
    /// this slice is not used up.
    pub(super) fn has_admission_grant(&self) -> bool {
        self.idling && !self.grant_used
    }

    /// Uses up the admission grant if the device idles for the queue.
    #[inline]
    pub(super) fn use_admission_grant(&mut self) {
        self.grant_used |= self.idling;
    }

    /// When the slice began, if that was before now. Else no request has completed before now, and
    /// the time since then says nothing.
    pub(super) fn measured_since(&self, now: Instant) -> Option<Instant> {
        self.start.filter(|&start| start != now)
    }

    /// The time since the slice began, at most its length. If no request has completed before now,
    /// it is the time since the activation, at least a tick.
    pub(super) fn usage(&self, now: Instant, hz: Hz) -> Usage {
        let Some(start) = self.measured_since(now) else {
            let used = now.saturating_since(self.dispatch_start).max(hz.tick());
            return Usage { used, unaccounted: Nanos::ZERO };
        };
        let taken = now.saturating_since(start);
        let used = taken.min(self.length);
        let beyond = taken.saturating_sub(used);
        Usage { used, unaccounted: beyond + start.saturating_since(self.dispatch_start) }
    }

    /// Since when the group has kept others from the device.
    pub(super) fn since(&self) -> Mark {
        self.since
    }

    /// All the time in which the slice kept others from the device. Linux does not count the time
    /// before the first completion, which is most of a short slice.
    pub(super) fn whole_usage(&self, now: Instant) -> Usage {
        Usage { used: now.saturating_since(self.since.at()), unaccounted: Nanos::ZERO }
    }
}

/// The time that a slice took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    /// What counts as used.
    pub(super) used: Nanos,
    /// For how long the queue had the device beyond that.
    pub(super) unaccounted: Nanos,
}

impl<T: Trace> Cfq<T> {
    /// The slice of a level, in every class:
    ///
    /// `slice + slice / 5 × (4 − level)`
    #[inline]
    pub(super) fn nominal_slice(&self, synchrony: Synchrony, level: u8) -> Nanos {
        let base = self.tunables.slice(synchrony).as_nanos();
        let step = self.kernel.whole(Nanos::new(base / SLICE_STEP)).as_nanos();
        Nanos::new(base + step * NORMAL_LEVEL - step * u64::from(level))
    }

    /// Returns the slice that `queue` gets now. With `low_latency` this also updates the average
    /// number of busy queues, as in Linux.
    pub(super) fn take_slice(&mut self, cx: &Cx, queue: QueueId) -> Nanos {
        let state = &self.queues[queue];
        let (group, io_prio) = (state.group, state.io_prio());
        if !self.tunables.low_latency() {
            return self.nominal_slice(state.synchrony, io_prio.level());
        }
        let class = if io_prio.class() == IoClass::Rt { IoClass::Rt } else { IoClass::Be };
        let busy = self.refresh_average_busy(group, class);
        self.scaled_slice(cx, queue, busy)
    }

    /// With `low_latency` a slice shrinks so that all busy queues of the group have theirs in the
    /// group's part of `target_latency`, but not below twice the idle time, in proportion:
    ///
    /// `max(slice × have / want, min(slice, 2 × slice_idle × slice / slice_sync))`
    fn scaled_slice(&self, cx: &Cx, queue: QueueId, busy: u32) -> Nanos {
        let state = &self.queues[queue];
        let nominal = self.nominal_slice(state.synchrony, state.io_prio().level());
        let slice_sync = self.tunables.slice(Synchrony::Sync).as_nanos();
        let want = slice_sync.wrapping_mul(busy.into());
        let have = self.group_span(cx, state.group).as_nanos();
        if want <= have {
            return nominal;
        }
        let idles = self.tunables.slice_idle().as_nanos() * 2;
        let low = nominal.min(self.kernel.portion(nominal, idles, slice_sync));
        self.kernel.portion(nominal, have, want).max(low)
    }

    /// Updates and returns the mean number of busy queues, which rises quickly and falls slowly:
    ///
    /// `(3 × high + low + 2) / 4`
    fn refresh_average_busy(&mut self, group: GroupId, class: IoClass) -> u32 {
        let state = &mut self.groups[group];
        let busy = state.trees.busy_of(class);
        let average = &mut state.average_busy[class as usize];
        let (high, low) = (busy.max(*average), busy.min(*average));
        *average = (3 * high + low + 2) / 4;
        *average
    }

    /// Begins the slice of `queue`, whose first request has completed.
    pub(super) fn begin_slice(&mut self, cx: &Cx, queue: QueueId) {
        let length = self.take_slice(cx, queue);
        let state = &mut self.queues[queue];
        state.slice.begin(self.now, length);
        self.trace.event(cx.now, Event::Cfq(CfqEvent::Slice { queue: state.name(), length }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::service_speed::ServiceSpeed;

    fn at(ms: u64) -> Instant {
        Instant::START + Nanos::from_millis(ms)
    }

    /// Active at 0 ms.
    fn active() -> Slice {
        Slice::activate(at(0), ServiceSpeed::default().mark(at(0)))
    }

    /// Active at 0, with a slice of 10 ms that begins at 3.
    fn begun() -> Slice {
        let mut slice = active();
        slice.begin(at(3), Nanos::from_millis(10));
        slice
    }

    /// 3 to 13 ms: at 8 as much is left as was used. At 14 it is over by 1 ms, which is close to
    /// 2⁶⁴ ns as an unsigned number.
    #[test]
    fn half_is_left_before_the_middle_and_again_once_it_is_over() {
        let rows = [(7, true), (8, false), (13, false), (14, true)];
        for (ms, half_left) in rows {
            assert_eq!(begun().has_half_left(at(ms)), half_left, "{ms} ms");
        }
        assert!(active().has_half_left(at(500)), "a slice that has not begun");
        assert_eq!(begun().left(at(14)), -1_000_000);
    }

    #[test]
    fn slice_is_over_at_its_end_and_never_before_it_begins() {
        assert!(!begun().is_over(at(12)));
        assert!(begun().is_over(at(13)));
        assert!(!active().is_over(at(500)));
        assert!(!begun().ends_before(at(13)));
        assert!(begun().ends_before(at(14)));
    }

    /// The 3 ms before it begins and what is beyond its 10 ms are unaccounted; a slice that begins
    /// now has used the time since the activation, and at least a tick.
    #[test]
    fn usage_is_bounded_by_the_slice() {
        let hz = Hz::new(1000).expect("a clock");
        let usage = |used, unaccounted| Usage {
            used: Nanos::from_millis(used),
            unaccounted: Nanos::from_millis(unaccounted),
        };
        assert_eq!(begun().usage(at(8), hz), usage(5, 3));
        assert_eq!(begun().usage(at(15), hz), usage(10, 3 + 2));
        assert_eq!(begun().usage(at(3), hz), usage(3, 0));
        assert_eq!(active().usage(at(0), hz), usage(1, 0));
    }

    #[test]
    fn whole_usage_begins_with_the_preemption() {
        let preempting = Slice::activate(at(2), ServiceSpeed::default().mark(at(1)));
        assert_eq!(preempting.whole_usage(at(9)).used, Nanos::from_millis(8));
        assert_eq!(active().whole_usage(at(9)).used, Nanos::from_millis(9));
    }

    #[test]
    fn admission_grant_is_there_once_while_idling() {
        let mut slice = begun();
        slice.use_admission_grant();
        assert!(!slice.has_admission_grant(), "the device does not idle");
        slice.start_idling();
        assert!(slice.has_admission_grant());
        slice.use_admission_grant();
        assert!(!slice.has_admission_grant());
        slice.stop_idling();
        slice.start_idling();
        assert!(!slice.has_admission_grant(), "once in a slice");
    }
}
