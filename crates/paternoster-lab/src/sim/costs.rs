//! What I/O costs the processors, and the lock that the scheduler's work is done under.
//!
//! ```text
//!   core      ├ submit ┤├ wait for the lock ┤├ hold ┤        the I/O enters the scheduler here
//!   lock      ────────── another's hold ─────├ hold ┤
//!
//!   core      ├ complete ┤├ wait ┤├ hold ┤├ wake ┤           its task goes on here
//!             ▲ the device is done
//! ```
//!
//! A core does one thing at a time, in the order in which things come to it; what waits for the
//! lock or holds it goes before what came later. The lock is granted in the order in which it is
//! asked for, and who waits for it spins: the core is busy meanwhile. A hold that was waited for
//! may cost more than one that was not, as what it works on then lies in another core's cache.

use paternoster::{Instant, Nanos};

/// What one I/O costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Time of the core to submit it, but for the scheduler's work.
    pub submit: Nanos,
    /// Time of the core to complete it, but for the scheduler's work.
    pub complete: Nanos,
    /// Further time of the core to wake its task, if that waits.
    pub wake: Nanos,
    /// How long the scheduler holds its lock for it, half of it when it comes and half when it
    /// completes.
    pub hold: Nanos,
    /// The same where the lock was waited for.
    pub hold_after_wait: Nanos,
}

impl Costs {
    /// Whether I/O costs nothing.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What the cores did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time of all cores in which they worked, or spun.
    pub busy: Nanos,
    /// Time of all cores in which they waited for the lock.
    pub spinning: Nanos,
    /// How long the lock was held.
    pub held: Nanos,
}

/// The cores and the lock.
#[derive(Debug)]
pub(super) struct Processors {
    costs: Costs,
    /// When each core is free.
    cores: Vec<Instant>,
    lock_free: Instant,
    time: CpuTime,
}

impl Processors {
    pub(super) fn new(costs: Costs, cores: u32) -> Self {
        let start = Instant::from_nanos(0);
        let cores = vec![start; cores.max(1) as usize];
        Self { costs, cores, lock_free: start, time: CpuTime::default() }
    }

    pub(super) fn costs(&self) -> Costs {
        self.costs
    }

    /// The core of the task of that index: tasks are spread over the cores in turn.
    pub(super) fn core_of(&self, task: usize) -> usize {
        task % self.cores.len()
    }

    /// Has the core do something from `now` on, or when it is free. Returns when that is done.
    pub(super) fn work(&mut self, core: usize, now: Instant, span: Nanos) -> Instant {
        let free = &mut self.cores[core];
        *free = (*free).max(now) + span;
        self.time.busy += span;
        *free
    }

    /// Has the core take the lock, from `now` on, for one half of the scheduler's work. Returns
    /// when it gives the lock back. Those that ask have to ask in the order of time.
    pub(super) fn hold_lock(&mut self, core: usize, now: Instant) -> Instant {
        let waited = self.lock_free.saturating_since(now);
        let Costs { hold, hold_after_wait, .. } = self.costs;
        let whole = if waited > Nanos::ZERO { hold_after_wait.max(hold) } else { hold };
        let span = Nanos::new(whole.as_nanos() / 2);
        let end = self.lock_free.max(now) + span;
        self.lock_free = end;
        self.cores[core] = self.cores[core].max(now) + waited + span;
        let CpuTime { busy, spinning, held } = &mut self.time;
        *busy += waited + span;
        *spinning += waited;
        *held += span;
        end
    }

    pub(super) fn time(&self) -> CpuTime {
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn second_core_spins_while_the_first_holds_the_lock() {
        let costs =
            Costs { hold: Nanos::new(200), hold_after_wait: Nanos::new(600), ..Costs::default() };
        let mut cpu = Processors::new(costs, 2);
        assert_eq!(cpu.hold_lock(0, at(1000)), at(1100));
        assert_eq!(cpu.hold_lock(1, at(1040)), at(1400), "it waits 60 and holds 300");
        let time = CpuTime {
            busy: Nanos::new(100 + 60 + 300),
            spinning: Nanos::new(60),
            held: Nanos::new(400),
        };
        assert_eq!(cpu.time(), time);
        assert_eq!(cpu.work(1, at(1200), Nanos::new(50)), at(1450), "the core spins till 1400");
    }
}
