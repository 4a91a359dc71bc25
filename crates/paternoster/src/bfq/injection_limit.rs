//! How many requests of other queues may be in flight while the device idles for a queue. Probes of
//! the service time find that out.
//!
//! ```text
//!   first request   dispatched      completion        t = service time, with the wait in the queue
//!   arrives ─────────────┼───────────────▶
//!      │                 │                            injected:  t < 3/2 × base  limit + 1
//!    armed            probed      others in the                  else            limit − 1
//!                                 device: injected    alone:     base = t
//! ```
//!
//! The base is what a first request takes without injection, or the least that one ever took.
//! CFQ injects nothing and has no counterpart.

use crate::arena::RequestId;
use crate::time::{Instant, Jiffies, Nanos, Ticks};

/// How many requests of others may be in flight while the device idles for a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct InjectionLimit {
    limit: u32,
    /// What a first request takes without injection; 0 while that is not known.
    base_time: Nanos,
    /// When the limit was last reset or lowered.
    since: Jiffies,
}

impl Default for InjectionLimit {
    fn default() -> Self {
        Self { limit: 0, base_time: Nanos::ZERO, since: Jiffies::LONG_AGO }
    }
}

/// What a first request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServiceTime {
    /// From its arrival to its completion.
    pub(super) took: Nanos,
    /// Whether requests of others were injected meanwhile.
    pub(super) injected: bool,
}

/// The device as a probed request completes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceLoad {
    /// The requests in the device, with the one that has completed.
    pub(super) in_flight: u32,
    /// The most that were in it of late.
    pub(super) depth_seen: u32,
}

impl InjectionLimit {
    #[inline]
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// What a first request takes without injection, if that is known.
    #[inline]
    pub(super) fn base_time(&self) -> Option<Nanos> {
        (self.base_time > Nanos::ZERO).then_some(self.base_time)
    }

    /// Returns whether `span` is over since the limit was last reset or lowered.
    #[inline]
    pub(super) fn is_older_than(&self, span: Ticks, now: Jiffies) -> bool {
        now >= self.since + span
    }

    /// Returns whether the limit is to be reset because the think time of the queue has changed. It
    /// is as long as the base time is not known; if the think time became short, only after `gap`.
    pub(super) fn is_void_after_think_time_change(
        &self,
        became_short: bool,
        gap: Ticks,
        now: Jiffies,
    ) -> bool {
        self.base_time().is_none() && (!became_short || self.is_older_than(gap, now))
    }

    /// Adapts the limit to what a first request took.
    pub(super) fn adapt(&mut self, time: ServiceTime, device: DeviceLoad, now: Jiffies) {
        let ServiceTime { took, injected } = time;
        let alone = device.in_flight == 1;
        let (before, base) = (self.limit, self.base_time);
        if base > Nanos::ZERO && injected {
            let bearable = Nanos::new(base.as_nanos() * 3 / 2);
            if took >= bearable && before > 0 {
                self.limit -= 1;
                self.since = now;
            } else if took < bearable && before <= device.depth_seen {
                self.limit += 1;
            }
        }
        if (base == Nanos::ZERO && alone) || took < base {
            if base == Nanos::ZERO {
                self.limit = before.max(1);
            }
            self.base_time = took;
        } else if !injected && alone {
            self.base_time = took;
        }
    }

    /// Drops the base time and sets the limit to 0, or to 1 if the queue has a long think time.
    pub(super) fn reset(&mut self, has_short_think_time: bool, now: Jiffies) {
        let limit = u32::from(!has_short_think_time);
        *self = Self { limit, base_time: Nanos::ZERO, since: now };
    }
}

/// The probe of what a first request of the queue in service takes.
#[derive(Debug)]
pub(super) struct ServiceTimeProbe {
    /// When the first request arrived.
    since: Instant,
    /// The next request of the queue in service is the one to probe. Another may still be probed,
    /// by its own end and, as in Linux, by this one's arrival.
    armed: bool,
    /// The probed request, once it was dispatched.
    request: Option<RequestId>,
    /// Requests of others were injected meanwhile.
    injected: bool,
}

impl ServiceTimeProbe {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, armed: false, request: None, injected: false }
    }

    /// A first request of the queue in service arrives, with so many in the device: it is to be
    /// probed if the device is empty, or holds what was injected and `base_is_known` to compare
    /// with.
    pub(super) fn arm(&mut self, now: Instant, in_flight: u32, base_is_known: bool) {
        let is_empty = in_flight == 0;
        let can_compare = base_is_known && self.injected;
        if !is_empty && !can_compare {
            return;
        }
        self.since = now;
        self.armed = true;
        if is_empty {
            self.injected = false;
        }
    }

    /// A request of another queue is injected.
    pub(super) fn note_injected(&mut self) {
        self.injected = true;
    }

    /// A request of the queue in service is dispatched.
    #[inline]
    pub(super) fn request_dispatched(&mut self, rq: RequestId) {
        if std::mem::take(&mut self.armed) {
            self.request = Some(rq);
        }
    }

    /// A request has completed. Returns what it took if it was the probed one.
    #[inline]
    pub(super) fn request_completed(&mut self, rq: RequestId, now: Instant) -> Option<ServiceTime> {
        if self.request != Some(rq) {
            return None;
        }
        self.request = None;
        let injected = std::mem::take(&mut self.injected);
        Some(ServiceTime { took: now.wrapping_since(self.since), injected })
    }

    /// The request that was dispatched is not the probed one any more; one to come still may be.
    pub(super) fn drop_request(&mut self) {
        self.request = None;
    }

    /// The queue leaves service: nothing of it is probed.
    #[inline]
    pub(super) fn abort(&mut self) {
        self.injected = false;
        self.armed = false;
        self.request = None;
    }
}

#[cfg(test)]
mod tests {
    use crate::arena::Arena;

    use super::*;
    use crate::time::Hz;

    const MS: u64 = 1_000_000;
    const BASE: Nanos = Nanos::from_millis(2);

    fn at(nanos: u64) -> Instant {
        Instant::START + Nanos::new(nanos)
    }

    fn tick(ticks: i64) -> Jiffies {
        Hz::MILLI.jiffies(Instant::START) + Ticks::new(ticks)
    }

    /// A limit whose base is 2 ms, reset at tick 0.
    fn with_base(limit: u32) -> InjectionLimit {
        InjectionLimit { limit, base_time: BASE, since: tick(0) }
    }

    /// A completion of a probed request after `nanos`, at tick 7, where 3 were in the device at
    /// most.
    fn adapt(limit: &mut InjectionLimit, nanos: u64, injected: bool, in_flight: u32) {
        let time = ServiceTime { took: Nanos::new(nanos), injected };
        limit.adapt(time, DeviceLoad { in_flight, depth_seen: 3 }, tick(7));
    }

    /// 3/2 of 2 ms are 3 ms. The limit does not fall below 0, and rises as long as it is not above
    /// the depth that the device has shown: 4 = 3 + 1 at most. Only a fall is remembered.
    #[test]
    fn limit_follows_from_whether_injection_takes_half_as_long_again() {
        let rows = [
            (2, 3 * MS - 1, 3, 0),
            (2, 3 * MS, 1, 7),
            (0, 3 * MS, 0, 0),
            (0, 3 * MS - 1, 1, 0),
            (3, 3 * MS - 1, 4, 0),
            (4, 3 * MS - 1, 4, 0),
        ];
        for (before, nanos, after, since) in rows {
            let mut limit = with_base(before);
            adapt(&mut limit, nanos, true, 2);
            assert_eq!(limit.limit(), after, "{before} {nanos}");
            assert_eq!(limit.since, tick(since), "{before} {nanos}");
            assert_eq!(limit.base_time(), Some(BASE), "it took longer");
        }
    }

    /// Whatever was injected, less than the base is the new base.
    #[test]
    fn base_is_the_least_time_or_that_of_a_request_alone() {
        let rows = [
            (2 * MS - 1, true, 2, 2 * MS - 1),
            (2 * MS, true, 1, 2 * MS),
            (2 * MS + 1, true, 1, 2 * MS),
            (2 * MS + 1, false, 2, 2 * MS),
            (2 * MS + 1, false, 1, 2 * MS + 1),
        ];
        for (nanos, injected, in_flight, base) in rows {
            let mut limit = with_base(1);
            adapt(&mut limit, nanos, injected, in_flight);
            let label = format!("{nanos} {injected} {in_flight}");
            assert_eq!(limit.base_time(), Some(Nanos::new(base)), "{label}");
            // 2 ms are bearable, if that is the question.
            assert_eq!(limit.limit(), if injected { 2 } else { 1 }, "{label}");
        }
    }

    /// Nothing is known: a request that is alone in the device makes its time the base, and the
    /// limit 1 at least. With another it says nothing, since there is nothing to compare with.
    #[test]
    fn first_request_alone_makes_the_base() {
        for (before, in_flight, base, after) in
            [(0, 2, None, 0), (0, 1, Some(9), 1), (3, 1, Some(9), 3), (3, 2, None, 3)]
        {
            let mut limit = InjectionLimit { limit: before, ..InjectionLimit::default() };
            adapt(&mut limit, 9, true, in_flight);
            assert_eq!(limit.base_time(), base.map(Nanos::new), "{before} {in_flight}");
            assert_eq!(limit.limit(), after, "{before} {in_flight}");
        }
    }

    /// A reset at tick 5: the limit is 1 for a long think time, and nothing is known.
    #[test]
    fn reset_forgets_the_base() {
        for (has_short_think_time, after) in [(true, 0), (false, 1)] {
            let mut limit = with_base(9);
            limit.reset(has_short_think_time, tick(5));
            assert_eq!((limit.limit(), limit.base_time()), (after, None));
            let span = Ticks::new(10);
            assert!(!limit.is_older_than(span, tick(14)) && limit.is_older_than(span, tick(15)));
        }
    }

    /// At tick 100 the gap is over. A known base keeps what is known.
    #[test]
    fn think_time_change_voids_what_is_not_known_yet() {
        let gap = Ticks::new(100);
        let mut unknown = InjectionLimit::default();
        unknown.reset(true, tick(0));
        for (became_short, now, void) in [(true, 99, false), (true, 100, true), (false, 99, true)] {
            let answer = unknown.is_void_after_think_time_change(became_short, gap, tick(now));
            assert_eq!(answer, void, "{became_short} {now}");
            let known = with_base(1);
            assert!(!known.is_void_after_think_time_change(became_short, gap, tick(now)));
        }
    }

    fn requests() -> [RequestId; 2] {
        let mut requests = Arena::<RequestId, ()>::default();
        [requests.insert(()), requests.insert(())]
    }

    /// Armed at 1 ms, dispatched some time later, completed at 4 ms: it took 3.
    #[test]
    fn probe_takes_the_time_from_arrival_to_completion() {
        let [rq, other] = requests();
        let mut probe = ServiceTimeProbe::new(at(0));
        probe.request_dispatched(other);
        assert_eq!(probe.request_completed(other, at(MS)), None, "it was not armed");
        probe.arm(at(MS), 0, false);
        probe.request_dispatched(rq);
        probe.request_dispatched(other);
        assert_eq!(probe.request_completed(other, at(3 * MS)), None, "only the next one is probed");
        let time = ServiceTime { took: Nanos::from_millis(3), injected: false };
        assert_eq!(probe.request_completed(rq, at(4 * MS)), Some(time));
        assert_eq!(probe.request_completed(rq, at(5 * MS)), None, "once");
    }

    /// Beside others in the device a request is probed if some were injected, and there is a base
    /// to compare with. In an empty device what was injected before is over.
    #[test]
    fn probe_is_armed_where_the_load_is_known() {
        let rows = [
            (0, false, false, Some(false)),
            (0, true, true, Some(false)),
            (1, true, true, Some(true)),
            (1, true, false, None),
            (1, false, true, None),
        ];
        for (in_flight, injected, base_is_known, expected) in rows {
            let [rq, _] = requests();
            let mut probe = ServiceTimeProbe::new(at(0));
            if injected {
                probe.note_injected();
            }
            probe.arm(at(0), in_flight, base_is_known);
            probe.request_dispatched(rq);
            let time = probe.request_completed(rq, at(1));
            let label = format!("{in_flight} {injected} {base_is_known}");
            assert_eq!(time.map(|time| time.injected), expected, "{label}");
        }
    }

    /// What was injected counts for one probe, and not for the next.
    #[test]
    fn injection_counts_for_the_probe_that_goes_on() {
        let [first, second] = requests();
        let mut probe = ServiceTimeProbe::new(at(0));
        let mut injected = vec![];
        for rq in [first, second] {
            probe.arm(at(0), 0, true);
            probe.request_dispatched(rq);
            if rq == first {
                probe.note_injected();
            }
            injected.extend(probe.request_completed(rq, at(1)).map(|time| time.injected));
        }
        assert_eq!(injected, [true, false]);
        probe.arm(at(0), 0, true);
        probe.request_dispatched(first);
        probe.note_injected();
        assert!(probe.request_completed(first, at(1)).is_some());
        probe.arm(at(1), 1, true);
        probe.request_dispatched(second);
        assert_eq!(probe.request_completed(second, at(2)), None, "nothing was injected since");
    }

    /// Dropping the request leaves the next one to be probed; an abort leaves nothing.
    #[test]
    fn abort_ends_all_and_dropping_the_request_only_that() {
        let [rq, next] = requests();
        let mut probe = ServiceTimeProbe::new(at(0));
        probe.arm(at(0), 0, true);
        probe.request_dispatched(rq);
        probe.arm(at(1), 0, true);
        probe.note_injected();
        probe.drop_request();
        assert_eq!(probe.request_completed(rq, at(2)), None);
        probe.request_dispatched(next);
        let time = ServiceTime { took: Nanos::new(1), injected: true };
        assert_eq!(probe.request_completed(next, at(2)), Some(time));

        probe.arm(at(0), 0, true);
        probe.note_injected();
        probe.abort();
        probe.request_dispatched(rq);
        assert_eq!(probe.request_completed(rq, at(2)), None, "it is not armed");
        probe.arm(at(0), 1, true);
        probe.request_dispatched(rq);
        assert_eq!(probe.request_completed(rq, at(2)), None, "nothing is injected");

        probe.arm(at(0), 0, true);
        probe.request_dispatched(rq);
        probe.abort();
        assert_eq!(probe.request_completed(rq, at(2)), None, "it is not probed any more");
    }
}
