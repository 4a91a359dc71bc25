//! The depth: how many requests may be in the device, learned by paired trials of throughput.
//!
//! ```text
//!   speed │        ___________     too shallow: the device idles
//!         │      ／     ▲          too deep: a request waits in the device, where no weight counts
//!         │    ／     the knee
//!         └──────────────────▶ depth
//! ```
//!
//! The latency of a request says little about the knee: nobody knows the latency of the empty
//! device, and where service times are spread the least one is not the mean. So the question is
//! asked of the device itself: *does a deeper queue give more?* Windows at two depths take turns
//! (`trial.rs`), and the pairs are judged (`verdict.rs`). The first trial doubles the depth. An
//! accepted one is followed by the next in the same direction; after a rejected one the direction
//! turns, and after two there is a rest.
//!
//! - *Jolt*: the device has become another one, faster or slower. The trial is dropped, and the
//!   next one goes that way.
//! - *Soft trial*: clients do not fill the depth. It is taken down to what they need.
//! - *Gaps*: whoever drives the scheduler loses its core, or the device pauses, for longer than a
//!   window may have. For a while windows are long beside such gaps, trials upwards take large
//!   steps, and the depth falls only where that is surely no worse. Idle clients say little
//!   about the depth then.

#[cfg(test)]
mod tests;
mod trial;
mod verdict;

use super::service::Units;
use super::window::{BLOCK, Closed, long_beside};
use crate::time::{Instant, Nanos};
use crate::trace::{Event, TrialKind, TrialVerdict, WfqEvent};
pub(super) use trial::Gains;
use trial::{Arm, Trial};
use verdict::Answer;

/// By how much the first trial goes deeper, and a trial at most, in ppm.
const LARGEST_FACTOR: u64 = 2_000_000;
/// The same after a rejection.
const SMALLEST_FACTOR: u64 = 1_250_000;
/// The same after a jolt.
const JOLT_FACTOR: u64 = 1_500_000;

/// What a soft trial tries, in ppm of what is in the device.
const SOFT_PART: u64 = 800_000;
/// How many times as long as after others the depth rests at most after a rejected soft trial: what
/// clients ask for changes less often than what a device is.
const SOFT_RESTS: u64 = 10;

/// The part of its average, in ppm, below or above which a window's speed is odd.
const ODD_BELOW: u64 = 700_000;
const ODD_ABOVE: u64 = 1_400_000;
/// So many odd windows in a row are a jolt.
const ODD_WINDOWS: u32 = 3;

/// For so many windows a gap is remembered beside which one was short.
const GAP_IS_KNOWN_FOR: u32 = 32;

/// How trials are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// What a trial has to gain.
    pub(super) gains: Gains,
    /// The longest rest after a rejection; after a rejected soft trial it is ten times that.
    pub(super) rest: Nanos,
}

/// Which depths may be tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The least one, in requests; 1 or more.
    pub(super) least: u32,
    /// The greatest one, in requests; no less than the least.
    pub(super) most: u32,
    /// The depth above which some tenant has all its requests in the device; none where there is no
    /// such depth, or it is not known.
    pub(super) contested_above: Option<u32>,
}

/// Which way the next trial goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Way {
    fn turned(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// What trials have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trials {
    /// After which the depth was that of the probe.
    pub(super) accepted: u32,
    /// After which it stayed.
    pub(super) rejected: u32,
    /// Ended by a jolt, or by another price.
    pub(super) dropped: u32,
    /// Jolts, with a trial or without.
    pub(super) jolts: u32,
}

/// A change of the depth that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    /// When it changed.
    pub(super) at: Instant,
    /// What it was before.
    pub(super) from: u32,
    /// The trial that was accepted; none where it is kept within bounds.
    pub(super) trial: Option<TrialKind>,
    /// How much more it gave there, in ppm; less than 0 if it gave less.
    pub(super) gain: i64,
}

/// The depth, and how it is learned.
#[derive(Debug)]
pub(super) struct Depth {
    /// The depth that is set; none where it is learned.
    fixed: Option<u32>,
    /// The depth of the current window; the device may have less.
    in_force: u32,
    /// What the device may have; as of the last window.
    device: u32,
    /// The depth that holds where it is learned, in requests.
    settled: u32,
    /// The trial that runs; none between trials, and where the depth is not learned.
    trial: Option<Trial>,
    /// Which way the next trial goes that is not a soft one.
    way: Way,
    /// By how much the next trial goes that way, in ppm.
    factor: u64,
    /// Rejected trials in a row, soft ones apart.
    rejections: u32,
    /// When trials may begin again; past while the depth does not rest.
    resting_until: Instant,
    /// The average speed of valid windows at the depth that holds, in units a second; none before
    /// the first of them, and after the depth or the prices have changed.
    usual_speed: Option<u64>,
    /// Windows in a row whose speed is far from that; 0 where the depth is not learned.
    odd: u32,
    /// How many there were since the start.
    trials: Trials,
    /// The last change; none so far.
    changed: Option<Changed>,
    /// The longest gap of late beside which a window was short: whoever drives the scheduler lost
    /// its core, or the device paused. Zero where there was none.
    gap: Nanos,
    /// For how many windows it is still remembered.
    gap_known_for: u32,
}

impl Depth {
    pub(super) fn starting_at(depth: u32) -> Self {
        Self {
            fixed: None,
            in_force: 1,
            device: 1,
            settled: depth,
            trial: None,
            way: Way::Up,
            factor: LARGEST_FACTOR,
            rejections: 0,
            resting_until: Instant::START,
            usual_speed: None,
            odd: 0,
            trials: Trials::default(),
            changed: None,
            gap: Nanos::ZERO,
            gap_known_for: 0,
        }
    }

    /// Begins to learn anew, at that depth.
    pub(super) fn begin_anew(&mut self, depth: u32) {
        let Self { fixed, in_force, device, .. } = *self;
        *self = Self { fixed, in_force, device, ..Self::starting_at(depth) };
    }

    /// Sets the depth, or has it learned.
    pub(super) fn fix(&mut self, depth: Option<u32>) {
        if self.fixed != depth {
            self.fixed = depth;
            self.restart();
        }
    }

    pub(super) fn trials(&self) -> Trials {
        self.trials
    }

    pub(super) fn changed(&self) -> Option<Changed> {
        self.changed
    }

    /// The depth that holds where it is learned.
    pub(super) fn settled(&self) -> u32 {
        self.settled
    }

    /// The depth that holds outside of trials, as far as the device has it: one at least.
    pub(super) fn at_rest(&self) -> u32 {
        self.fixed.unwrap_or(self.settled).min(self.device)
    }

    /// The depth of the current window; the device may have less.
    #[inline]
    pub(super) fn in_force(&self) -> u32 {
        self.in_force
    }

    /// The depth of the current window, as far as the device has it.
    pub(super) fn reachable(&self) -> u32 {
        self.in_force.min(self.device)
    }

    /// Puts the depth of window `number` in force. One that is learned is a quarter more, up to
    /// that bound, where there is one.
    pub(super) fn put_in_force(&mut self, number: u64, more_up_to: Option<u32>) {
        self.in_force = match (self.fixed, more_up_to) {
            (Some(fixed), _) => fixed,
            (None, None) => self.of_window(number),
            (None, Some(most)) => {
                let settled = self.settled;
                settled.saturating_add(settled.div_ceil(4)).min(most).max(settled)
            }
        };
    }

    /// Notes how many requests the device may have.
    pub(super) fn note_device(&mut self, queue_depth: u32) {
        self.device = queue_depth.max(1);
    }

    /// The learned depth of window `number`.
    fn of_window(&self, number: u64) -> u32 {
        match &self.trial {
            Some(trial) if Arm::of(number) == Arm::Probe => trial.probe,
            _ => self.settled,
        }
    }

    /// The units a second at the depth that holds; none before the first window.
    pub(super) fn usual_speed(&self) -> Option<u64> {
        self.usual_speed
    }

    /// How long a window has to be measured at least, to be long beside the gaps of late.
    #[inline]
    pub(super) fn least_window(&self) -> Nanos {
        self.trial.as_ref().map_or_else(|| long_beside(self.gap), Trial::least_window)
    }

    /// Returns whether there were gaps of late. Clients that share the machine have them, too: that
    /// nothing waits for a while says little of the depth.
    pub(super) fn is_among_gaps(&self) -> bool {
        self.gap > Nanos::ZERO
    }

    /// Remembers a gap beside which the window was short, as long as there are others like it.
    fn note_gap(&mut self, window: &Closed) {
        let is_new = window.is_short_beside(window.longest_gap);
        let is_alike = window.longest_gap.as_nanos() >= self.gap.as_nanos().div_ceil(2);
        if is_new || (self.is_among_gaps() && is_alike) {
            self.gap = self.gap.max(window.longest_gap);
            self.gap_known_for = GAP_IS_KNOWN_FOR;
        } else if self.gap_known_for > 0 {
            self.gap_known_for -= 1;
        } else {
            self.gap = Nanos::ZERO;
        }
    }

    pub(super) fn in_trial(&self) -> Option<TrialKind> {
        self.trial.as_ref().map(|trial| trial.kind)
    }

    fn is_resting(&self, now: Instant) -> bool {
        now < self.resting_until
    }

    /// The unit of speeds has changed: what was measured in the old one says nothing.
    pub(super) fn restart(&mut self) {
        self.usual_speed = None;
        self.odd = 0;
        self.drop_trial();
    }

    /// Keeps the depth within other bounds.
    pub(super) fn clamp(&mut self, now: Instant, least: u32, most: u32) {
        self.keep_within(now, least, most);
        let beyond = |trial: &Trial| !(least..=most).contains(&trial.probe);
        if self.trial.as_ref().is_some_and(beyond) {
            self.drop_trial();
        }
    }

    fn keep_within(&mut self, now: Instant, least: u32, most: u32) {
        let from = self.settled;
        self.settled = from.clamp(least, most);
        if from != self.settled {
            self.changed = Some(Changed { at: now, from, trial: None, gain: 0 });
        }
    }

    /// While some are held to fewer than the depth a trial would measure that.
    pub(super) fn stand_still(&mut self) {
        self.drop_trial();
    }

    fn drop_trial(&mut self) {
        if self.trial.take().is_some() {
            self.trials.dropped += 1;
        }
    }

    /// Takes a window. Returns the number of the next one: after a trial a new block begins.
    pub(super) fn window_closed(
        &mut self,
        now: Instant,
        window: &Closed,
        rules: Rules,
        tell: &mut dyn FnMut(Event),
    ) -> u64 {
        let next = window.number + 1;
        if self.fixed.is_some() {
            self.note_speed(window);
            return next;
        }
        self.note_gap(window);
        let jolted = self.take_speed(window, tell);
        let ended = jolted || self.take_trial(now, window, rules, tell);
        if ended { next.next_multiple_of(BLOCK) } else { next }
    }

    /// Takes a window at a depth that is not learned: there is no jolt then, as there is no trial.
    fn note_speed(&mut self, window: &Closed) {
        if !window.starved && !window.bursty {
            self.average(window.speed);
        }
    }

    /// Averages the speeds at the depth that holds. Returns whether the device has become another.
    fn take_speed(&mut self, window: &Closed, tell: &mut dyn FnMut(Event)) -> bool {
        let disturbed = self.trial.is_some() && Arm::of(window.number) == Arm::Probe;
        let is_short = window.is_short_beside(self.gap);
        if disturbed || is_short || window.starved || window.bursty {
            return false;
        }
        self.odd = if self.is_odd(window.speed) { self.odd + 1 } else { 0 };
        let Some(was) = self.usual_speed.filter(|_| self.odd >= ODD_WINDOWS) else {
            self.average(window.speed);
            return false;
        };
        self.odd = 0;
        self.usual_speed = Some(window.speed);
        self.drop_trial();
        self.trials.jolts += 1;
        self.way = if window.speed > was { Way::Up } else { Way::Down };
        self.factor = JOLT_FACTOR;
        self.rejections = 0;
        self.resting_until = Instant::START;
        tell(Event::Wfq(WfqEvent::DepthJolt { speed: ops(window.speed), was: ops(was) }));
        true
    }

    /// Returns whether a speed is far from the usual one, if that is known.
    fn is_odd(&self, speed: u64) -> bool {
        let Some(usual) = self.usual_speed else { return false };
        let part = |ppm: u64| u128::from(usual) * u128::from(ppm) / 1_000_000;
        !(part(ODD_BELOW)..=part(ODD_ABOVE)).contains(&u128::from(speed))
    }

    fn average(&mut self, speed: u64) {
        self.usual_speed = Some(self.usual_speed.map_or(speed, |was| was - was / 8 + speed / 8));
    }

    /// Returns whether the window ends the trial.
    fn take_trial(
        &mut self,
        now: Instant,
        window: &Closed,
        rules: Rules,
        tell: &mut dyn FnMut(Event),
    ) -> bool {
        let Some(trial) = &mut self.trial else { return false };
        let Some(Answer { accepted, mean }) = trial.take(window, rules.gains) else {
            return false;
        };
        let trial = self.trial.take().expect("it runs");
        let verdict = if accepted { TrialVerdict::Accepted } else { TrialVerdict::Rejected };
        let (from, to, pairs) = (self.settled, trial.probe, trial.pairs());
        tell(Event::Wfq(WfqEvent::DepthVerdict { from, to, mean_ppm: mean, pairs, verdict }));
        if accepted {
            self.accept(now, &trial, mean);
        } else {
            self.reject(now, &trial, rules.rest);
        }
        true
    }

    fn accept(&mut self, now: Instant, trial: &Trial, gain: i64) {
        self.trials.accepted += 1;
        self.rejections = 0;
        let from = std::mem::replace(&mut self.settled, trial.probe);
        self.changed = Some(Changed { at: now, from, trial: Some(trial.kind), gain });
        self.factor = (self.factor * SMALLEST_FACTOR / 1_000_000).min(LARGEST_FACTOR);
        // It was measured at another depth.
        self.usual_speed = None;
        self.odd = 0;
    }

    fn reject(&mut self, now: Instant, trial: &Trial, longest_rest: Nanos) {
        self.trials.rejected += 1;
        let length = now.saturating_since(trial.began).as_nanos();
        if trial.kind == TrialKind::Soft {
            let longest_rest = Nanos::new(longest_rest.as_nanos().saturating_mul(SOFT_RESTS));
            self.resting_until = now + Nanos::new(length.saturating_mul(30)).min(longest_rest);
            return;
        }
        self.turn();
        self.rejections = self.rejections.saturating_add(1);
        if self.rejections >= 2 {
            self.resting_until = now + Nanos::new(length.saturating_mul(6)).min(longest_rest);
        }
    }

    fn turn(&mut self) {
        self.way = self.way.turned();
        self.factor = SMALLEST_FACTOR;
    }

    /// Begins a trial with a block, unless the depth is set, one runs, or it rests.
    pub(super) fn begin_trial(
        &mut self,
        now: Instant,
        window: &Closed,
        bounds: &Bounds,
        tell: &mut dyn FnMut(Event),
    ) {
        if self.fixed.is_some() || self.trial.is_some() || self.is_resting(now) {
            return;
        }
        self.keep_within(now, bounds.least, bounds.most);
        if bounds.least == bounds.most {
            return;
        }
        let found = if window.starved && !window.bursty && !self.is_among_gaps() {
            self.soft_probe(window, bounds)
        } else {
            self.probe(bounds)
        };
        let Some((kind, probe, base)) = found else { return };
        tell(Event::Wfq(WfqEvent::DepthTrial { from: self.settled, to: probe, kind }));
        let contested_above = bounds.contested_above;
        self.trial = Some(Trial::new(kind, probe, base, now, contested_above, self.gap));
    }

    /// Returns what to try that way, or the other way where the depth is at its bound.
    fn probe(&mut self, bounds: &Bounds) -> Option<(TrialKind, u32, u32)> {
        for _ in 0..2 {
            let settled = u64::from(self.settled);
            // What a small step gains is lost in what gaps make of the speed.
            let up = if self.is_among_gaps() { LARGEST_FACTOR } else { self.factor };
            let (kind, probe) = match self.way {
                Way::Up => (TrialKind::Up, (settled * up).div_ceil(1_000_000)),
                Way::Down => (TrialKind::Down, settled * 1_000_000 / self.factor),
            };
            let probe = u32::try_from(probe).unwrap_or(u32::MAX).clamp(bounds.least, bounds.most);
            if probe != self.settled {
                return Some((kind, probe, self.settled));
            }
            self.turn();
        }
        None
    }

    /// Returns what to try where clients do not fill the depth: less than what they have in it.
    fn soft_probe(&self, window: &Closed, bounds: &Bounds) -> Option<(TrialKind, u32, u32)> {
        let filled = u32::try_from(window.in_device_milli / 1000).unwrap_or(u32::MAX);
        let probe = u64::from(filled) * SOFT_PART / 1_000_000;
        let probe = u32::try_from(probe).unwrap_or(u32::MAX).max(bounds.least);
        let goes_down = filled >= 2 && probe < filled.min(self.settled);
        goes_down.then_some((TrialKind::Soft, probe, filled))
    }
}

/// Returns a speed in ops a second.
pub(super) fn ops(units_per_s: u64) -> u64 {
    units_per_s / Units::OP.count()
}
