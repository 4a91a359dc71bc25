//! Waiting, as [`waiting`](crate::waiting) has decided: in the ring, where all that may come comes,
//! or by looking at it.

use std::io;

use paternoster::scheduler::Scheduler;
use paternoster::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};

use super::{Front, Owner};
use crate::waiting::{How, Seen, spin};

impl<S: Scheduler> Owner<S> {
    /// Waits until something comes or is due; `wanted` is when the front wants to be called.
    pub(super) fn wait(
        &mut self,
        wanted: Option<Instant>,
        front: &mut impl Front<S>,
    ) -> io::Result<()> {
        if self.engine.has_outcome() {
            // The front put a command at the end of the round that is done already.
            return self.ring.submit();
        }
        let due = [self.engine.poll_timeout(), self.backends.poll_timeout(), wanted];
        let until = due.into_iter().flatten().min();
        let began = self.clock.now();
        if until.is_some_and(|until| until <= began) {
            return self.ring.submit();
        }
        let is_costly_to_wake = front.is_costly_to_wake();
        self.waiting.set_costly_to_wake(is_costly_to_wake);
        if is_costly_to_wake {
            // To submit reads may complete them: they are taken before it is decided how to wait.
            self.ring.submit()?;
            if self.ring.has_completions() {
                return Ok(());
            }
        }
        let how = self.waiting.how(began);
        self.waiting.begins(how, began);
        match how {
            How::Sleep => self.sleep(until, front),
            How::Look(limit) => {
                if self.look(began + limit, until, front)? {
                    return Ok(());
                }
                self.sleep(until, front)
            }
            How::Poll => self.poll(until, front),
            How::SleepUntil(at) => self.sleep_until(at, until, front),
            How::Calibrate(asked) => self.calibrate(asked, until, front),
        }
    }

    /// Looks whether something comes before `end`. Returns whether there is something to do.
    fn look(
        &mut self,
        end: Instant,
        until: Option<Instant>,
        front: &impl Front<S>,
    ) -> io::Result<bool> {
        self.ring.submit()?;
        if self.ring.has_completions() || front.has_arrived() {
            return Ok(true);
        }
        let Self { ring, waiting, clock, .. } = self;
        let end = until.map_or(end, |until| until.min(end));
        let has_come = || ring.has_completions() || front.has_arrived();
        let (seen, took) = spin(waiting.has_room(), || clock.now(), has_come, |now| now >= end);
        let now = clock.now();
        waiting.looked(seen, took, now);
        let is_over = seen == Seen::Something || until.is_some_and(|until| until <= now);
        if is_over {
            self.ring.submit()?;
        }
        Ok(is_over)
    }

    /// Looks until something comes or is due, or there is a better way to wait.
    fn poll(&mut self, until: Option<Instant>, front: &impl Front<S>) -> io::Result<()> {
        self.ring.submit()?;
        let Self { ring, waiting, clock, .. } = self;
        let has_come = || ring.has_completions() || front.has_arrived();
        let has_room = waiting.has_room();
        let is_enough =
            |now| until.is_some_and(|until| until <= now) || waiting.how(now) != How::Poll;
        let (seen, took) = spin(has_room, || clock.now(), has_come, is_enough);
        waiting.polled(seen, took, clock.now());
        self.ring.submit()
    }

    /// Sleeps until the I/Os in the device are nearly done, unless one is.
    fn sleep_until(
        &mut self,
        at: Instant,
        until: Option<Instant>,
        front: &mut impl Front<S>,
    ) -> io::Result<()> {
        self.ring.submit()?;
        if self.ring.has_completions() || front.has_arrived() {
            return Ok(());
        }
        self.sleep(Some(until.map_or(at, |until| until.min(at))), front)?;
        self.waiting.slept(at, self.clock.now());
        Ok(())
    }

    /// Sleeps for nothing, to see what that costs.
    fn calibrate(
        &mut self,
        asked: Nanos,
        until: Option<Instant>,
        front: &mut impl Front<S>,
    ) -> io::Result<()> {
        let (before, end) = (cpu_time(), self.clock.now() + asked);
        self.sleep(Some(until.map_or(end, |until| until.min(end))), front)?;
        let now = self.clock.now();
        if now >= end {
            let cpu = cpu_time().saturating_sub(before);
            self.waiting.calibrated(asked, now.saturating_since(end), cpu);
        } else {
            self.waiting.calibration_cut_short();
        }
        Ok(())
    }

    /// Sleeps until something comes, or until then.
    fn sleep(&mut self, until: Option<Instant>, front: &mut impl Front<S>) -> io::Result<()> {
        let result = if front.falls_asleep() {
            self.waits += 1;
            let result = self.ring.wait(until.map(|until| self.clock.monotonic_at(until)));
            if until.is_none_or(|until| self.clock.now() < until) {
                self.waiting.interrupted();
            }
            result
        } else {
            self.ring.submit()
        };
        front.awake();
        result
    }
}

/// CPU time of this thread.
pub(super) fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    Nanos::new(u64::try_from(nanos).unwrap_or(0))
}
