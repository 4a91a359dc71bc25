//! One thread that submits I/Os and waits for them, in virtual time.
//!
//! ```text
//!   submit: u of CPU time ──▶ in the device: T
//!     ▲                         wait(now)?
//!     │                           Poll        look until the first is done      CPU: all of it
//!     │                           SleepUntil  asleep, and W longer              CPU: a sleep
//!     │                           Block       until it is done, and W longer    CPU: a sleep
//!     └───────── reap ◀───────────┘                                             and an interrupt
//! ```
//!
//! Where others use the machine, too, something else has the CPU now and then, whatever the thread
//! does: it goes on when that is over. So who polls is as late as who sleeps.
//!
//! This is no workload of the simulation, as no scheduler is asked for anything, the thread is all
//! that ever goes on, and it polls in one step up to the first completion, which the simulation
//! tells no task before it comes.
//!
//! Each stream keeps one I/O outstanding. How long its I/Os take depends on their number alone, and
//! not on the policy: every policy gets the same ones.

use paternoster::poll::{Completions, Estimator, PollClass, PollPolicy, Ticket, Wait};
use paternoster::{Instant, Nanos};

use super::law::{Overshoots, StallLaw, Stalls, Times};
use paternoster_model::{Draws, Who};

/// How long who polls goes on without asking again, in ns.
const LOOK: u64 = 100_000;

/// What waiting costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    /// CPU time of submitting and reaping an I/O.
    pub(super) submit: u64,
    /// CPU time of going to sleep and waking up.
    pub(super) sleep: u64,
    /// CPU time of an interrupt.
    pub(super) interrupt: u64,
    pub(super) overshoots: Overshoots,
    pub(super) stalls: StallLaw,
}

/// A stream of I/Os, one outstanding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stream {
    pub(super) class: PollClass,
    pub(super) times: Times,
}

/// How many I/Os are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    /// Before any is counted.
    pub(super) ramp: u64,
    /// That are counted.
    pub(super) ios: u64,
}

impl Length {
    /// The number of the I/O at which a device changes its speed.
    pub(super) fn middle(self) -> u64 {
        self.ramp + self.ios / 2
    }
}

/// What an I/O took, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Io {
    /// From before its submission until it was reaped.
    pub(super) latency: u64,
    /// In the device.
    pub(super) time: u64,
    /// Between that and being reaped.
    pub(super) late: u64,
    /// CPU time of the thread since the I/O before.
    pub(super) cpu: u64,
    /// Time since the I/O before.
    pub(super) elapsed: u64,
    /// The thread slept while it was in the device.
    pub(super) is_slept_for: bool,
    /// It was done when the thread woke.
    pub(super) is_missed: bool,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// Those that are counted.
    pub(super) ios: Vec<Io>,
    /// Sums over the whole run, in ns: tests check them against each other.
    #[cfg_attr(not(test), allow(dead_code))]
    pub(super) sums: Sums,
}

/// Sums over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) cpu: u64,
    pub(super) polled: u64,
    pub(super) sleeps: u64,
    /// What sleeps were asked to be.
    pub(super) asked: u64,
    pub(super) overshoot: u64,
    /// What I/Os took in the device, and how much later they were reaped.
    pub(super) times: u64,
    pub(super) added: u64,
}

struct InDevice {
    ticket: Ticket,
    stream: usize,
    begun: u64,
    submitted: u64,
    done: u64,
    is_slept_for: bool,
}

struct Thread<'a> {
    machine: &'a Machine,
    streams: &'a [Stream],
    middle: u64,
    estimator: Estimator,
    completions: Completions,
    /// Of each stream: its draws, and how many it has submitted.
    draws: Vec<(Draws, u64)>,
    wake_draws: Draws,
    stalls: Stalls,
    now: u64,
    in_device: Vec<InDevice>,
    sums: Sums,
    /// What is done now was done when the thread woke.
    is_first_look: bool,
}

/// Runs it. The same seed gives the same times to every policy.
pub(super) fn simulate(
    machine: &Machine,
    streams: &[Stream],
    policy: PollPolicy,
    completions: Completions,
    length: Length,
    seed: u64,
) -> Run {
    let draws = (1..).take(streams.len()).map(|stream| (Draws::new(seed, Who::Polling, stream), 0));
    let start = Instant::START.as_nanos();
    // No stream has that number.
    let stall_draws = Draws::new(seed, Who::Polling, 999);
    let mut thread = Thread {
        machine,
        streams,
        middle: length.middle(),
        estimator: Estimator::new(policy, completions),
        completions,
        draws: draws.collect(),
        wake_draws: Draws::new(seed, Who::Polling, 0),
        stalls: Stalls::new(machine.stalls, stall_draws, start),
        now: start,
        in_device: Vec::new(),
        sums: Sums::default(),
        is_first_look: false,
    };
    thread.calibrate();
    let all = length.ramp + length.ios;
    let mut ios = Vec::new();
    let (mut done, mut last) = (0, (thread.now, 0));
    (0..streams.len()).for_each(|stream| thread.submit(stream));
    while done < all {
        thread.wait();
        for io in thread.reap() {
            let io = Io { cpu: thread.sums.cpu - last.1, elapsed: thread.now - last.0, ..io };
            last = (thread.now, thread.sums.cpu);
            done += 1;
            thread.sums.times += io.time;
            thread.sums.added += io.late;
            if (length.ramp..all).contains(&(done - 1)) {
                ios.push(io);
            }
        }
    }
    Run { ios, sums: thread.sums }
}

impl Thread<'_> {
    fn instant(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn calibrate(&mut self) {
        while let Some(asked) = self.estimator.calibration_wanted() {
            let until = self.now + asked.as_nanos();
            let overshoot = self.machine.overshoots.draw(&mut self.wake_draws);
            self.now = self.stalls.runs_at(until + overshoot);
            let overshoot = Nanos::new(self.now - until);
            self.estimator.calibrated(asked, overshoot, Nanos::new(self.machine.sleep));
        }
    }

    fn submit(&mut self, stream: usize) {
        let begun = self.now;
        self.work(self.machine.submit);
        let (draws, number) = &mut self.draws[stream];
        let time = self.streams[stream].times.draw(*number, self.middle, draws);
        *number += 1;
        let ticket = self.estimator.submitted(self.streams[stream].class, self.instant());
        let (submitted, done) = (self.now, self.now + time);
        let io = InDevice { ticket, stream, begun, submitted, done, is_slept_for: false };
        self.in_device.push(io);
    }

    fn work(&mut self, cpu: u64) {
        self.now = self.stalls.runs_at(self.now + cpu);
        self.sums.cpu += cpu;
    }

    fn first_done(&self) -> u64 {
        self.in_device.iter().map(|io| io.done).min().expect("each stream has one outstanding")
    }

    /// Until something is done.
    fn wait(&mut self) {
        self.is_first_look = false;
        while self.first_done() > self.now {
            match self.estimator.wait(self.instant()) {
                Wait::Poll => {
                    // Time alone may change the answer.
                    let until = self.first_done().min(self.stalls.next());
                    let polled = (until - self.now).min(LOOK);
                    self.sums.polled += polled;
                    self.work(polled);
                }
                Wait::SleepUntil(until) => self.sleep(until),
                Wait::Block => {
                    let late = self.machine.overshoots.draw(&mut self.wake_draws);
                    self.now = self.stalls.runs_at(self.first_done() + late);
                    self.sums.cpu += self.machine.sleep + self.machine.interrupt;
                }
            }
        }
    }

    fn sleep(&mut self, until: Instant) {
        let overshoot = self.machine.overshoots.draw(&mut self.wake_draws);
        self.sums.sleeps += 1;
        self.sums.asked += until.as_nanos() - self.now;
        self.sums.cpu += self.machine.sleep;
        self.now = self.stalls.runs_at(until.as_nanos() + overshoot);
        self.sums.overshoot += self.now - until.as_nanos();
        self.in_device.iter_mut().for_each(|io| io.is_slept_for = true);
        self.is_first_look = self.first_done() <= self.now;
        self.estimator.woke(until, self.instant(), self.is_first_look);
    }

    /// Takes what is done, and submits as many.
    fn reap(&mut self) -> Vec<Io> {
        let now = self.now;
        let done: Vec<_> = self.in_device.extract_if(.., |io| io.done <= now).collect();
        let one = |io: &InDevice| {
            let at = match self.completions {
                Completions::Stamped => io.done,
                Completions::Noticed => now,
            };
            self.estimator.completed(io.ticket, Instant::from_nanos(at));
            let InDevice { begun, submitted, done, is_slept_for, .. } = *io;
            let is_missed = is_slept_for && self.is_first_look;
            let (latency, time, late) = (now - begun, done - submitted, now - done);
            Io { latency, time, late, is_slept_for, is_missed, ..Io::default() }
        };
        let ios = done.iter().map(one).collect();
        for io in done {
            self.submit(io.stream);
        }
        ios
    }
}
