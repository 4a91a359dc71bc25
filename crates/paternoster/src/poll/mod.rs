//! How to wait for a device: by interrupt, by polling, or by sleeping just long enough first.
//!
//! An interrupt costs latency, polling costs a CPU. Between them is a timed sleep that ends just
//! before the I/O does, and a short polling after it. How long to sleep nobody can set by hand: it
//! depends on the device, the size of the I/O, and what sleeping costs on this machine. An
//! [`Estimator`] learns that. Like all here it does no I/O and reads no clock:
//!
//! ```text
//!   submitted(class, now) ─▶ ┌───────────┐
//!   completed(ticket, at) ─▶ │ Estimator │ ─▶ wait(now): Block, Poll, or SleepUntil(then)
//!   woke(asked, at, found)─▶ └───────────┘
//! ```
//!
//! ```
//! use paternoster::poll::{Completions, Estimator, PollClass, PollPolicy, Wait};
//! use paternoster::{Direction, Instant, Nanos, SectorCount};
//!
//! let policy = PollPolicy::hybrid(-1, false, Nanos::ZERO)?; // io_poll_delay: never sleep
//! let mut estimator = Estimator::new(policy, Completions::Noticed);
//! let class = PollClass::of(Direction::Read, SectorCount(8)).expect("it has sectors");
//!
//! let now = Instant::START; // a server takes what its clock shows
//! let ticket = estimator.submitted(class, now);
//! assert_eq!(estimator.wait(now), Wait::Poll);
//! estimator.completed(ticket, now + Nanos::from_micros(8));
//! assert_eq!(estimator.wait(now), Wait::Block, "nothing is in the device");
//! # Ok::<(), paternoster::poll::PollDelayError>(())
//! ```
//!
//! # The policies
//!
//! [`Interrupt`](PollPolicy::Interrupt) and [`Classic`](PollPolicy::Classic) need no estimate. The
//! others sleep until a moment, which is the submission and so long; where several I/Os are in the
//! device, until the earliest of these moments. For an I/O nobody sleeps beyond its moment, so
//! nobody sleeps twice for the same one unless something else ended the sleep early.
//!
//! - [`Fixed`](PollPolicy::Fixed) sleeps as long as it is told: Linux 4.10, `io_poll_delay` above
//!   0.
//! - [`OfMean`](PollPolicy::OfMean) sleeps a part of the mean of its class's last window. Half of
//!   it is Linux 4.10 to 6.3, `io_poll_delay` 0; 60 % was proposed in answer to the post of 2017, ¾
//!   in 2020; the minimum and the adjustment are the post's.
//! - [`IoUring`](PollPolicy::IoUring) sleeps half of the least of all times less their sleeps:
//!   Linux 6.13 by its description. It is taken at completions; Linux looks at a poll that found
//!   nothing, too.
//! - [`Auto`](PollPolicy::Auto) sleeps as long as the latency that it adds allows, where that saves
//!   CPU time.
//!
//! In Linux the moment counts from the first poll, which at one outstanding is the submission.
//!
//! # `auto`
//!
//! It measures what sleeping costs (`overshoot.rs`) and how long I/Os take without it, in each
//! class (`learner.rs`), and chooses the longest sleep that adds at most δ to the mean latency
//! (`choose.rs`). It watches what comes of it: misses against those expected, changes of the
//! device's speed (`learner.rs`), the slowest hundredth (`guard.rs`), and whether a thread that
//! sleeps loses the CPU for long more often than one that polls (`stalls.rs`). For I/Os that take
//! so long that a late wake-up is within δ it waits for interrupts.

mod choose;
mod class;
mod guard;
mod learner;
mod outstanding;
mod overshoot;
mod policy;
mod samples;
mod stalls;
mod statistics;
mod trust;
mod window;

use crate::time::{Instant, Nanos};

pub use class::PollClass;
pub use outstanding::Ticket;
pub use policy::{AutoTunables, OfMean, PollDelayError, PollPolicy, Ppm};
pub use statistics::{
    Choice, ClassStatistics, OvershootStatistics, PollStatistics, StallStatistics, WhyAwake,
};
pub use window::WindowTimes;

use learner::{How, Learner, Rule, Surroundings, Waited, is_worth};
use outstanding::Outstanding;
use overshoot::Overshoot;
use window::Windows;

/// What to do until the next completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Give up the CPU until something happens. A caller that nothing would wake, as over a ring
    /// that polls, looks again and again.
    Block,
    /// Look again at once.
    Poll,
    /// Sleep until then, or until something else happens; then [`Estimator::woke`].
    SleepUntil(Instant),
}

/// What the moments of completions are that the caller passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completions {
    /// When the device was done, whether anybody looked or not.
    Stamped,
    /// When the caller noticed, which is after its sleep.
    Noticed,
}

/// An I/O takes that long at least before waiting for it changes to an interrupt.
const PATIENCE: Nanos = Nanos::from_millis(1);

/// Learns how long I/Os take and what sleeping costs, and says how to wait. One is for the device
/// of one thread.
#[derive(Debug)]
pub struct Estimator {
    policy: PollPolicy,
    completions: Completions,
    outstanding: Outstanding,
    /// Classes that have been in use, a bit each.
    used: u16,
    windows: Windows,
    overshoot: Overshoot,
    learners: [Learner; PollClass::COUNT],
    /// What the rule of `io_uring` goes by; none before the first completion.
    least_run_time: Option<Nanos>,
    probe: Option<Probe>,
    /// The number of the last I/O that is slept for to learn how late that ends, and how long.
    trial: Option<(u64, Nanos)>,
    sleeping: Option<Sleeping>,
    last_sleep: LastSleep,
    /// When it last said to look again.
    last_look: Option<Instant>,
    ios: [u64; PollClass::COUNT],
    totals: Totals,
}

/// The I/O that is being waited for without sleep.
#[derive(Clone, Copy, Debug)]
struct Probe {
    ticket: Ticket,
    /// I/Os that were done since, with it.
    beside: u32,
    /// It takes so long that nobody polls for it any more.
    is_given_up: bool,
}

/// A sleep that was asked for.
#[derive(Clone, Copy, Debug)]
struct Sleeping {
    since: Instant,
    /// The I/O for which it ends.
    class: PollClass,
    number: u64,
}

/// The sleep before.
#[derive(Clone, Copy, Debug, Default)]
struct LastSleep {
    /// It was for no I/O submitted after this one.
    submissions: u64,
    /// How long it was asked to be.
    asked: Nanos,
    /// Nobody has looked again since, but for what was done at its end.
    is_first_look: bool,
    /// Of each class, the last I/O whose moment has come.
    slept_for: [u64; PollClass::COUNT],
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sleeps: u64,
    woken_early: u64,
    found: u64,
    slept: Nanos,
    awake_for: u64,
}

impl Estimator {
    /// Makes one that knows nothing.
    pub fn new(policy: PollPolicy, completions: Completions) -> Self {
        Self {
            policy,
            completions,
            outstanding: Outstanding::default(),
            used: 0,
            windows: Windows::default(),
            overshoot: Overshoot::default(),
            learners: Default::default(),
            least_run_time: None,
            probe: None,
            trial: None,
            sleeping: None,
            last_sleep: LastSleep::default(),
            last_look: None,
            ios: [0; PollClass::COUNT],
            totals: Totals::default(),
        }
    }

    /// The policy.
    pub fn policy(&self) -> PollPolicy {
        self.policy
    }

    /// Changes the policy. What sleeping costs and Linux's windows stay known; what `auto` knew of
    /// completion times is forgotten, as it is with changed tunables.
    pub fn set_policy(&mut self, policy: PollPolicy) {
        if policy == self.policy {
            return;
        }
        self.policy = policy;
        self.learners = Default::default();
        self.least_run_time = None;
        self.probe = None;
        self.trial = None;
    }

    /// Says how long to sleep, for nothing, so that it becomes known what sleeping costs; none when
    /// it is. Then call [`calibrated`](Self::calibrated). 192 sleeps are wanted, of 10 to 200 µs
    /// and 17 ms together.
    pub fn calibration_wanted(&self) -> Option<Nanos> {
        self.overshoot.wanted()
    }

    /// Notes a sleep for nothing: how long it was asked to be, how much later it ended, and the
    /// CPU time of the thread from before to after it.
    pub fn calibrated(&mut self, asked: Nanos, overshoot: Nanos, cpu: Nanos) {
        self.overshoot.add(asked, overshoot);
        self.overshoot.add_cost(cpu);
    }

    /// Notes that an I/O was given to the device. The ticket is for its completion.
    pub fn submitted(&mut self, class: PollClass, now: Instant) -> Ticket {
        self.last_look = None;
        self.used |= 1 << class.index();
        let ticket = self.outstanding.add(class, now);
        let is_auto = matches!(self.policy, PollPolicy::Auto(_));
        let needs_probes = is_auto && self.completions == Completions::Noticed;
        if needs_probes && self.probe.is_none() && self.learner(class).is_probe_due() {
            self.probe = Some(Probe { ticket, beside: 0, is_given_up: false });
        }
        if let Some(sleep) = self.learners[class.index()].take_trial() {
            self.trial = Some((self.outstanding.submissions(), sleep));
        }
        ticket
    }

    /// Notes that an I/O is done.
    ///
    /// # Panics
    ///
    /// If it was said to be done before.
    pub fn completed(&mut self, ticket: Ticket, at: Instant) {
        self.looked_until(at);
        let io = self.outstanding.remove(ticket);
        let time = at.saturating_since(io.submitted);
        self.ios[io.class.index()] += 1;
        self.windows.add(io.class, time, at);
        let was_slept_for = io.number <= self.last_sleep.submissions;
        self.totals.awake_for += u64::from(!was_slept_for);
        let beside = self.end_probe(ticket);
        let how = match beside {
            Some(_) => How::Probe,
            _ if !was_slept_for => How::Awake,
            _ if self.last_sleep.is_first_look => How::Missed,
            _ => How::Slept,
        };
        match self.policy {
            PollPolicy::IoUring => {
                let asked = if was_slept_for { self.last_sleep.asked } else { Nanos::ZERO };
                let run_time = time.saturating_sub(asked);
                let least = self.least_run_time.map_or(run_time, |least| least.min(run_time));
                self.least_run_time = Some(least);
            }
            PollPolicy::Auto(tunables) => {
                let is_stamped = self.completions == Completions::Stamped;
                let learner = &mut self.learners[io.class.index()];
                learner.completed(Waited { time, how }, beside.unwrap_or(0), is_stamped, &tunables);
                if learner.is_choice_due(at, &tunables) {
                    self.overshoot.refresh();
                    let around = Surroundings { tunables: &tunables, overshoot: &self.overshoot };
                    learner.choose(at, around);
                }
            }
            _ => {}
        }
    }

    /// How to wait for what is in the device, as of now. A caller that polls asks again whenever it
    /// found nothing, as time alone may change the answer: what is 200 µs or more between two
    /// looks is taken for time in which something else had the CPU.
    pub fn wait(&mut self, now: Instant) -> Wait {
        self.looked_until(now);
        let how = self.how(now);
        self.last_look = (how == Wait::Poll).then_some(now);
        how
    }

    /// Notes that a caller that was told to poll has done so until now, and does something else
    /// before it asks again. Without it, that would count as time in which something else had the
    /// CPU. A completion says as much.
    pub fn looked_until(&mut self, now: Instant) {
        if let Some(last) = self.last_look.take() {
            self.overshoot.polled(now.saturating_since(last));
        }
    }

    fn how(&mut self, now: Instant) -> Wait {
        self.last_sleep.is_first_look = false;
        self.windows.publish(now);
        if self.outstanding.len() == 0 || self.policy == PollPolicy::Interrupt {
            return Wait::Block;
        }
        if self.polls_for_probe(now) {
            return Wait::Poll;
        }
        let mut earliest: Option<(Instant, Sleeping)> = None;
        let used = self.used;
        for class in PollClass::all().filter(|class| used & 1 << class.index() != 0) {
            self.give_up(class, now);
            let Some((_, io)) = self.outstanding.first(class) else { continue };
            let trial = self.trial.filter(|(number, _)| *number == io.number);
            let moment = match (self.rule(class), trial) {
                (_, Some((_, sleep))) | (Rule::Sleep(sleep), None) => io.submitted + sleep,
                (Rule::Poll(_), None) => return Wait::Poll,
                (Rule::Block, None) => continue,
            };
            if moment <= now || io.number <= self.last_sleep.slept_for[class.index()] {
                return Wait::Poll;
            }
            if earliest.is_none_or(|(earliest, _)| moment < earliest) {
                earliest = Some((moment, Sleeping { since: now, class, number: io.number }));
            }
        }
        match earliest {
            None => Wait::Block,
            Some((moment, sleeping)) if !self.pays(sleeping, moment) => Wait::Poll,
            Some((moment, sleeping)) => {
                self.sleeping = Some(sleeping);
                Wait::SleepUntil(moment)
            }
        }
    }

    /// Notes the end of a sleep that [`wait`](Self::wait) asked for: until when, when the thread
    /// ran again, and whether something was done by then. Then say what is done, and only then
    /// [`wait`](Self::wait) again: what is done at the first look was done before the sleep ended.
    ///
    /// A caller that finds something done just before it would sleep does not sleep, and says
    /// nothing.
    pub fn woke(&mut self, asked: Instant, at: Instant, found: bool) {
        let Some(Sleeping { since, class, number }) = self.sleeping.take() else { return };
        let asked_for = asked.saturating_since(since);
        self.totals.sleeps += 1;
        self.totals.found += u64::from(found);
        self.totals.slept += at.saturating_since(since);
        self.last_sleep.submissions = self.outstanding.submissions();
        self.last_sleep.asked = asked_for;
        self.last_sleep.is_first_look = found;
        if at < asked {
            self.totals.woken_early += 1;
            return;
        }
        self.last_sleep.slept_for[class.index()] = number;
        self.overshoot.add(asked_for, at.saturating_since(asked));
    }

    /// What it has learned and done.
    pub fn statistics(&self) -> PollStatistics {
        let used = PollClass::all().filter(|class| self.ios[class.index()] > 0);
        let overshoots = self.overshoot.known().map(|(from, _, late)| OvershootStatistics {
            from,
            p50: late.quantile(500),
            p99: late.quantile(990),
        });
        let mut overshoots: Vec<_> = overshoots.collect();
        overshoots.reverse();
        let stalls = self.overshoot.stalls();
        let Totals { sleeps, woken_early, found, slept, awake_for } = self.totals;
        PollStatistics {
            policy: self.policy,
            classes: used.map(|class| self.class_statistics(class)).collect(),
            overshoots,
            stalls_asleep: stalls.asleep,
            stalls_polling: stalls.polling,
            sleep_cost: self.overshoot.cost(),
            sleeps,
            woken_early,
            found,
            slept,
            awake_for,
        }
    }

    fn class_statistics(&self, class: PollClass) -> ClassStatistics {
        let learner = self.learner(class);
        let known = learner.known();
        let totals = learner.totals;
        ClassStatistics {
            class,
            window: *self.windows.published(class),
            choice: match self.rule(class) {
                Rule::Poll(why) => Choice::Poll(why),
                Rule::Sleep(sleep) => Choice::Sleep(sleep),
                Rule::Block => Choice::Block,
            },
            q01: known.quantile(10),
            q50: known.quantile(500),
            q99: known.quantile(990),
            ios: self.ios[class.index()],
            slept_for: totals.slept,
            misses: totals.misses,
            probes: totals.probes,
            fallbacks: totals.fallbacks,
            scale: learner.scale(),
            guard_level: learner.guard_level(),
        }
    }

    fn learner(&self, class: PollClass) -> &Learner {
        &self.learners[class.index()]
    }

    fn rule(&self, class: PollClass) -> Rule {
        let sleep = match self.policy {
            PollPolicy::Interrupt => return Rule::Block,
            PollPolicy::Auto(_) => return self.learner(class).rule(),
            PollPolicy::Classic => Nanos::ZERO,
            PollPolicy::Fixed(sleep) => sleep,
            PollPolicy::OfMean(of_mean) => {
                let window = self.windows.published(class);
                of_mean.sleep(window.mean(), window.min)
            }
            PollPolicy::IoUring => {
                Nanos::new(self.least_run_time.unwrap_or(Nanos::ZERO).as_nanos() / 2)
            }
        };
        if sleep == Nanos::ZERO { Rule::Poll(WhyAwake::Policy) } else { Rule::Sleep(sleep) }
    }

    /// Whether that sleep saves CPU time. Only `auto` asks, and not where it is to learn.
    fn pays(&self, sleeping: Sleeping, until: Instant) -> bool {
        let PollPolicy::Auto(tunables) = self.policy else { return true };
        if self.trial.is_some_and(|(number, _)| number == sleeping.number) {
            return true;
        }
        let sleep = until.saturating_since(sleeping.since);
        let Some(cost) = self.overshoot.cost() else { return false };
        let late = self.overshoot.of(sleep).map_or(Nanos::ZERO, samples::Distribution::mean);
        tunables.cpu_cap < Ppm::ONE || is_worth(sleep + late, cost)
    }

    /// Ends the probe if it is this I/O; how many I/Os were done while it was waited for.
    fn end_probe(&mut self, ticket: Ticket) -> Option<u32> {
        let probe = self.probe.as_mut()?;
        probe.beside += 1;
        if probe.ticket != ticket {
            return None;
        }
        self.probe.take().map(|probe| probe.beside)
    }

    /// Whether there is a probe that is worth polling for.
    fn polls_for_probe(&mut self, now: Instant) -> bool {
        let Some(probe) = self.probe.filter(|probe| !probe.is_given_up) else { return false };
        let io = self.outstanding.get(probe.ticket);
        let is_given_up = now.saturating_since(io.submitted) > self.patience(io.class);
        self.probe = Some(Probe { is_given_up, ..probe });
        !is_given_up
    }

    /// Expects those I/Os of a class no longer that take much longer than others do.
    fn give_up(&mut self, class: PollClass, now: Instant) {
        if !matches!(self.policy, PollPolicy::Auto(_)) {
            return;
        }
        let patience = self.patience(class);
        while let Some((ticket, io)) = self.outstanding.first(class) {
            if now.saturating_since(io.submitted) <= patience {
                return;
            }
            self.outstanding.stop_expecting(ticket);
        }
    }

    /// How long an I/O of the class is polled for.
    fn patience(&self, class: PollClass) -> Nanos {
        let slowest = self.learner(class).known().quantile(990);
        PATIENCE.max(Nanos::new(slowest.as_nanos().saturating_mul(4)))
    }
}
