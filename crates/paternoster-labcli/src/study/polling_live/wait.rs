//! The one way to wait for the device: as an estimator says.
//!
//! ```text
//!   look ── done ──▶ reap
//!    ▲ no
//!    └── estimator.wait ─▶ Poll        look again at once
//!                          SleepUntil  sleep; the device wakes nobody
//!                          Block       sleep until the device rings
//! ```

use paternoster::poll::{Completions, Estimator, PollClass, Wait};
use paternoster::{Direction, Nanos, SectorCount};

use super::clock::{Clock, thread_cpu};
use super::entry::Entry;

/// Who waits.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    pub(super) entry: &'a Entry,
    pub(super) clock: Clock,
    pub(super) estimator: &'a mut Estimator,
    /// What moments the estimator is told of.
    pub(super) completions: Completions,
}

/// An I/O that was waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reaped {
    /// In the device, by its stamp.
    pub(super) time: Nanos,
    /// Since its stamp.
    pub(super) late: Nanos,
    pub(super) sleeps: u32,
    /// It was done when a sleep ended.
    pub(super) is_missed: bool,
}

/// A sleep for nothing, that shows what sleeping costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleep {
    pub(super) asked: Nanos,
    pub(super) overshoot: Nanos,
    pub(super) cpu: Nanos,
}

impl Waiter<'_> {
    /// Waits so, once.
    fn wait(&self, how: Wait) {
        match how {
            Wait::Poll => std::hint::spin_loop(),
            Wait::SleepUntil(until) => self.clock.sleep_until(until),
            Wait::Block => self.entry.block(),
        }
    }

    /// Submits a read of 4 KiB and waits for it.
    pub(super) fn read(&mut self) -> Reaped {
        let class = PollClass::of(Direction::Read, SectorCount(8)).expect("it has sectors");
        let submitted = self.clock.now();
        let ticket = self.estimator.submitted(class, submitted);
        self.entry.submit(submitted);
        let (mut sleeps, mut is_missed) = (0, false);
        let stamp = loop {
            if let Some(stamp) = self.entry.done_at() {
                break stamp;
            }
            let how = self.estimator.wait(self.clock.now());
            let Wait::SleepUntil(until) = how else {
                self.wait(how);
                continue;
            };
            // One last look, which may spare the sleep.
            if self.entry.done_at().is_some() {
                continue;
            }
            self.wait(how);
            let found = self.entry.done_at().is_some();
            self.estimator.woke(until, self.clock.now(), found);
            sleeps += 1;
            is_missed |= found;
        };
        let now = self.clock.now();
        let at = match self.completions {
            Completions::Stamped => stamp,
            Completions::Noticed => now,
        };
        self.estimator.completed(ticket, at);
        let (time, late) = (stamp.saturating_since(submitted), now.saturating_since(stamp));
        Reaped { time, late, sleeps, is_missed }
    }

    /// Sleeps for nothing until the estimator knows what that costs; says what each did.
    pub(super) fn calibrate(&mut self) -> Vec<Sleep> {
        let mut sleeps = Vec::new();
        while let Some(asked) = self.estimator.calibration_wanted() {
            let cpu = thread_cpu();
            let until = self.clock.now() + asked;
            self.wait(Wait::SleepUntil(until));
            let overshoot = self.clock.now().saturating_since(until);
            let cpu = thread_cpu().saturating_sub(cpu);
            self.estimator.calibrated(asked, overshoot, cpu);
            sleeps.push(Sleep { asked, overshoot, cpu });
        }
        sleeps
    }
}
