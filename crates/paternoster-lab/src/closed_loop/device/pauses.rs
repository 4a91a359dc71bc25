//! Pauses: spans in which nothing is answered. Of a device, or of whoever drives it.

use paternoster::{Instant, Nanos, Sector};

use crate::closed_loop::chance::Chance;
use crate::model::{Command, Completion, Model, Op};

/// When pauses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PausesParameters {
    /// One of each length at the end of each period.
    Periodic {
        /// From the end of one to the end of the next.
        period: Nanos,
        /// How long one is.
        pause: Nanos,
    },
    /// By chance: so many a second on average, of any length between two.
    ByChance {
        /// How many a second.
        per_second: u32,
        /// The shortest and the longest.
        lengths: (Nanos, Nanos),
    },
}

/// The pauses of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::closed_loop) struct Pauses {
    /// Begin and end of each, in order.
    spans: Vec<(Instant, Instant)>,
}

impl Pauses {
    /// Those of a run of that length.
    pub(in crate::closed_loop) fn new(
        parameters: PausesParameters,
        run: Nanos,
        chance: &mut Chance,
    ) -> Self {
        let mut spans = Vec::new();
        let mut at = Instant::START;
        while at < Instant::START + run {
            let (begin, end) = match parameters {
                PausesParameters::Periodic { period, pause } => {
                    let end = at + period;
                    (end.saturating_sub(pause), end)
                }
                PausesParameters::ByChance { per_second, lengths: (least, most) } => {
                    let begin = at + chance.exponential(1e6 / f64::from(per_second));
                    let further = chance.below(most.saturating_sub(least).as_nanos() + 1);
                    (begin, begin + least + Nanos::new(further))
                }
            };
            spans.push((begin, end));
            at = end;
        }
        Self { spans }
    }

    /// The first moment from `at` on that is in no pause.
    pub(in crate::closed_loop) fn free_at(&self, at: Instant) -> Instant {
        let next = self.spans.partition_point(|(_, end)| *end <= at);
        match self.spans.get(next) {
            Some(&(begin, end)) if begin <= at => end,
            _ => at,
        }
    }
}

/// A device with pauses. What it does goes on meanwhile.
pub(super) struct Pausing {
    device: Box<dyn Model>,
    pauses: Pauses,
}

impl Pausing {
    pub(super) fn new(device: Box<dyn Model>, pauses: Pauses) -> Self {
        Self { device, pauses }
    }
}

impl Model for Pausing {
    fn depth(&self) -> u32 {
        self.device.depth()
    }

    fn end(&self) -> Sector {
        self.device.end()
    }

    fn rotational(&self) -> bool {
        self.device.rotational()
    }

    fn takes(&self, op: Op) -> bool {
        self.device.takes(op)
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.device.submit(now, command);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.device.poll_timeout().map(|at| self.pauses.free_at(at))
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        if self.pauses.free_at(now) > now {
            return None;
        }
        self.device.poll(now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::{Pool, PoolParameters};
    use super::super::tests::{at, ends, read};
    use super::*;
    use crate::closed_loop::chance::Service;

    #[test]
    fn nothing_is_answered_in_a_pause() {
        let periodic = PausesParameters::Periodic {
            period: Nanos::from_micros(500),
            pause: Nanos::from_micros(100),
        };
        let pauses = Pauses::new(periodic, Nanos::from_millis(10), &mut Chance::new(1, 1));
        let servers = PoolParameters::new(1, Service::constant(150.0));
        let pool = Box::new(Pool::new(servers, Chance::new(1, 1)));
        let mut pausing = Pausing::new(pool, pauses);
        for tag in 0..4 {
            pausing.submit(at(0), read(tag));
        }
        // The third would end at 450, in the pause from 400 to 500; the fourth ends at 600.
        assert_eq!(ends(&mut pausing), [(0, 150), (1, 300), (2, 500), (3, 600)]);
    }

    /// 20 a second for 100 s are 2000, with a deviation of 45; each takes 2.25 ms on average, in
    /// which no other begins: 1914 are to be expected.
    #[test]
    fn pauses_by_chance_come_as_often_as_they_should() {
        let by_chance = PausesParameters::ByChance {
            per_second: 20,
            lengths: (Nanos::from_micros(500), Nanos::from_millis(4)),
        };
        let pauses = Pauses::new(by_chance, Nanos::from_secs(100), &mut Chance::new(1, 1));
        assert!((1734..2094).contains(&pauses.spans.len()), "{}", pauses.spans.len());
        let lengths = pauses.spans.iter().map(|(begin, end)| end.saturating_since(*begin));
        assert!(lengths.clone().min() >= Some(Nanos::from_micros(500)));
        assert!(lengths.max() <= Some(Nanos::from_millis(4)));
    }
}
