//! The time that shares in metrics are of: since the last scrape, but a second at least.

use std::time::{Duration, Instant};

use crate::stat::Stat;

/// Shares of a shorter time say little: a slice of CFQ lasts a tenth of it.
const LEAST: Duration = Duration::from_secs(1);

/// The readings that later ones are compared with.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// The last one that was a second younger than the one before it.
    last: Option<(Instant, Stat)>,
    before: Option<Stat>,
}

impl Readings {
    /// Takes a reading. Returns what has happened since the last one that is old enough; since
    /// start-up where there is none.
    pub(super) fn take(&mut self, now: Instant, stat: &Stat) -> Stat {
        match &self.last {
            Some((at, _)) if now.saturating_duration_since(*at) < LEAST => {}
            _ => {
                let last = self.last.replace((now, stat.clone()));
                self.before = last.map(|(_, stat)| stat);
            }
        }
        match &self.before {
            Some(before) => stat.since(before),
            None => stat.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::DiskStat;

    #[test]
    fn shares_are_of_a_second_at_least_however_often_they_are_asked_for() {
        let reading = |millis: u64| {
            let disk = DiskStat { elapsed_ns: millis * 1_000_000, ..DiskStat::default() };
            Stat::new(vec![disk])
        };
        let begin = Instant::now();
        let mut readings = Readings::default();
        let spans = [0, 400, 1000, 1001, 1900, 2000, 9000].map(|millis| {
            let stat = readings.take(begin + Duration::from_millis(millis), &reading(millis));
            stat.disks[0].elapsed_ns / 1_000_000
        });
        assert_eq!(spans, [0, 400, 1000, 1001, 1900, 1000, 7000]);
    }
}
