//! Pauses: spans in which nothing is answered. Of a device, or of whoever drives it.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use super::Stage;
use crate::parameter_file::{Keys, ParameterError, Problem, millis};
use crate::random::{Draws, Who};
use crate::{Completion, Model};

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

impl PausesParameters {
    /// Reads a table with one of both.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        if keys.has("per_second") {
            let per_second = keys.small("per_second", 1..=1_000_000)?;
            let least = keys.number("least_ms", 0.0..=1e6)?;
            let most = keys.number("most_ms", least..=1e6)?;
            return Ok(Self::ByChance { per_second, lengths: (millis(least), millis(most)) });
        }
        let period = keys.number("every_ms", 0.001..=1e9)?;
        let (period, pause) = (millis(period), millis(keys.number("pause_ms", 0.0..=period)?));
        if pause >= period {
            let (what, found) = ("`pause_ms`".to_owned(), "all of `every_ms`".to_owned());
            let allowed = "less, so that something is answered".to_owned();
            return Err(keys.refuse(Problem::Unexpected { what, found, allowed }));
        }
        Ok(Self::Periodic { period, pause })
    }
}

/// Pauses, as far as they have been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pauses {
    parameters: PausesParameters,
    draws: Draws,
    /// Begin and end of each that is drawn, in order; those that are over leave.
    spans: VecDeque<(Instant, Instant)>,
}

impl Pauses {
    /// Those of a device or of an owner.
    pub fn new(parameters: PausesParameters, seed: u64, who: Who) -> Self {
        Self { parameters, draws: Draws::new(seed, who, 0), spans: VecDeque::new() }
    }

    /// The first moment from `at` on that is in no pause.
    pub fn free_at(&mut self, at: Instant) -> Instant {
        self.draw_until(at);
        self.known_free_at(at)
    }

    /// The same where pauses are drawn up to then.
    fn known_free_at(&self, at: Instant) -> Instant {
        let (begin, end) = match self.parameters {
            PausesParameters::Periodic { period, pause } => {
                let period = period.as_nanos().max(1);
                let over = at.since_start().as_nanos() / period;
                let end = Instant::START + Nanos::new((over + 1).saturating_mul(period));
                (end.saturating_sub(pause), end)
            }
            PausesParameters::ByChance { .. } => {
                let next = self.spans.partition_point(|(_, end)| *end <= at);
                self.spans.get(next).copied().unwrap_or((at + Nanos::new(1), at))
            }
        };
        if begin <= at { end } else { at }
    }

    /// Draws pauses until one ends after `at`.
    fn draw_until(&mut self, at: Instant) {
        let PausesParameters::ByChance { per_second, lengths: (least, most) } = self.parameters
        else {
            return;
        };
        while self.spans.back().is_none_or(|(_, end)| *end <= at) {
            let over = self.spans.back().map_or(Instant::START, |(_, end)| *end);
            let begin = over + self.draws.exponential(1e6 / f64::from(per_second));
            let further = self.draws.below(most.saturating_sub(least).as_nanos() + 1);
            self.spans.push_back((begin, begin + least + Nanos::new(further)));
        }
    }

    /// Forgets what is over, as time does not go back.
    fn forget(&mut self, now: Instant) {
        while self.spans.len() > 1 && self.spans[0].1 <= now {
            self.spans.pop_front();
        }
    }
}

/// What the device does goes on meanwhile.
impl Stage for Pauses {
    fn poll_timeout(&self, device: Option<Instant>) -> Option<Instant> {
        device.map(|at| self.known_free_at(at))
    }

    fn poll(&mut self, device: &mut dyn Model, now: Instant) -> Option<Completion> {
        self.forget(now);
        if self.free_at(now) > now {
            return None;
        }
        device.poll(now)
    }

    fn device_changed(&mut self, poll_timeout: Option<Instant>) {
        if let Some(at) = poll_timeout {
            self.draw_until(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::Behind;
    use crate::tests::{at, ends, read};
    use crate::{Servers, ServersParameters, Service};

    #[test]
    fn nothing_is_answered_in_a_pause() {
        let periodic = PausesParameters::Periodic {
            period: Nanos::from_micros(500),
            pause: Nanos::from_micros(100),
        };
        let pauses = Pauses::new(periodic, 1, Who::Pauses);
        let one = ServersParameters::new(1, Service::constant(Nanos::from_micros(150)));
        let mut pausing = Behind::new(pauses, Servers::new(one, 1));
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
        let mut pauses = Pauses::new(by_chance, 1, Who::Pauses);
        pauses.free_at(Instant::START + Nanos::from_secs(100));
        assert!((1734..2094).contains(&pauses.spans.len()), "{}", pauses.spans.len());
        let lengths = pauses.spans.iter().map(|(begin, end)| end.saturating_since(*begin));
        assert!(lengths.clone().min() >= Some(Nanos::from_micros(500)));
        assert!(lengths.max() <= Some(Nanos::from_millis(4)));
    }
}
