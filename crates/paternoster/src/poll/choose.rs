//! How long to sleep, from how long I/Os take and how late sleeps end.
//!
//! ```text
//!   sleep s            asked for
//!   overshoot W        the thread runs again at R = s + W
//!   time T             the I/O is done
//!
//!   0 ─────────── s ──W── R ──polled── T        R < T: slept well, and polled the rest
//!   0 ─────────── s ─────T──W── R               R > T: a miss; R − T of latency is added
//! ```
//!
//! Each nanosecond of sleep saves one of CPU time where there is no miss, and adds one of latency
//! where there is. So the longest sleep is chosen of which all of this holds:
//!
//! 1. the added latency `E[(s + W − T)⁺]` is at most δ of `E[T]`;
//! 2. misses are at most μ of I/Os;
//! 3. s + q99(W) ≤ q99(T): hardly one ends where the slowest hundredth is; the guard counts them.
//!
//! All pairs of a sample of T and a sample of W count, not some of their quantiles: a rare
//! overshoot of 5 µs adds more to the mean latency of an I/O of 8 µs than is allowed, and no
//! quantile of 32 shows it. Both are sorted, so that one pass through both gives the sums.

use super::overshoot::Overshoot;
use super::policy::Ppm;
use super::samples::Distribution;
use crate::time::Nanos;

/// What sleeping does by what is known, or may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Latency that it adds, as a part of the mean time.
    pub(super) added: Ppm,
    /// I/Os that are done before it ends.
    pub(super) misses: Ppm,
}

/// A sleep that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) sleep: Nanos,
    pub(super) outlook: Effects,
}

/// Times and overshoots, with the sums over all pairs that a sleep leads to.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    times: &'a Distribution,
    overshoots: &'a Distribution,
}

struct Sums {
    /// Latency added, in ns.
    added: u64,
    /// Pairs that are misses.
    misses: u64,
}

impl Pairs<'_> {
    fn count(&self) -> u64 {
        (self.times.sorted().len() * self.overshoots.sorted().len()) as u64
    }

    fn sums(&self, sleep: u64) -> Sums {
        let times = self.times.sorted();
        let mut sums = Sums { added: 0, misses: 0 };
        let (mut missed, mut missed_sum) = (0, 0);
        for &overshoot in self.overshoots.sorted() {
            let resumed = sleep + u64::from(overshoot);
            while let Some(&time) = times.get(missed).filter(|time| u64::from(**time) < resumed) {
                missed += 1;
                missed_sum += u64::from(time);
            }
            sums.added += missed as u64 * resumed - missed_sum;
            sums.misses += missed as u64;
        }
        sums
    }

    fn choice(&self, sleep: u64) -> Choice {
        let Sums { added, misses } = self.sums(sleep);
        let part = |some: u64, all: u128| {
            let part = u128::from(some) * 1_000_000 / all.max(1);
            Ppm(u32::try_from(part).unwrap_or(u32::MAX))
        };
        let added = part(added, self.time_sum());
        let misses = part(misses, self.count().into());
        Choice { sleep: Nanos::new(sleep), outlook: Effects { added, misses } }
    }

    fn time_sum(&self) -> u128 {
        u128::from(self.times.sum()) * self.overshoots.sorted().len() as u128
    }

    fn allows(&self, sleep: u64, allowance: Effects) -> bool {
        let late = self.overshoots.quantile(990).as_nanos();
        if sleep + late > self.times.quantile(990).as_nanos() {
            return false;
        }
        let sums = self.sums(sleep);
        part(sums.added.into(), allowance.added, self.time_sum())
            && part(sums.misses.into(), allowance.misses, self.count().into())
    }

    /// Whether waiting so uses at most that part of its time on the CPU:
    /// `cost + E[P] ≤ cap × E[max(T, R)]`, where polling is
    /// `E[P] = E[T] − s − E[W] + E[(s + W − T)⁺]`.
    fn is_cheap(&self, sleep: u64, cost: Nanos, cap: Ppm) -> bool {
        let added = u128::from(self.sums(sleep).added);
        let count = u128::from(self.count());
        let all = self.time_sum() + added;
        let overshoot = u128::from(self.overshoots.sum()) * self.times.sorted().len() as u128;
        let asleep = u128::from(sleep) * count + overshoot;
        let busy = u128::from(cost.as_nanos()) * count + all.saturating_sub(asleep);
        part(busy, cap, all)
    }
}

/// Whether `some` is at most that part of `all`.
fn part(some: u128, at_most: Ppm, all: u128) -> bool {
    some * 1_000_000 <= all * u128::from(at_most.0)
}

/// The longest sleep that is allowed; none where not even the shortest is.
pub(super) fn longest_sleep(
    times: &Distribution,
    overshoot: &Overshoot,
    allowance: Effects,
) -> Option<Choice> {
    let most = times.quantile(990).as_nanos();
    overshoot.known().find_map(|(start, end, overshoots)| {
        let pairs = Pairs { times, overshoots };
        let (start, end) = (start.as_nanos(), end.as_nanos().min(most + 1));
        if start >= end || !pairs.allows(start, allowance) {
            return None;
        }
        let sleep = last(start, end, |sleep| pairs.allows(sleep, allowance));
        Some(pairs.choice(sleep))
    })
}

/// The shortest sleep with which waiting uses at most that part of a CPU; none where no sleep does
/// that is not longer than nearly all I/Os take.
pub(super) fn cheap_sleep(
    times: &Distribution,
    overshoots: &Distribution,
    cost: Nanos,
    cap: Ppm,
) -> Option<Choice> {
    let pairs = Pairs { times, overshoots };
    let most = times.quantile(990).as_nanos();
    if !pairs.is_cheap(most, cost, cap) {
        return None;
    }
    let dear = if pairs.is_cheap(0, cost, cap) {
        0
    } else {
        last(0, most, |sleep| !pairs.is_cheap(sleep, cost, cap))
    };
    let sleep = (dear + step(dear)).min(most);
    Some(pairs.choice(sleep))
}

/// How exactly a sleep is chosen.
fn step(sleep: u64) -> u64 {
    16.max(sleep / 512)
}

/// About the last number before `end` of which `holds`, which holds of `start` and up to somewhere.
fn last(mut start: u64, mut end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while end - start > step(start) {
        let half = u64::midpoint(start, end);
        if holds(half) {
            start = half;
        } else {
            end = half;
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::samples::Samples;

    const ALLOWANCE: Effects = Effects { added: Ppm(2_000), misses: Ppm(50_000) };

    fn distribution(times: impl IntoIterator<Item = u64>) -> Distribution {
        let mut samples: Samples<512> = Samples::default();
        times.into_iter().for_each(|time| samples.push(Nanos::new(time)));
        let mut distribution = Distribution::default();
        distribution.refresh(&samples);
        distribution
    }

    /// Sleeps of every length end so late.
    fn overshoot(late: &[u64]) -> Overshoot {
        let mut overshoot = Overshoot::default();
        for asked in [10, 50, 200].map(Nanos::from_micros) {
            let late = late.iter().cycle().take(512.max(late.len()));
            late.for_each(|late| overshoot.add(asked, Nanos::new(*late)));
        }
        overshoot.refresh();
        overshoot
    }

    fn sleep(times: impl IntoIterator<Item = u64>, late: &[u64]) -> Option<u64> {
        let choice = longest_sleep(&distribution(times), &overshoot(late), ALLOWANCE);
        choice.map(|choice| choice.sleep.as_nanos())
    }

    /// All take 80 µs and all sleeps end 2.5 µs late: 77.5 µs, to the nearest step.
    #[test]
    fn sleep_ends_just_before_a_time_that_never_varies() {
        let chosen = sleep([80_000; 100], &[2_500]).expect("there is one");
        assert!((77_300..=77_500).contains(&chosen), "{chosen}");
    }

    /// By hand: of 100 I/Os 4 take 60 µs and the others 80. With R between, the latency added is
    /// 4 % of R − 60 µs; δ of the mean, 79.2 µs, is 158.4 ns, so that R is at most 63.96 µs.
    #[test]
    fn fast_ones_bound_the_sleep_by_the_latency_that_it_adds_to_them() {
        let times = (0..100).map(|n| if n < 4 { 60_000 } else { 80_000 });
        let chosen = sleep(times, &[2_500]).expect("there is one");
        assert!((61_300..=61_460).contains(&chosen), "{chosen}");
    }

    /// 6 of 100 at 79.9 µs: the latency would be allowed, so many misses are not.
    #[test]
    fn misses_are_bounded_too() {
        let times = (0..100).map(|n| if n < 6 { 79_900 } else { 80_000 });
        let chosen = sleep(times, &[2_500]).expect("there is one");
        assert!((77_200..=77_400).contains(&chosen), "{chosen}");
    }

    #[test]
    fn no_sleep_is_short_enough_where_overshoots_are_longer_than_times() {
        assert_eq!(sleep([10_000; 100], &[11_000]), None);
    }

    /// Hand-made from the definition, with a loop over all pairs.
    #[test]
    fn sums_are_those_of_all_pairs() {
        let times = distribution((0..97).map(|n| 7_000 + n * n % 89 * 31));
        let late = distribution((0..61).map(|n| 2_000 + n * 7 % 61 * 40));
        let pairs = Pairs { times: &times, overshoots: &late };
        for sleep in [0, 4_000, 5_500, 9_000] {
            let each = times.sorted().iter().flat_map(|&time| {
                late.sorted().iter().map(move |&late| (u64::from(time), sleep + u64::from(late)))
            });
            let added: u64 = each.clone().map(|(time, end)| end.saturating_sub(time)).sum();
            let misses = each.filter(|(time, end)| time < end).count();
            let sums = pairs.sums(sleep);
            assert_eq!((sums.added, sums.misses), (added, misses as u64), "{sleep}");
        }
    }

    /// T = 80 µs, W = 2.5, a sleep costs 2.9 µs: with s asleep (2.9 + 77.5 − s) / 80 is used.
    #[test]
    fn cap_asks_for_the_sleep_that_leaves_so_much() {
        let (times, late) = (distribution([80_000; 100]), distribution([2_500; 100]));
        let cost = Nanos::new(2_900);
        let chosen = cheap_sleep(&times, &late, cost, Ppm(250_000)).expect("there is one");
        assert!((60_400..=60_600).contains(&chosen.sleep.as_nanos()), "{chosen:?}");
        assert_eq!(cheap_sleep(&times, &late, cost, Ppm(30_000)), None, "the sleep costs more");
    }
}
