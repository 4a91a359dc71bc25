//! What [`Auto`](super::PollPolicy::Auto) knows of a class, and how long it sleeps for its I/Os.
//!
//! ```text
//!                 64 samples
//!   learn, poll ─────────────▶ sleep ──4 misses in a row──▶ sleep half, learn again
//!                               │  ▲                              │64 samples
//!      twice what sleeping does │  └──────────────────────────────┘
//!      saves, or q99 at stake   ▼
//!                              poll
//! ```
//!
//! **Times come from probes only**: I/Os for which nobody slept. Of one that was done while its
//! thread slept only a bound is known; taken for its time, that bound makes the next sleep longer,
//! and so on without end (Linux's estimates did so on queues without interrupts). Leaving those out
//! is wrong too: what is left are the slow ones. Where the device's own time of completion is known
//! all I/Os tell their times.
//!
//! **The device changes.** What says so is:
//!
//! - it got faster: 4 misses in a row. The sleep is halved at once, again and again if need be, and
//!   what was known is forgotten;
//! - it got slower: five of eight I/Os slept for took longer than three quarters of those known.
//!   Nothing is late then, so the sleep stays until enough is known;
//! - misses in a window beyond twice what was expected: what may be missed is
//!   halved, and grows again by a tenth with each window that is good. The older half of the
//!   samples is forgotten.

use super::choose::{Choice, Effects, cheap_sleep, longest_sleep};
use super::guard::{Guard, Speed};
use super::overshoot::Overshoot;
use super::policy::{AutoTunables, Ppm};
use super::samples::{Distribution, Samples};
use super::statistics::WhyAwake;
use super::trust::Trust;
use crate::time::{Instant, Nanos};

/// Samples of a class from which a sleep is chosen.
const ENOUGH: usize = 64;
/// Samples of a class after which they are taken more rarely.
const MANY: usize = 256;
/// Misses one after the other that show that the device got faster: so many that they happen once
/// in 160,000 I/Os by chance, which with the default μ of 5 % are four.
const CHANCE: Ppm = Ppm(6);
/// With fewer I/Os slept for a window goes on being judged with the next.
const JUDGED: u32 = 64;
/// The least of what is allowed, after many bad windows.
const LEAST_SCALE: Ppm = Ppm(50_000);

/// What is done about the I/Os of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Poll from the start.
    Poll(WhyAwake),
    /// Sleep that long from their submission, then poll.
    Sleep(Nanos),
    /// Wait for an interrupt.
    Block,
}

/// How an I/O of the class was waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    /// From its submission to its completion, as far as that is known.
    pub(super) time: Nanos,
    pub(super) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Nobody slept, and that was meant so.
    Probe,
    /// Nobody slept.
    Awake,
    /// The thread slept, and found it not done.
    Slept,
    /// The thread slept, and it was done by then.
    Missed,
}

#[derive(Debug)]
pub(super) struct Learner {
    times: Samples<512>,
    known: Distribution,
    rule: Rule,
    /// Too few samples are there, at first or since the device changed.
    is_learning: bool,
    /// What the rule's sleep leads to, by what is known.
    outlook: Effects,
    /// How much of the allowance is used.
    scale: Ppm,
    trust: Trust,
    guard: Guard,
    /// Misses one after the other.
    streak: u32,
    window: Window,
    /// I/Os of the class until the next one that is looked at for its time.
    until_sample: u32,
    trial: Option<Trial>,
    /// One in a hundred sleeps ended very late, as of the last choice.
    is_crowded: bool,
    /// Over all.
    pub(super) totals: Totals,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) slept: u64,
    pub(super) misses: u64,
    pub(super) probes: u64,
    pub(super) fallbacks: u64,
}

/// A short sleep, for one of so many I/Os of a class that is polled for. Only sleeps tell whether
/// sleeps still end late.
#[derive(Clone, Copy, Debug)]
struct Trial {
    sleep: Nanos,
    every: u32,
    /// I/Os until the next one.
    left: u32,
}

/// What was in the device since the last choice.
#[derive(Debug, Default)]
struct Window {
    end: Option<Instant>,
    ios: u32,
    slept: u32,
    misses: u32,
    /// I/Os slept for that took longer than three quarters of those known.
    slow: u32,
}

/// What all classes know together.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) tunables: &'a AutoTunables,
    pub(super) overshoot: &'a Overshoot,
}

impl Default for Learner {
    fn default() -> Self {
        Self {
            times: Samples::default(),
            known: Distribution::default(),
            rule: Rule::Poll(WhyAwake::Learning),
            is_learning: true,
            outlook: Effects::default(),
            scale: Ppm::ONE,
            trust: Trust::default(),
            guard: Guard::default(),
            streak: 0,
            window: Window::default(),
            until_sample: 0,
            trial: None,
            is_crowded: false,
            totals: Totals::default(),
        }
    }
}

impl Learner {
    pub(super) fn rule(&self) -> Rule {
        self.rule
    }

    pub(super) fn scale(&self) -> Ppm {
        self.scale
    }

    pub(super) fn guard_level(&self) -> u8 {
        self.guard.level()
    }

    /// Times of the class, as of the last choice.
    pub(super) fn known(&self) -> &Distribution {
        &self.known
    }

    /// Whether the next I/O has to be waited for without sleep.
    pub(super) fn is_probe_due(&self) -> bool {
        matches!(self.rule, Rule::Sleep(_)) && self.until_sample == 0
    }

    /// How long to sleep for the next I/O, to see how late that ends, where its rule is to poll.
    pub(super) fn take_trial(&mut self) -> Option<Nanos> {
        let trial = self.trial.as_mut()?;
        trial.left = trial.left.checked_sub(1).unwrap_or(trial.every - 1);
        (trial.left == 0).then_some(trial.sleep)
    }

    /// Notes an I/O that is done. `beside` is how many were, of any class, while a probe was waited
    /// for: none of them was slept for, so that the next probe is so much later.
    pub(super) fn completed(
        &mut self,
        waited: Waited,
        beside: u32,
        is_stamped: bool,
        tunables: &AutoTunables,
    ) {
        let Waited { time, how } = waited;
        self.window.ios += 1;
        self.until_sample = self.until_sample.saturating_sub(1);
        match how {
            How::Probe => {
                self.totals.probes += 1;
                self.until_sample = self.sample_every(tunables).saturating_mul(beside.max(1)) - 1;
                self.times.push(time);
            }
            How::Awake => self.guard.awake(),
            How::Slept => self.slept(time, false, tunables),
            How::Missed => self.slept(time, true, tunables),
        }
        let tells = match self.rule {
            Rule::Poll(_) => matches!(how, How::Awake) || is_stamped,
            Rule::Block => true,
            Rule::Sleep(_) => is_stamped && how != How::Probe,
        };
        if tells && self.is_sampled() {
            self.times.push(time);
        }
    }

    fn slept(&mut self, time: Nanos, is_missed: bool, tunables: &AutoTunables) {
        self.totals.slept += 1;
        self.totals.misses += u64::from(is_missed);
        self.window.slept += 1;
        self.window.misses += u32::from(is_missed);
        self.window.slow += u32::from(time > self.known.quantile(750));
        let slowest = self.known.quantile(990);
        let beyond = slowest + Nanos::new(slowest.as_nanos() / 50 + 200);
        if time <= beyond {
            self.guard.slept(Speed::Usual);
        } else {
            self.guard.slept(if is_missed { Speed::Late } else { Speed::Slow });
        }
        self.streak = if is_missed { self.streak + 1 } else { 0 };
        if self.streak >= unlikely_streak(self.outlook.misses.max(self.trust.misses())) {
            self.fall_back(tunables);
        }
    }

    /// Every I/O while little is known, one of eight afterwards, so that the samples reach back.
    fn is_sampled(&mut self) -> bool {
        if !self.times.is_full() {
            return true;
        }
        let is_due = self.until_sample == 0;
        if is_due {
            self.until_sample = 8;
        }
        is_due
    }

    fn sample_every(&self, tunables: &AutoTunables) -> u32 {
        if self.times.len() < ENOUGH {
            tunables.probe_every.clamp(1, 4)
        } else if self.times.len() >= MANY {
            tunables.probe_every.max(1)
        } else {
            tunables.probe_every.clamp(1, 32)
        }
    }

    /// The device got faster.
    fn fall_back(&mut self, tunables: &AutoTunables) {
        self.totals.fallbacks += 1;
        self.streak = 0;
        self.forget(0);
        self.outlook = allowed(tunables);
        if let Rule::Sleep(sleep) = self.rule {
            self.rule = Rule::Sleep(Nanos::new(sleep.as_nanos() / 2));
        }
    }

    fn forget(&mut self, kept: usize) {
        self.times.keep_last(kept);
        self.is_learning = self.times.len() < ENOUGH;
        self.until_sample = 0;
        let Window { end, ios, .. } = self.window;
        self.window = Window { end, ios, ..Window::default() };
        self.trust = Trust::default();
    }

    /// Whether a sleep is to be chosen now.
    pub(super) fn is_choice_due(&mut self, now: Instant, tunables: &AutoTunables) -> bool {
        let end = *self.window.end.get_or_insert(now + tunables.window);
        let learned = self.is_learning && self.times.len() >= ENOUGH;
        learned || self.window.ios >= tunables.window_ios || now >= end
    }

    /// Judges the window that ends, and chooses what is done from now on.
    pub(super) fn choose(&mut self, now: Instant, around: Surroundings<'_>) {
        if self.window.slept >= JUDGED {
            self.judge_window(around.tunables);
            self.window = Window::default();
        }
        self.window.ios = 0;
        self.window.end = Some(now + around.tunables.window);
        let has_enough = self.times.len() >= ENOUGH;
        self.is_learning = !has_enough;
        // While it learns again, what was known serves to tell a late I/O.
        if has_enough || self.known.is_empty() {
            self.known.refresh(&self.times);
        }
        let (rule, outlook) = self.choice(has_enough, around);
        self.trial = self.trial_beside(rule, around.overshoot);
        self.rule = rule;
        self.outlook = outlook;
    }

    fn judge_window(&mut self, tunables: &AutoTunables) {
        let Window { slept, misses, slow, .. } = self.window;
        // While it learns the sleep is a guess, and four misses halve it.
        if self.is_learning {
            return;
        }
        let outlook = self.outlook;
        self.trust.note(slept, misses, outlook, allowed(tunables));
        // misses > 2 × expected + 4
        let expected = u64::from(slept) * u64::from(outlook.misses.0);
        if u64::from(misses) * 1_000_000 > 2 * expected + 4_000_000 {
            self.scale = Ppm((self.scale.0 / 2).max(LEAST_SCALE.0));
            self.forget((self.times.len() / 2).max(ENOUGH));
        } else {
            self.scale = Ppm((self.scale.0 + self.scale.0 / 10).min(Ppm::ONE.0));
        }
        if slow * 8 > slept * 5 {
            self.forget(0);
        }
    }

    fn choice(&mut self, has_enough: bool, around: Surroundings<'_>) -> (Rule, Effects) {
        let awake = |why| (Rule::Poll(why), Effects::default());
        let Surroundings { tunables, overshoot } = around;
        if self.guard.is_stopped() {
            return awake(WhyAwake::Guard);
        }
        if !has_enough {
            return match self.rule {
                Rule::Sleep(_) => (self.rule, allowed(tunables)),
                _ => awake(WhyAwake::Learning),
            };
        }
        let mean = self.known.mean();
        let (Some(cost), Some(overshoots)) = (overshoot.cost(), overshoot.of(mean)) else {
            return awake(WhyAwake::Uncalibrated);
        };
        if tunables.cpu_cap < Ppm::ONE {
            return self.capped_choice(overshoots, cost, around);
        }
        if self.may_block(overshoots, around) {
            return (Rule::Block, Effects::default());
        }
        if !is_worth(mean, cost) {
            return awake(WhyAwake::NotWorth);
        }
        let Some(overshoots) = overshoot.of(self.likely_sleep()) else {
            return awake(WhyAwake::Uncalibrated);
        };
        // A window of sleeps fills the samples anew: by chance alone it does not happen twice.
        let spread = overshoots.quantile(990).saturating_sub(overshoots.quantile(500));
        let is_crowded = spread.as_nanos() > mean.as_nanos() / 3;
        let was_crowded = std::mem::replace(&mut self.is_crowded, is_crowded);
        if is_crowded && (was_crowded || !matches!(self.rule, Rule::Sleep(_))) {
            return awake(WhyAwake::Crowded);
        }
        let Some(allowance) = self.allowance(around) else { return awake(WhyAwake::Crowded) };
        match longest_sleep(&self.known, overshoot, allowance) {
            None => awake(WhyAwake::NoRoom),
            Some(Choice { sleep, outlook }) => {
                let late = overshoot.of(sleep).map_or(Nanos::ZERO, Distribution::mean);
                if is_worth(sleep + late, cost) {
                    (Rule::Sleep(sleep), outlook)
                } else {
                    awake(WhyAwake::NotWorth)
                }
            }
        }
    }

    /// About how long a sleep may be. It is by how late such sleeps end that the rule is chosen.
    fn likely_sleep(&self) -> Nanos {
        Nanos::new(self.known.quantile(10).as_nanos() / 2)
    }

    /// Where late wake-ups keep the thread awake, or have it sleep for a much shorter time, one of
    /// 16 I/Os is slept for all the same, and if that would add latency, one of 4096.
    fn trial_beside(&self, rule: Rule, overshoot: &Overshoot) -> Option<Trial> {
        use WhyAwake::{Crowded, NoRoom, NotWorth};
        let sleep = self.likely_sleep();
        let is_wanted = match rule {
            Rule::Poll(Crowded | NoRoom | NotWorth) => {
                overshoot.cost().is_some_and(|cost| is_worth(self.known.mean(), cost))
            }
            Rule::Sleep(chosen) => chosen < sleep && !overshoot.are_alike(chosen, sleep),
            Rule::Poll(_) | Rule::Block => false,
        };
        let late = overshoot.of(sleep).filter(|_| is_wanted)?.mean();
        let is_harmless =
            overshoot.excess() == Nanos::ZERO && sleep + late <= self.known.quantile(10);
        let every = if is_harmless { 16 } else { 4096 };
        let left = self.trial.map_or(every, |trial| trial.left.min(every));
        Some(Trial { sleep, every, left })
    }

    /// Where the thread may use but a part of the CPU: the longest sleep as ever, if that is long
    /// enough, else the shortest that is; an interrupt where none is.
    fn capped_choice(
        &self,
        overshoots: &Distribution,
        cost: Nanos,
        around: Surroundings<'_>,
    ) -> (Rule, Effects) {
        let Surroundings { tunables, overshoot } = around;
        let Some(cheap) = cheap_sleep(&self.known, overshoots, cost, tunables.cpu_cap) else {
            return (Rule::Block, Effects::default());
        };
        let allowance = self.allowance(around);
        let longest = allowance.and_then(|it| longest_sleep(&self.known, overshoot, it));
        let longest = longest.filter(|longest| longest.sleep >= cheap.sleep);
        let Choice { sleep, outlook } = longest.unwrap_or(cheap);
        (Rule::Sleep(sleep), outlook)
    }

    /// What a sleep may do, less what stalls do to it; none where they do all that is allowed.
    fn allowance(&self, around: Surroundings<'_>) -> Option<Effects> {
        let Surroundings { tunables, overshoot } = around;
        let scaled = |part: Ppm| {
            let part = u64::from(part.0) * u64::from(self.scale.0) / 1_000_000;
            let part = part * u64::from(self.trust.part().0) / 1_000_000;
            Ppm(u32::try_from(part).unwrap_or(u32::MAX))
        };
        let excess = u128::from(overshoot.excess().as_nanos()) * 1_000_000;
        let by_stalls = excess.div_ceil(u128::from(self.known.mean().as_nanos()).max(1));
        let added = u128::from(scaled(tunables.delta).0).checked_sub(by_stalls)?;
        let added = Ppm(u32::try_from(added).expect("less than it was"));
        Some(Effects { added, misses: scaled(tunables.mu) })
    }

    /// Whether all I/Os may be as late as a wake-up is: then an interrupt does, and nothing is
    /// polled at all.
    fn may_block(&self, overshoots: &Distribution, around: Surroundings<'_>) -> bool {
        let Surroundings { tunables, overshoot } = around;
        let late = overshoots.quantile(995).as_nanos();
        overshoots.mean() + overshoot.excess() <= tunables.delta.of(self.known.mean())
            && late <= self.known.quantile(990).as_nanos() / 100
    }
}

/// What sleeping may do.
fn allowed(tunables: &AutoTunables) -> Effects {
    Effects { added: tunables.delta, misses: tunables.mu }
}

/// How many misses one after the other hardly happen where so many are expected: four or more.
fn unlikely_streak(expected: Ppm) -> u32 {
    let mut streak = 3;
    let times = |chance: u64| chance * u64::from(expected.0) / 1_000_000;
    let mut chance = times(times(times(1_000_000)));
    loop {
        streak += 1;
        chance = times(chance);
        if chance <= CHANCE.0.into() || streak == 64 {
            return streak;
        }
    }
}

/// Whether being asleep that long saves a quarter more than what it costs.
pub(super) fn is_worth(asleep: Nanos, cost: Nanos) -> bool {
    asleep.as_nanos() > cost.as_nanos() + cost.as_nanos() / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_misses_are_needed_where_more_are_expected() {
        let streak = |percent: u32| unlikely_streak(Ppm(percent * 10_000));
        assert_eq!([0, 1, 5, 10, 50, 100].map(streak), [4, 4, 4, 6, 18, 64]);
    }
}
