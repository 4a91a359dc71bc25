//! How long the server takes to answer reads and writes, lately and usually.
//!
//! ```text
//!   answers ──▶ this window ──10 s──▶ the window before ──10 s──▶ forgotten
//!          └──▶ all
//! ```

use paternoster::{Histogram, Instant, Nanos};

/// The length of a window. What is recent is of this one and the one before.
const WINDOW: Nanos = Nanos::from_millis(10_000);

/// Answers that say how long the server takes lately.
const ENOUGH: u64 = 16;

/// How many times its usual time the server takes when its operator is told.
const SLOW: u64 = 10;

/// How long a server takes to answer: half of its answers take no longer, and 99 of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceTimes {
    /// The median.
    pub p50: Nanos,
    /// One in a hundred takes longer.
    pub p99: Nanos,
}

/// Counts of answers by their times.
#[derive(Debug, Default)]
pub(super) struct Service {
    all: Histogram,
    before: Histogram,
    window: Histogram,
    /// When the window began; none before the first answer.
    began: Option<Instant>,
}

impl Service {
    /// A read or a write was answered after so long.
    pub(super) fn count(&mut self, now: Instant, took: Nanos) {
        let began = *self.began.get_or_insert(now);
        let age = now.saturating_since(began);
        if age >= WINDOW {
            let before = std::mem::take(&mut self.window);
            self.before = if age < WINDOW + WINDOW { before } else { Histogram::default() };
            self.began = Some(now);
        }
        self.window.count(took);
        self.all.count(took);
    }

    /// What is recent; none where too little is.
    pub(super) fn recent(&self, now: Instant) -> Option<ServiceTimes> {
        let age = now.saturating_since(self.began?);
        let mut recent = Histogram::default();
        if age < WINDOW + WINDOW {
            recent += &self.window;
        }
        if age < WINDOW {
            recent += &self.before;
        }
        (recent.count_all() >= ENOUGH).then(|| ServiceTimes::of(&recent)).flatten()
    }

    /// What is usual: of all answers.
    pub(super) fn usual(&self) -> Option<ServiceTimes> {
        ServiceTimes::of(&self.all)
    }

    /// Says that the server is much slower than usual, if it is.
    pub(super) fn warning(&self, now: Instant) -> Option<String> {
        let (recent, usual) = (self.recent(now)?, self.usual()?);
        let micros = |time: Nanos| time.as_nanos() / 1000;
        (recent.p50.as_nanos() >= SLOW * usual.p50.as_nanos()).then(|| {
            format!(
                "answers within {} us (median of the last 10 to 20 s), usually within {} us",
                micros(recent.p50),
                micros(usual.p50)
            )
        })
    }
}

impl ServiceTimes {
    fn of(histogram: &Histogram) -> Option<Self> {
        let counts = histogram.counts();
        let quantile = |per_mille| Histogram::quantile(&counts, per_mille);
        Some(Self { p50: quantile(500)?, p99: quantile(990)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Nanos::from_millis(millis)
    }

    const SHORT: Nanos = Nanos::from_millis(1);
    const LONG: Nanos = Nanos::from_millis(40);

    #[test]
    fn operator_is_told_when_the_server_takes_ten_times_as_long_as_usual() {
        let mut service = Service::default();
        assert_eq!((service.recent(at(0)), service.usual()), (None, None));
        (0..300).for_each(|_| service.count(at(0), SHORT));
        assert_eq!(service.warning(at(0)), None);
        (0..100).for_each(|_| service.count(at(10_000), LONG));
        assert_eq!(service.warning(at(10_000)), None, "most of what is recent is short");
        (0..20).for_each(|_| service.count(at(20_000), LONG));
        let text = service.warning(at(20_000)).unwrap_or_default();
        assert!(
            text.starts_with("answers within ") && text.contains(", usually within "),
            "{text}"
        );
        assert_eq!(service.warning(at(40_000)), None, "nothing is recent");
        (0..300).for_each(|_| service.count(at(40_000), LONG));
        assert_eq!(service.warning(at(40_000)), None, "by now that is usual");
    }

    #[test]
    fn few_answers_say_nothing() {
        let mut service = Service::default();
        (0..15).for_each(|_| service.count(at(0), SHORT));
        assert_eq!(service.recent(at(0)), None);
        service.count(at(0), SHORT);
        let recent = service.recent(at(19_999)).expect("there are enough");
        // 1 ms lies in the bucket from 524,288 to 1,048,575 ns.
        let bucket = Nanos::new(524_288)..=Nanos::new(1_048_575);
        assert!(bucket.contains(&recent.p50) && bucket.contains(&recent.p99), "{recent:?}");
        assert_eq!(service.recent(at(20_000)), None);
    }
}
