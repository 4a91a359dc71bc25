//! What sleeping costs on this machine, and the least CPU time that waiting for a device can take
//! with that.
//!
//! ```text
//!   T   in the device            W      how much later than asked a sleep ends
//!   u   submitting and reaping   a + c  CPU time of going to sleep and waking up
//!
//!   clairvoyant   u + E[min(T, a + c)]                  T and W known of each I/O
//!   ε-bound       u + a + c + E[(T − s − W)⁺]           s = q(ε/2, T) − q(1 − ε/2, W)
//! ```
//!
//! Nobody who sleeps at most once for an I/O goes below the first without adding latency. The
//! second knows the two distributions, and may miss that part of I/Os. Its sleep saves
//! s + E[W] − E[D] − (a + c) of polling all the time, where D = (s + W − T)⁺ is what it adds to
//! latency. Where that is not above 0, the answer is not to sleep.

use paternoster::Nanos;
use paternoster_scene::statistics::{self, mean};
use serde::Serialize;

use super::wait::Sleep;
use crate::study::measure::float;

/// The part of I/Os that may be missed, in thousandths: that of `auto`.
const EPSILON: usize = 50;
/// So many quantiles stand for a distribution.
const QUANTILES: usize = 200;

/// Sleeps of a length, for nothing.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SleepCost {
    pub(super) asked_us: f64,
    pub(super) sleeps: usize,
    /// How much later they ended.
    pub(super) late_p50_us: f64,
    pub(super) late_p99_us: f64,
    pub(super) late_most_us: f64,
    /// CPU time of one: the median and the least.
    pub(super) cpu_us: f64,
    pub(super) cpu_least_us: f64,
    #[serde(skip)]
    late: Vec<u64>,
}

/// What the distributions allow.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Bounds {
    /// Submitting and reaping: what classic polling takes beside waiting.
    pub(super) submit_us: f64,
    /// CPU time of an I/O, by the first bound.
    pub(super) clairvoyant_us: f64,
    /// The second, where a sleep is short enough.
    pub(super) bound: Option<SleepBound>,
}

/// The longest sleep that misses few enough I/Os.
#[allow(clippy::struct_field_names)] // the keys of the JSON have their unit
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct SleepBound {
    pub(super) sleep_us: f64,
    /// CPU time of an I/O.
    pub(super) cpu_us: f64,
    /// What it adds to latency on average.
    pub(super) added_us: f64,
    /// What it saves of polling all the time; below 0 where it costs more.
    pub(super) saved_us: f64,
}

/// CPU time of an I/O but for polling.
#[derive(Clone, Copy)]
struct Costs {
    submit_us: f64,
    sleep_us: f64,
}

/// The sample that so many in a thousand are not longer than; 0 where there is none.
pub(super) fn quantile(sorted: &[u64], per_mille: usize) -> u64 {
    statistics::quantile(sorted, per_mille).unwrap_or(0)
}

pub(super) fn us(nanos: u64) -> f64 {
    float(nanos) / 1e3
}

/// By the lengths that were asked for, shortest first.
pub(super) fn sleep_costs(sleeps: &[Sleep]) -> Vec<SleepCost> {
    let mut lengths: Vec<Nanos> = sleeps.iter().map(|sleep| sleep.asked).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let cost = |asked: Nanos| {
        let of = || sleeps.iter().filter(|sleep| sleep.asked == asked);
        let mut late: Vec<_> = of().map(|sleep| sleep.overshoot.as_nanos()).collect();
        let mut cpu: Vec<_> = of().map(|sleep| sleep.cpu.as_nanos()).collect();
        late.sort_unstable();
        cpu.sort_unstable();
        SleepCost {
            asked_us: us(asked.as_nanos()),
            sleeps: late.len(),
            late_p50_us: us(quantile(&late, 500)),
            late_p99_us: us(quantile(&late, 990)),
            late_most_us: us(quantile(&late, 1000)),
            cpu_us: us(quantile(&cpu, 500)),
            cpu_least_us: us(cpu[0]),
            late,
        }
    };
    lengths.into_iter().map(cost).collect()
}

impl Bounds {
    /// Of those times, which are sorted.
    pub(super) fn new(submit_us: f64, times: &[u64], costs: &[SleepCost]) -> Self {
        // The cheapest kind of sleep, for all of them: a bound is no estimate.
        let sleep_us = costs.iter().map(|cost| cost.cpu_us).fold(f64::INFINITY, f64::min);
        let clairvoyant = mean(times.iter().map(|&time| us(time).min(sleep_us)));
        // The longest sleeps first: each stands for sleeps of half its length and more, and the
        // shortest for all others.
        let bound = costs.iter().enumerate().rev().find_map(|(index, cost)| {
            let miss = EPSILON / 2;
            let late = quantile(&cost.late, 1000 - miss);
            let sleep = quantile(times, miss).checked_sub(late)?;
            let is_of_kind = index == 0 || cost.asked_us / 2.0 <= us(sleep);
            let own = || SleepBound::new(sleep, times, &cost.late, Costs { submit_us, sleep_us });
            (sleep > 0 && is_of_kind).then(own)
        });
        Self { submit_us, clairvoyant_us: submit_us + clairvoyant, bound }
    }

    /// Whether sleeping can pay.
    pub(super) fn is_worth(&self) -> bool {
        self.bound.is_some_and(|bound| bound.saved_us > 0.0)
    }
}

impl SleepBound {
    fn new(sleep: u64, times: &[u64], late: &[u64], costs: Costs) -> Self {
        let some = |sorted: &[u64]| -> Vec<u64> {
            (0..QUANTILES).map(|n| sorted[(2 * n + 1) * sorted.len() / (2 * QUANTILES)]).collect()
        };
        let (times, late) = (some(times), some(late));
        let pairs = || times.iter().flat_map(|&time| late.iter().map(move |&late| (time, late)));
        let polled_us = mean(pairs().map(|(time, late)| us(time.saturating_sub(sleep + late))));
        let added_us = mean(pairs().map(|(time, late)| us((sleep + late).saturating_sub(time))));
        let late_us = mean(late.iter().map(|&late| us(late)));
        Self {
            sleep_us: us(sleep),
            cpu_us: costs.submit_us + costs.sleep_us + polled_us,
            added_us,
            saved_us: us(sleep) + late_us - added_us - costs.sleep_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(late: u64, cpu: u64) -> Vec<SleepCost> {
        let sleep = |asked| Sleep {
            asked: Nanos::from_micros(asked),
            overshoot: Nanos::new(late),
            cpu: Nanos::new(cpu),
        };
        sleep_costs(&[10, 50, 200].map(sleep).repeat(8))
    }

    /// T = 80 µs, W = 15, a + c = 13, u = 1: s = 65, and nothing is polled or added. Without sleep
    /// it is 81.
    #[test]
    fn bounds_of_times_that_never_vary_are_those_by_hand() {
        let bounds = Bounds::new(1.0, &[80_000; 100], &costs(15_000, 13_000));
        let bound = bounds.bound.expect("65 µs are a sleep");
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found}");
        near(bounds.clairvoyant_us, 14.0);
        near(bound.sleep_us, 65.0);
        near(bound.cpu_us, 14.0);
        near(bound.added_us, 0.0);
        near(bound.saved_us, 67.0);
        assert!(bounds.is_worth());
    }

    /// E[CPU] = u + a + c + E[T] − s − E[W] + E[D], whatever the distributions, up to what their
    /// quantiles leave out; what is saved is the rest of u + E[T].
    #[test]
    fn bound_is_what_is_saved_of_polling() {
        let times: Vec<u64> = (0..200).map(|n| 80_000 + 100 * n).collect();
        let bounds = Bounds::new(1.0, &times, &costs(15_000, 13_000));
        let bound = bounds.bound.expect("it is long enough");
        let all = 1.0 + mean(times.iter().map(|&time| us(time)));
        assert!((bound.cpu_us + bound.saved_us - all).abs() < 1e-6, "{bound:?}");
        assert!(bound.added_us > 0.0, "a few are missed");
    }

    #[test]
    fn sleep_that_costs_more_than_the_wait_is_not_worth_it() {
        let dear = Bounds::new(1.0, &[20_000; 100], &costs(8_000, 25_000));
        assert!(dear.bound.is_some() && !dear.is_worth());
        let late = Bounds::new(1.0, &[20_000; 100], &costs(30_000, 1_000));
        assert!(late.bound.is_none() && !late.is_worth());
    }
}
