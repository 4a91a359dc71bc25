//! A die: it reads a chunk at a time in the order in which reads come, and programs what is written
//! while no read wants it.
//!
//! ```text
//!   reads     ├─ a ─┤├─ b ─┤           ├─ c ─┤              programs may be suspended:
//!   programs                ├──── p …        … p ─┤├─ q     p goes on when c is done
//!
//!   reads     ├─ a ─┤├─ b ─┤                ├─ c ─┤         they may not: c waits for p
//!   programs                ├────── p ─────┤       ├─ q
//! ```

use paternoster::{Instant, Nanos};

/// A die.
#[derive(Debug)]
pub(super) struct Die {
    /// When the last read that it was given ends.
    free_at: Instant,
    /// Up to when its time has been given to programs, or to reads.
    settled: Instant,
    /// Programs that have not ended.
    programs: u32,
    /// How much of the first of them is done.
    progress: Nanos,
}

impl Die {
    pub(super) fn new(start: Instant) -> Self {
        Self { free_at: start, settled: start, programs: 0, progress: Nanos::ZERO }
    }

    /// Gives it a read that comes at `at`, not before one that it was given. Returns when it ends.
    /// Programs are settled up to `at` before ([`settle`](Self::settle)).
    pub(super) fn read(&mut self, at: Instant, service: Nanos, blocked: Nanos) -> Instant {
        let start = self.free_at.max(at) + blocked;
        self.free_at = start + service;
        self.settled = self.free_at;
        self.free_at
    }

    /// Gives it one more program.
    pub(super) fn program(&mut self) {
        self.programs += 1;
    }

    /// Gives the time up to `now` in which there was no read to its programs, which take `each`.
    /// Returns how many have ended.
    pub(super) fn settle(&mut self, now: Instant, each: Nanos) -> u32 {
        let idle = now.saturating_since(self.settled);
        self.settled = self.settled.max(now);
        if self.programs == 0 {
            return 0;
        }
        let done = self.progress + idle;
        let ended = u32::try_from(done.as_nanos() / each.as_nanos().max(1)).unwrap_or(u32::MAX);
        let ended = ended.min(self.programs);
        self.programs -= ended;
        self.progress = if self.programs == 0 {
            Nanos::ZERO
        } else {
            Nanos::new(done.as_nanos() % each.as_nanos().max(1))
        };
        ended
    }

    /// What is left of the program that runs at `now`, up to which it is settled: a read has to
    /// wait for it where programs are not suspended. It is done then.
    pub(super) fn finish_program(&mut self, now: Instant, each: Nanos) -> Nanos {
        if self.programs == 0 || self.free_at > now {
            return Nanos::ZERO;
        }
        let left = each.saturating_sub(self.progress);
        self.progress = each;
        left
    }

    /// When the first of its programs ends if no read comes.
    pub(super) fn program_end(&self, each: Nanos) -> Option<Instant> {
        (self.programs > 0).then(|| self.settled + each.saturating_sub(self.progress))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Nanos = Nanos::new(500);
    const READ: Nanos = Nanos::new(60);

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// A read at 100 suspends the program, which has 400 left, and ends at 160; the program ends at
    /// 160 + 400.
    #[test]
    fn read_suspends_a_program() {
        let mut die = Die::new(at(0));
        die.program();
        assert_eq!(die.program_end(PROGRAM), Some(at(500)));
        assert_eq!(die.settle(at(100), PROGRAM), 0);
        assert_eq!(die.read(at(100), READ, Nanos::ZERO), at(160));
        assert_eq!(die.program_end(PROGRAM), Some(at(560)));
        assert_eq!(die.settle(at(560), PROGRAM), 1);
        assert_eq!(die.program_end(PROGRAM), None);
    }

    /// Without suspension the read at 100 waits for the 400 that the program has left.
    #[test]
    fn read_waits_for_a_program_that_is_not_suspended() {
        let mut die = Die::new(at(0));
        die.program();
        die.program();
        die.settle(at(100), PROGRAM);
        let blocked = die.finish_program(at(100), PROGRAM);
        assert_eq!(blocked, Nanos::new(400));
        assert_eq!(die.read(at(100), READ, blocked), at(560));
        assert_eq!(die.settle(at(560), PROGRAM), 1, "the first program has ended");
        assert_eq!(die.program_end(PROGRAM), Some(at(1060)), "the second begins after the read");
    }

    #[test]
    fn reads_are_served_one_after_the_other() {
        let mut die = Die::new(at(0));
        assert_eq!(die.read(at(10), READ, Nanos::ZERO), at(70));
        assert_eq!(die.read(at(20), READ, Nanos::ZERO), at(130));
        assert_eq!(die.read(at(500), READ, Nanos::ZERO), at(560));
    }
}
