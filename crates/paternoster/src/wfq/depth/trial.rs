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
//! less than 6 % of s. On a device that serves in proportion to its queue a trial gains s: what
//! seems to gain more takes more pairs. Above the depth at which some tenant has all its
//! requests in the device (*contested*) its weight counts no more, so more must be gained there.
//!
//! Whoever drives the scheduler may lose its core for milliseconds. A window between two such gaps
//! then shows the device alone, and one around them what is done while nobody looks: half as much,
//! or less. So the windows of a trial are all long beside the longest gap of the trial; where a
//! longer gap comes, the pairs so far say nothing, and it begins anew with longer windows:
//!
//! ```text
//!   ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪         ▪▪▪▪▪▪▪▪▪▪▪▪▪          ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪
//!   ├P ┤├ B ┤├ B ┤├ P ─────── …                 too short for such a gap
//!                              ├ B ───────────────────────────────── …
//! ```

use super::super::window::{BLOCK, Closed, long_beside};
use super::verdict::{Answer, LEAST_PAIRS, MILLION, MOST_PAIRS, Question, answer, relative};
use crate::time::{Instant, Nanos};
use crate::trace::TrialKind;

/// So many windows that say nothing end a trial.
const MOST_INVALID: u32 = 3;

/// By how many ppm the time from arrival to completion may rise in a soft trial.
const MOST_LATENCY: i64 = 100_000;

/// So many windows that are short beside a gap end a trial: the device has gaps that no window is
/// long beside.
const MOST_SHORT: u32 = 8;

/// The pairs before which the depth does not fall where there are gaps: of three, two are alike by
/// chance.
const LEAST_PAIRS_AMONG_GAPS: usize = 8;

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
    /// The longest time without a completion since it began, or of late.
    longest_gap: Nanos,
    /// Whether there were gaps of late, as it began.
    among_gaps: bool,
    /// The shortest of the windows that its pairs are of; none while there is none.
    shortest: Option<Closed>,
    /// Windows of it that were short beside a gap.
    short: u32,
}

impl Trial {
    pub(super) fn new(
        kind: TrialKind,
        probe: u32,
        base: u32,
        began: Instant,
        contested_above: Option<u32>,
        gap: Nanos,
    ) -> Self {
        let contested = contested_above.is_some_and(|fair| probe.max(base) > fair);
        Self {
            kind,
            probe,
            base,
            began,
            contested,
            first: None,
            speeds: Vec::with_capacity(MOST_PAIRS),
            latencies: vec![],
            invalid: 0,
            longest_gap: gap,
            among_gaps: gap > Nanos::ZERO,
            shortest: None,
            short: 0,
        }
    }

    /// How long its windows have to be measured at least.
    pub(super) fn least_window(&self) -> Nanos {
        long_beside(self.longest_gap)
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
        if self.is_short(window) {
            self.first = None;
            let ends = self.short >= MOST_SHORT;
            return ends.then_some(Answer { accepted: false, mean: 0 });
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

    /// Returns whether a window is short beside the longest gap. Pairs of windows that are, as this
    /// one had a longer gap than those before it, are forgotten.
    fn is_short(&mut self, window: &Closed) -> bool {
        self.longest_gap = self.longest_gap.max(window.longest_gap);
        let longest = self.longest_gap;
        if self.shortest.is_some_and(|shortest| shortest.is_short_beside(longest)) {
            self.shortest = None;
            self.first = None;
            self.speeds.clear();
            self.latencies.clear();
        }
        if window.is_short_beside(longest) {
            self.short += 1;
            return true;
        }
        let is_shorter = |shortest: &Closed| shortest.measured < window.measured;
        self.shortest = Some(self.shortest.filter(is_shorter).unwrap_or(*window));
        false
    }

    /// What runs dry says nothing, except how much a deeper queue gives, and where clients cannot
    /// fill the depth anyway, or have gaps.
    fn is_valid(&self, window: &Closed) -> bool {
        let may_starve = match self.kind {
            _ if self.among_gaps => true,
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
        // Where windows have gaps little is ever sure. A queue that is too deep costs little then;
        // one that is too shallow leaves the device idle in each gap.
        let has_gaps = self.among_gaps || self.short > 0;
        let deeper = has_gaps.then(|| of_step(gains.plain));
        let shallower = (!has_gaps).then(|| of_step(-200_000));
        // As much as a device gains that serves in proportion, and a tenth more.
        let likely = of_step(1_100_000);
        let (threshold, if_unsure) = match (self.kind, self.contested) {
            (TrialKind::Up, false) => (gains.plain, deeper),
            (TrialKind::Up, true) => (gains.contested, None),
            (_, false) => (-gains.plain * 60 / 100, shallower),
            (_, true) => (-gains.contested * 65 / 100, shallower),
        };
        let least_pairs = match self.kind {
            TrialKind::Down | TrialKind::Soft if has_gaps => LEAST_PAIRS_AMONG_GAPS,
            _ => LEAST_PAIRS,
        };
        Question { threshold: of_step(threshold), likely, if_unsure, least_pairs }
    }

    /// In a soft trial harm is not seen in the speed: clients that do not wait for an answer submit
    /// as fast as before.
    fn harms_latency(&self) -> bool {
        let count = i64::try_from(self.latencies.len()).expect("at most 16");
        self.kind == TrialKind::Soft && self.latencies.iter().sum::<i64>() / count > MOST_LATENCY
    }
}
