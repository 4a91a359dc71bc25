//! A trial: one depth is compared with another, in windows that take turns.
//!
//! ```text
//!   window  0  1  2  3  4  5  6  7     P the probe, B the base
//!   arm     P  B  B  P  B  P  P  B     a drift of the device, linear or quadratic, cancels
//!   pairs   └──┘  └──┘  └──┘  └──┘
//! ```
//!
//! What a deeper queue must gain depends on how much deeper it is: s = 2 |P − B| / (P + B). With
//! `gain` 10 %, doubling the depth (s = 2/3) must give 6.7 % more. Shallower is better if it loses
//! less than 6 % of s. Above the depth at which some tenant has all its requests in the device
//! (*contested*) its weight counts no more, so more must be gained there.

use super::super::window::{BLOCK, Closed};
use super::verdict::{Answer, MILLION, MOST_PAIRS, Question, answer, relative};
use crate::time::Instant;
use crate::trace::TrialKind;

/// So many windows that say nothing end a trial.
const MOST_INVALID: u32 = 3;

/// By how many ppm the time from arrival to completion may rise in a soft trial.
const MOST_LATENCY: i64 = 100_000;

/// What one must gain to go deeper, in ppm of what a device would gain that serves as many more.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Gains {
    /// Below the contested depth.
    pub(in super::super) plain: i64,
    /// Above it.
    pub(in super::super) contested: i64,
}

/// Which depth a window has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    Probe,
    Base,
}

impl Arm {
    /// The arm of window `number`.
    pub(super) fn of(number: u64) -> Self {
        match number % BLOCK {
            0 | 3 | 5 | 6 => Self::Probe,
            _ => Self::Base,
        }
    }
}

/// A trial.
#[derive(Debug)]
pub(super) struct Trial {
    /// Upwards, downwards, or soft.
    pub(super) kind: TrialKind,
    /// The depth that is tried, in requests.
    pub(super) probe: u32,
    /// The depth that it is compared with: that which holds, or in a soft trial what clients fill.
    base: u32,
    /// When it began: a rest is as long as some times the trial.
    pub(super) began: Instant,
    /// The deeper of both is above the depth at which some tenant has all its requests in the
    /// device.
    contested: bool,
    /// The first window of the pair at hand; none if it said nothing.
    first: Option<Closed>,
    /// By how many ppm the probe was faster, for each pair so far.
    speeds: Vec<i64>,
    /// By how many ppm its requests took longer, for each pair so far.
    latencies: Vec<i64>,
    /// Windows of it that said nothing.
    invalid: u32,
}

impl Trial {
    pub(super) fn new(
        kind: TrialKind,
        probe: u32,
        base: u32,
        began: Instant,
        contested_above: Option<u32>,
    ) -> Self {
        let contested = contested_above.is_some_and(|fair| probe.max(base) > fair);
        let (speeds, latencies) = (Vec::with_capacity(MOST_PAIRS), vec![]);
        Self { kind, probe, base, began, contested, first: None, speeds, latencies, invalid: 0 }
    }

    /// The number of pairs so far.
    pub(super) fn pairs(&self) -> u32 {
        u32::try_from(self.speeds.len()).expect("at most 16")
    }

    /// Takes a window; returns the answer if that gives one.
    pub(super) fn take(&mut self, window: &Closed, gains: Gains) -> Option<Answer> {
        let valid = self.is_valid(window);
        self.invalid += u32::from(!valid);
        if self.invalid >= MOST_INVALID {
            return Some(Answer { accepted: false, mean: 0 });
        }
        if window.number.is_multiple_of(2) {
            self.first = valid.then_some(*window);
            return None;
        }
        let first = self.first.take().filter(|_| valid)?;
        let (probe, base) = match Arm::of(window.number) {
            Arm::Probe => (window, &first),
            Arm::Base => (&first, window),
        };
        self.speeds.push(relative(probe.speed, base.speed));
        self.latencies.push(relative(probe.latency.as_nanos(), base.latency.as_nanos()));
        let answer = answer(&self.speeds, self.question(gains))?;
        Some(Answer { accepted: answer.accepted && !self.harms_latency(), ..answer })
    }

    /// What runs dry says nothing, except how much a deeper queue gives, and where clients cannot
    /// fill the depth anyway.
    fn is_valid(&self, window: &Closed) -> bool {
        let may_starve = match self.kind {
            TrialKind::Up => Arm::of(window.number) == Arm::Probe,
            TrialKind::Down => false,
            TrialKind::Soft => true,
        };
        !window.bursty && (may_starve || !window.starved)
    }

    /// s, in ppm.
    fn step(&self) -> i64 {
        relative(self.probe.into(), self.base.into()).abs()
    }

    fn question(&self, gains: Gains) -> Question {
        let of_step = |ppm: i64| ppm * self.step() / MILLION;
        match (self.kind, self.contested) {
            (TrialKind::Up, false) => Question { threshold: of_step(gains.plain), if_unsure: None },
            (TrialKind::Up, true) => {
                Question { threshold: of_step(gains.contested), if_unsure: None }
            }
            (_, contested) => {
                let loss = if contested { gains.contested * 65 } else { gains.plain * 60 } / 100;
                let if_unsure = Some(of_step(-200_000));
                Question { threshold: of_step(-loss), if_unsure }
            }
        }
    }

    /// In a soft trial harm is not seen in the speed: clients that do not wait for an answer submit
    /// as fast as before.
    fn harms_latency(&self) -> bool {
        let count = i64::try_from(self.latencies.len()).expect("at most 16");
        self.kind == TrialKind::Soft && self.latencies.iter().sum::<i64>() / count > MOST_LATENCY
    }
}
