//! Rounds of all policies by turns, over a thread that plays the device.
//!
//! ```text
//!   costs of sleeping
//!   each device:   warm up A B C …        estimates are made, nothing is counted
//!                  round 1: A B C …       the same seed of times for each
//!                  round 2: A B C …
//! ```
//!
//! What disturbs the machine for a while then disturbs a run of each policy, and not all runs of
//! one. A policy keeps its estimator, and with it what it learned, from round to round.

use std::num::NonZero;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use paternoster::Nanos;
use paternoster::poll::{Completions, Estimator, PollPolicy};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use super::clock::{Clock, thread_cpu};
use super::device::Device;
use super::entry::Entry;
use super::wait::{Sleep, Waiter};
use super::ways::Way;

/// The processors of the two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processors {
    waiter: usize,
    device: usize,
}

/// A run of a policy, in ns.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// In the device, of each I/O.
    pub(super) times: Vec<u64>,
    /// Between the device's stamp and being reaped, of each I/O.
    pub(super) late: Vec<u64>,
    /// CPU time of the thread that waits.
    pub(super) cpu: Nanos,
    pub(super) elapsed: Nanos,
    pub(super) sleeps: u64,
    /// I/Os that were done when the sleep for them ended.
    pub(super) misses: u64,
    pub(super) interrupts: u64,
}

impl Processors {
    /// The first two that this process may run on.
    pub(super) fn choose() -> Result<Self> {
        let allowed = sched_getaffinity(None).context("cannot tell which processors there are")?;
        let mut each = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
        let two = each.next().zip(each.next());
        let found = allowed.count();
        ensure!(
            two.is_some(),
            "{found} processor, and the device takes one for itself: two at least are needed"
        );
        Ok(two.map(|(waiter, device)| Self { waiter, device }).expect("there are two"))
    }
}

fn stay_on(processor: usize) -> Result<()> {
    let mut one = CpuSet::new();
    one.set(processor);
    let stayed = sched_setaffinity(None, &one);
    stayed.with_context(|| format!("cannot keep a thread on processor {processor}"))
}

/// Runs that in a thread that stays on its processor and whose sleeps end as exactly as they can.
pub(super) fn waiting<T: Send>(
    processors: Processors,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let in_thread = || {
        stay_on(processors.waiter)?;
        set_current_timer_slack(NonZero::new(1)).context("cannot set the timer slack to 1 ns")?;
        work()
    };
    thread::scope(|scope| scope.spawn(in_thread).join().expect("who waits does not panic"))
}

/// A device on its processor, and what runs beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bench {
    pub(super) processors: Processors,
    pub(super) clock: Clock,
}

impl Bench {
    /// Runs that with the device, of which it is the one who waits.
    fn with_device<T>(
        self,
        device: &Device,
        seed: u64,
        work: impl FnOnce(&Entry) -> T,
    ) -> Result<T> {
        let entry = Entry::new();
        thread::scope(|scope| {
            let entry = &entry;
            let serve = move || -> Result<()> {
                stay_on(self.processors.device)?;
                device.serve(entry, self.clock, seed).context("cannot read from the file")
            };
            let thread = scope.spawn(move || serve().inspect_err(|_| entry.fail()));
            let result = work(entry);
            entry.end();
            thread.join().expect("the device does not panic").map(|()| result)
        })
    }

    /// What sleeping costs, beside a device that spins.
    pub(super) fn sleeps(self) -> Result<Vec<Sleep>> {
        let mut estimator = Estimator::new(PollPolicy::Classic, Completions::Noticed);
        self.with_device(&Device::Modelled(Nanos::ZERO), 0, |entry| {
            let (clock, completions) = (self.clock, Completions::Noticed);
            Waiter { entry, clock, estimator: &mut estimator, completions }.calibrate()
        })
    }

    /// Runs a policy for so long, and for one I/O at least.
    pub(super) fn run(
        self,
        device: &Device,
        way: &Way,
        estimator: &mut Estimator,
        length: Nanos,
        seed: u64,
    ) -> Result<Run> {
        let Self { clock, .. } = self;
        self.with_device(device, seed, |entry| {
            let mut waiter = Waiter { entry, clock, estimator, completions: way.completions };
            if matches!(way.policy, PollPolicy::Auto(_)) {
                waiter.calibrate();
            }
            let (begin, cpu) = (clock.now(), thread_cpu());
            let mut run = Run::default();
            while !entry.has_failed() {
                let io = waiter.read();
                run.times.push(io.time.as_nanos());
                run.late.push(io.late.as_nanos());
                run.sleeps += u64::from(io.sleeps);
                run.misses += u64::from(io.is_missed);
                if clock.now() >= begin + length {
                    break;
                }
            }
            run.cpu = thread_cpu().saturating_sub(cpu);
            run.elapsed = clock.now().saturating_since(begin);
            run.interrupts = entry.interrupts();
            run
        })
    }
}
