//! How long it takes until a scheduler has found out that its device has changed.

#![allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

use paternoster::Nanos;

use super::outcome::{Sample, Watched};

/// Over how many samples a rate is taken: 50 ms.
const RATE_SAMPLES: usize = 5;
/// What part of the last throughput counts as having it again.
const ENOUGH: f64 = 0.95;
/// How many times the last depth count as having shed what is too much.
const CLOSE: f64 = 1.5;

/// How long it took since the device changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    /// Until 95 % of the throughput that it had in the last half of the time after.
    pub throughput: Nanos,
    /// Until at most 1.5 times the median depth of that half; none where the scheduler says no
    /// depth.
    pub depth: Option<Nanos>,
}

impl Watched {
    /// How long the scheduler took to settle since it began to count, when the device changed.
    pub fn settling(&self) -> Settling {
        let from = self.counted_from;
        let after: Vec<_> = self.samples.iter().filter(|sample| sample.at >= from).collect();
        let last_half = &after[after.len() / 2..];
        let last = rate(last_half);
        let window = after.windows(RATE_SAMPLES + 1).find(|window| rate(window) >= ENOUGH * last);
        let since = |sample: &Sample| sample.at.saturating_sub(from);
        let throughput = window.map_or(since(after[after.len() - 1]), |window| since(window[0]));
        let mut depths: Vec<_> = last_half.iter().filter_map(|sample| sample.depth).collect();
        depths.sort_unstable();
        let median = depths.get(depths.len() / 2).copied();
        let depth = median.and_then(|median| {
            let is_close = |sample: &&&Sample| {
                sample.depth.is_some_and(|depth| depth as f64 <= CLOSE * median as f64)
            };
            after.iter().find(is_close).map(|sample| since(sample))
        });
        Settling { throughput, depth }
    }
}

/// What completed a second from the first to the last of these.
fn rate(samples: &[&Sample]) -> f64 {
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    let span = last.at.saturating_sub(first.at).as_nanos().max(1);
    (last.completed - first.completed) as f64 / span as f64
}

#[cfg(test)]
mod tests {
    use paternoster_scene::Outcome;

    use super::*;

    /// 100 a sample, then 20 for 30 samples, then 50; depth 40 until sample 120, then 10.
    #[test]
    fn settled_is_when_the_last_rate_and_depth_are_there() {
        let mut completed = 0;
        let samples = (0..300).map(|index| {
            completed += match index {
                0..=100 => 100,
                101..=130 => 20,
                _ => 50,
            };
            let depth = Some(if index < 120 { 40 } else { 10 });
            let at = Nanos::from_millis(10 * index);
            Sample { at, depth, prices: None, in_flight: 0, completed }
        });
        let outcome = Outcome {
            seconds: 2.0,
            requests: 0,
            cost: 0.0,
            tenants: vec![],
            seconds_errors: vec![],
            in_flight: None,
        };
        let (samples, counted_from) = (samples.collect(), Nanos::from_secs(1));
        let outcome = Watched { outcome, samples, counted_from };
        let settling = outcome.settling();
        assert_eq!(settling.throughput, Nanos::from_millis(300));
        assert_eq!(settling.depth, Some(Nanos::from_millis(200)));
    }
}
