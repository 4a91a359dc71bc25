//! When a queue of Linux 2.6 is plugged and unplugged, without any lock or clock: the decisions
//! that the generations before the per-task plug share.
//!
//! - A queue whose scheduler is empty is plugged as a request comes, and its timer is set.
//! - It is unplugged when the requests that exist are *equal* to a threshold; that counts those in
//!   the device, too. On a busy queue the number passes the threshold while the queue is not
//!   plugged, and the rule never fires again. A later rule counts what is queued alone.
//! - Else by whoever needs progress, or by the timer.

use paternoster::{Hz, Instant, Nanos};

/// Which requests of a queue the threshold is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// All that exist, those in the device among them: Linux 2.6.0 to 2.6.3.
    Allocated,
    /// Those that are not in the device: since later in March 2004.
    Queued,
}

/// The rules of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnplugRules {
    /// So many requests unplug their queue (`unplug_thresh`).
    pub threshold: u32,
    /// After so long a queue is unplugged (`unplug_delay`), in whole ticks, at least one.
    pub delay: Nanos,
    /// Which requests count.
    pub counted: Counted,
    /// The ticks of the machine's clock.
    pub hz: Hz,
}

impl UnplugRules {
    /// Linux 2.6.0 to 2.6.3: four requests, 3 ms.
    pub const LINUX_2_6_3: Self = Self {
        threshold: 4,
        delay: Nanos::from_millis(3),
        counted: Counted::Allocated,
        hz: Hz::MILLI,
    };
}

/// Whether a queue is plugged, and until when.
#[derive(Clone, Copy, Debug)]
pub struct LegacyPlug {
    rules: UnplugRules,
    /// When its timer fires; none while it is not plugged.
    expires: Option<Instant>,
}

impl LegacyPlug {
    /// A queue that is not plugged.
    pub fn new(rules: UnplugRules) -> Self {
        Self { rules, expires: None }
    }

    /// Whether it is plugged.
    pub fn is_plugged(&self) -> bool {
        self.expires.is_some()
    }

    /// Whether the queue is to be plugged now that a request comes.
    pub fn should_plug(&self, scheduler_is_empty: bool) -> bool {
        scheduler_is_empty && !self.is_plugged()
    }

    /// Plugs it, which sets its timer. Returns when that fires.
    pub fn plug(&mut self, now: Instant) -> Instant {
        let UnplugRules { delay, hz, .. } = self.rules;
        let ticks = hz.whole_ticks(delay).max(paternoster::Ticks::new(1));
        *self.expires.insert(hz.instant(hz.jiffies(now) + ticks))
    }

    /// Whether the request that has just been added unplugs it. Both numbers are with that one.
    pub fn should_unplug(&self, queued: u32, in_flight: u32) -> bool {
        let requests = match self.rules.counted {
            Counted::Allocated => queued + in_flight,
            Counted::Queued => queued,
        };
        self.is_plugged() && requests == self.rules.threshold
    }

    /// Whether its timer has fired.
    pub fn has_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// When its timer fires.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.expires
    }

    /// Unplugs it, which deletes its timer.
    pub fn unplug(&mut self) {
        self.expires = None;
    }
}

/// A queue with time passed in: scenario 11 of plugging.
#[cfg(test)]
mod tests {
    use super::*;

    /// A queue before a device that is never done, with the requests in either.
    struct Queue {
        plug: LegacyPlug,
        queued: u32,
        in_flight: u32,
    }

    impl Queue {
        fn new(counted: Counted, in_flight: u32) -> Self {
            let rules = UnplugRules { counted, ..UnplugRules::LINUX_2_6_3 };
            Self { plug: LegacyPlug::new(rules), queued: 0, in_flight }
        }

        /// A request comes. Returns whether what is queued was dispatched.
        fn add(&mut self, now: Instant) -> bool {
            if self.plug.should_plug(self.queued == 0) {
                self.plug.plug(now);
            }
            self.queued += 1;
            let unplugs = self.plug.should_unplug(self.queued, self.in_flight);
            if unplugs {
                self.plug.unplug();
                self.in_flight += std::mem::take(&mut self.queued);
            }
            unplugs
        }
    }

    fn at(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    #[test]
    fn three_requests_that_nobody_kicks_wait_for_the_timer_after_3_ms() {
        let mut queue = Queue::new(Counted::Allocated, 0);
        assert!([0, 10, 20].iter().all(|&micros| !queue.add(at(micros))));
        assert_eq!(queue.plug.poll_timeout(), Some(at(3000)));
        assert!(!queue.plug.has_expired(at(2999)) && queue.plug.has_expired(at(3000)));
    }

    #[test]
    fn fourth_request_unplugs_when_it_comes() {
        let mut queue = Queue::new(Counted::Allocated, 0);
        assert!([0, 10, 20].iter().all(|&micros| !queue.add(at(micros))));
        assert!(queue.add(at(1000)));
        assert_eq!((queue.in_flight, queue.plug.poll_timeout()), (4, None));
    }

    /// 5 in flight and the first queued are 6: the number is never 4.
    #[test]
    fn queue_with_five_in_flight_is_unplugged_by_its_timer_alone() {
        let mut queue = Queue::new(Counted::Allocated, 5);
        assert!((0..100).all(|micros| !queue.add(at(micros))));
        assert_eq!((queue.queued, queue.plug.poll_timeout()), (100, Some(at(3000))));
    }

    #[test]
    fn corrected_rule_unplugs_at_the_fourth_queued_though_five_are_in_flight() {
        let mut queue = Queue::new(Counted::Queued, 5);
        let unplugs: Vec<_> = (0..4).map(|micros| queue.add(at(micros))).collect();
        assert_eq!(unplugs, [false, false, false, true]);
        assert_eq!(queue.in_flight, 9);
    }

    /// A timer of 3 ticks that is set within a tick fires as the third one after that begins, and
    /// one of less than a tick has one.
    #[test]
    fn timer_fires_at_a_tick() {
        let plugged = |delay, hz: u32, micros| {
            let hz = Hz::new(hz).expect("a clock");
            let rules = UnplugRules { delay, hz, ..UnplugRules::LINUX_2_6_3 };
            LegacyPlug::new(rules).plug(at(micros))
        };
        assert_eq!(plugged(Nanos::from_millis(3), 1000, 700), at(3000));
        assert_eq!(plugged(Nanos::from_millis(3), 100, 700), at(10_000));
        assert_eq!(plugged(Nanos::from_millis(30), 100, 10_700), at(40_000));
    }
}
