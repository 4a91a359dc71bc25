//! One I/O after the other, in virtual time: the device takes so long, sleeps end so late.

use paternoster::poll::{
    AutoTunables, Completions, Estimator, PollClass, PollPolicy, PollStatistics, Wait,
};
use paternoster::{Direction, Instant, Nanos, SectorCount};

/// What came of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// How long somebody slept for it, if somebody did.
    pub(crate) asked: Option<u64>,
    /// It was done by then.
    pub(crate) is_missed: bool,
    /// From submission until it was noticed, in ns.
    pub(crate) latency: u64,
}

pub(crate) struct Rig {
    pub(crate) estimator: Estimator,
    pub(crate) now: Instant,
    is_stamped: bool,
    /// CPU time of a sleep, in ns.
    cost: u64,
    /// CPU time of waiting, in ns.
    pub(crate) cpu: u64,
    random: u64,
    /// Something else takes the CPU, whatever the thread does then.
    stalls: Option<Stalls>,
}

/// The next span in which something else has the CPU, and how long it is until the one after.
struct Stalls {
    next: Instant,
    every: Nanos,
    length: Nanos,
}

/// How long who polls goes on without asking again.
const LOOK: Nanos = Nanos::from_micros(100);

pub(crate) fn reads(sectors: u32) -> PollClass {
    PollClass::of(Direction::Read, SectorCount(sectors)).expect("it has sectors")
}

pub(crate) fn auto() -> PollPolicy {
    PollPolicy::Auto(AutoTunables::DEFAULT)
}

impl Rig {
    pub(crate) fn new(policy: PollPolicy, completions: Completions) -> Self {
        Self {
            estimator: Estimator::new(policy, completions),
            now: Instant::START,
            is_stamped: completions == Completions::Stamped,
            cost: 2_900,
            cpu: 0,
            random: 0x9E37_79B9_7F4A_7C15,
            stalls: None,
        }
    }

    /// Something else has the CPU for so long, so often.
    pub(crate) fn stall(mut self, every: Nanos, length: Nanos) -> Self {
        self.stalls = Some(Stalls { next: self.now + every, every, length });
        self
    }

    /// When the thread runs that wants to run then.
    fn runs_at(&mut self, moment: Instant) -> Instant {
        let Some(stalls) = &mut self.stalls else { return moment };
        let mut runs = moment;
        while stalls.next <= runs {
            runs = runs.max(stalls.next + stalls.length);
            stalls.next = stalls.next + stalls.every;
        }
        runs
    }

    /// Sleeps that are for nothing: each costs so much, and ends late by one of these spans in
    /// turn.
    pub(crate) fn calibrate(mut self, cost: u64, late: &[u64]) -> Self {
        self.cost = cost;
        let mut late = late.iter().cycle();
        while let Some(asked) = self.estimator.calibration_wanted() {
            let late = *late.next().expect("it goes on for ever");
            self.estimator.calibrated(asked, Nanos::new(late), Nanos::new(cost));
        }
        self
    }

    /// A number below `end`, of a sequence that is always the same.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % end
    }

    /// An I/O that takes so long, with a sleep that would end so late.
    pub(crate) fn io(&mut self, class: PollClass, time: u64, late: u64) -> Outcome {
        let submitted = self.now;
        let ticket = self.estimator.submitted(class, submitted);
        let done = submitted + Nanos::new(time);
        let mut asked = None;
        let mut is_missed = false;
        loop {
            match self.estimator.wait(self.now) {
                Wait::SleepUntil(until) => {
                    assert_eq!(asked, None, "it was slept for before");
                    asked = Some(until.saturating_since(self.now).as_nanos());
                    self.now = self.runs_at(until + Nanos::new(late));
                    self.cpu += self.cost;
                    is_missed = done <= self.now;
                    self.estimator.woke(until, self.now, is_missed);
                }
                Wait::Poll => {
                    let look = done.min(self.now + LOOK);
                    self.cpu += look.saturating_since(self.now).as_nanos();
                    self.now = self.runs_at(self.now.max(look));
                }
                Wait::Block => {
                    self.now = self.runs_at(self.now.max(done + Nanos::new(late)));
                    self.cpu += self.cost;
                }
            }
            if done <= self.now {
                break;
            }
        }
        self.estimator.completed(ticket, if self.is_stamped { done } else { self.now });
        let latency = self.now.saturating_since(submitted).as_nanos();
        Outcome { asked, is_missed, latency }
    }

    pub(crate) fn statistics(&self) -> PollStatistics {
        self.estimator.statistics()
    }
}
