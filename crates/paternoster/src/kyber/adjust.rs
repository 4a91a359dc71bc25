//! The timer: a tenth of a second after a completion, the depths follow the latencies.
//!
//! ```text
//!   is the 90th percentile of the time in the device bad, in any domain?      congestion
//!
//!   the 99th percentile of a domain's total time, in quarters of its target:
//!            1     2     3     4     5     6     7     8
//!   depth × 1/4   1/2   3/4    1    5/4   3/2   7/4    2      with congestion
//!   depth ×                         5/4   3/2   7/4    2      without: nothing shrinks
//! ```
//!
//! An oddity: the products are rounded down. A depth of 1 grows only when its percentile is in the
//! last bucket, as 7/4 of it are still 1.

use super::Kyber;
use super::domain::MEASURED;
use super::latency::Bucket;
use crate::scheduler::Cx;
use crate::time::Jiffies;
use crate::trace::{Domain, Event, KyberEvent, LatencyKind, Trace};

/// The timer fires that part of a second after the first completion since it last fired.
const WINDOWS_PER_SECOND: u32 = 10;
/// Congestion is judged by this percentile of the time in the device.
const DEVICE_PERCENT: u32 = 90;
/// A domain is judged by this percentile of its total time.
const TOTAL_PERCENT: u32 = 99;
/// The quarters of a target at which a depth stays as it is.
const ON_TARGET: u32 = 4;

impl<T: Trace> Kyber<T> {
    /// Arms the timer, unless it runs already and is due earlier.
    #[inline]
    pub(super) fn arm_timer(&mut self, cx: &Cx) {
        // Time does not go back: a timer that runs is due no later.
        if self.timer.is_none() {
            let hz = cx.device.hz;
            let due = cx.jiffies() + hz.part_of_second(WINDOWS_PER_SECOND);
            self.timer = Some(hz.instant(due));
        }
    }

    /// Adjusts the depths, if the timer is due.
    pub(super) fn timer_fired(&mut self, cx: &Cx) {
        if self.timer.is_none_or(|at| at > cx.now) {
            return;
        }
        self.timer = None;
        let congested = self.is_congested(cx);
        for domain in MEASURED {
            self.adjust(cx, domain, congested);
        }
    }

    /// Computes the percentiles in the device of all domains, and returns whether one is bad.
    fn is_congested(&mut self, cx: &Cx) -> bool {
        let mut congested = false;
        for domain in MEASURED {
            let p90 = self.percentile(cx, domain, LatencyKind::Device, DEVICE_PERCENT);
            congested |= p90.is_some_and(Bucket::is_bad);
        }
        congested
    }

    /// Changes the depth of a domain by its total latencies.
    fn adjust(&mut self, cx: &Cx, domain: Domain, congested: bool) {
        let p99 = self.percentile(cx, domain, LatencyKind::Total, TOTAL_PERCENT);
        let Some(p99) = self.latencies[domain as usize].judge_by(p99, congested) else { return };
        if !congested && !p99.is_bad() {
            return;
        }
        let tokens = &mut self.domains[domain as usize].tokens;
        let depth = scaled(tokens.depth(), p99).clamp(1, tokens.numbers());
        if depth != tokens.depth() {
            tokens.set_depth(depth);
            self.trace.event(cx.now, Event::Kyber(KyberEvent::DepthChanged { domain, depth }));
        }
    }

    /// Computes a percentile of a domain, if it has enough samples.
    fn percentile(
        &mut self,
        cx: &Cx,
        domain: Domain,
        kind: LatencyKind,
        percent: u32,
    ) -> Option<Bucket> {
        let now: Jiffies = cx.jiffies();
        let latencies = &mut self.latencies[domain as usize];
        let taken = latencies.take_percentile(kind, percent, now, cx.device.hz)?;
        let quarters = taken.bucket.quarters();
        let event = Event::Kyber(KyberEvent::Latency {
            domain,
            kind,
            percent,
            quarters,
            samples: taken.samples,
        });
        self.trace.event(cx.now, event);
        Some(taken.bucket)
    }
}

/// Returns the depth times the quarters of the target that a percentile takes, over 4.
fn scaled(depth: u32, p99: Bucket) -> u32 {
    depth * p99.quarters() / ON_TARGET
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    /// The depth after a percentile of so many quarters of the target.
    fn after(depth: u32, quarters: u64) -> u32 {
        scaled(depth, Bucket::of(Nanos::new(quarters), Nanos::new(4)))
    }

    #[test]
    fn depth_follows_the_quarters_of_the_target() {
        let depths: Vec<_> = (1..=8).map(|quarters| after(128, quarters)).collect();
        assert_eq!(depths, [32, 64, 96, 128, 160, 192, 224, 256]);
    }

    /// 7/4 = 1.75, 10/4 = 2.5 and 15/4 = 3.75.
    #[test]
    fn small_depths_are_sticky() {
        assert_eq!([5, 6, 7, 8].map(|quarters| after(1, quarters)), [1, 1, 1, 2]);
        assert_eq!([5, 6, 7, 8].map(|quarters| after(2, quarters)), [2, 3, 3, 4]);
        assert_eq!([1, 5, 6, 7, 8].map(|quarters| after(3, quarters)), [0, 3, 4, 5, 6]);
    }
}
