//! The load: submitters in a closed loop over null devices, and what is measured of it.
//!
//! ```text
//!   until it ends:   wait until a batch may be outstanding
//!                    choose a device; submit a batch of random reads of 4 KiB; hand over
//! ```
//!
//! A batch goes to one device, as a call of `io_submit` or `io_uring_enter` mostly does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant as Moment};

use fastrand::Rng;
use paternoster::{Bio, IocId, Sector, SectorCount};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::Clock;
use crate::completions::{Completions, name};
use crate::null_device::Scheduler;
use crate::way::{Batches, Counts, Setup, Then, Way};

/// A read of 4 KiB.
const READ: SectorCount = SectorCount(8);
/// Reads lie within 128 GiB, so that two seldom adjoin.
const READS: u64 = 1 << 25;

/// How long submitters go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until each has submitted so many bios.
    Ios(u64),
    /// For so long.
    Runtime(Duration),
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Threads that submit.
    pub submitters: usize,
    /// Null devices.
    pub devices: usize,
    /// Threads that own devices, for the ways that have them.
    pub owners: usize,
    /// Bios that are submitted before they are handed over.
    pub batch: usize,
    /// Bios of a submitter that are outstanding at most; no less than a batch.
    pub outstanding: usize,
    /// For how long who waits, a submitter or an owner, looks again before it sleeps.
    pub poll: Duration,
    /// The scheduler of each device.
    pub scheduler: Scheduler,
    /// How long it goes on.
    pub until: Until,
    /// Whether locks count for how long they are held.
    pub times_hold: bool,
    /// Whether whoever waits for a lock keeps the processor, as in a kernel, and does not sleep.
    pub spins: bool,
    /// Whether each submitter stays on one processor, by turns on all that there are; else two may
    /// run on one, and never meet at a lock.
    pub pins: bool,
    /// Of how many batches in a hundred the submitter moves to another processor between submitting
    /// them and handing them over. Where that is said a batch alone is outstanding, and each is
    /// timed.
    pub moves_percent: Option<u32>,
    /// The seed of all draws.
    pub seed: u64,
}

impl Default for Load {
    /// One submitter and device, `none`, batches of 16 of 64 outstanding, a tenth of a second.
    fn default() -> Self {
        Self {
            submitters: 1,
            devices: 1,
            owners: 1,
            batch: 16,
            outstanding: 64,
            poll: Duration::from_micros(20),
            scheduler: Scheduler::None,
            until: Until::Runtime(Duration::from_millis(100)),
            times_hold: false,
            spins: false,
            pins: false,
            moves_percent: None,
            seed: 1,
        }
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// I/Os that are done.
    pub ios: u64,
    /// How long that took.
    pub elapsed: Duration,
    /// The process's CPU time in that.
    pub cpu: Duration,
    /// What of it submitters took.
    pub submitter_cpu: Duration,
    /// Locks, and calls of owners.
    pub counts: Counts,
    /// What reached devices at once.
    pub batches: Batches,
    /// Futex calls that woke submitters.
    pub submitter_wakes: u64,
    /// Futex calls in which submitters waited.
    pub submitter_waits: u64,
    /// Devices that a timer unplugged.
    pub timeouts: u64,
    /// How often a submitter has moved to another processor.
    pub moves: u64,
    /// How long a batch took, where that is measured: the median.
    pub batch_p50: Duration,
    /// What one batch in a hundred is not below.
    pub batch_p99: Duration,
}

/// What all submitters of a run look at.
struct Stage<'a> {
    load: &'a Load,
    clock: Clock,
    /// The processors on which submitters may run.
    processors: Option<CpuSet>,
    completions: &'a Completions,
    ioc: IocId,
    /// Submitters that are ready.
    ready: AtomicUsize,
    opens: AtomicBool,
    stops: AtomicBool,
}

impl Load {
    /// Runs it over a way with those settings.
    ///
    /// # Panics
    ///
    /// Where it has no submitter, device, owner or batch, or a batch that may not be outstanding.
    pub fn run<W: Way>(&self, settings: impl FnOnce(&mut Setup)) -> Figures {
        self.run_telling::<W>(settings, &Arc::new(Completions::new(self.submitters)))
    }

    /// Runs it, and tells of completions there.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_telling<W: Way>(
        &self,
        settings: impl FnOnce(&mut Setup),
        completions: &Arc<Completions>,
    ) -> Figures {
        let least = [self.submitters, self.devices, self.owners, self.batch].into_iter().min();
        assert!(least > Some(0), "a load has submitters, devices, owners and batches: {self:?}");
        assert!(self.batch <= self.outstanding, "a batch may be outstanding: {self:?}");
        let mut setup = Setup::new(completions, self.submitters, self.devices);
        setup.owners = self.owners;
        setup.outstanding = self.outstanding;
        setup.poll = self.poll;
        setup.scheduler = self.scheduler;
        setup.times_hold = self.times_hold;
        setup.spins = self.spins;
        settings(&mut setup);
        let (way, own) = W::open(&setup);
        let stage = Stage {
            load: self,
            clock: setup.clock,
            processors: sched_getaffinity(None).ok(),
            completions,
            ioc: setup.ioc(),
            ready: AtomicUsize::new(0),
            opens: AtomicBool::new(false),
            stops: AtomicBool::new(false),
        };
        stage.measure(way, own)
    }
}

impl Stage<'_> {
    fn measure<W: Way>(&self, way: W, own: Vec<W::Own>) -> Figures {
        let (begin, cpu, each) = thread::scope(|scope| {
            let way = &way;
            let threads: Vec<_> = own
                .into_iter()
                .enumerate()
                .map(|(number, own)| scope.spawn(move || self.submit_all(way, number, own)))
                .collect();
            while self.ready.load(Ordering::Acquire) < threads.len() {
                thread::yield_now();
            }
            let (begin, cpu) = (Moment::now(), cpu_time(ClockId::ProcessCPUTime));
            self.opens.store(true, Ordering::Release);
            for thread in &threads {
                thread.thread().unpark();
            }
            if let Until::Runtime(runtime) = self.load.until {
                thread::sleep(runtime);
                self.stops.store(true, Ordering::Relaxed);
            }
            let each = threads.into_iter().map(|it| it.join().expect("no submitter panics"));
            (begin, cpu, each.collect::<Vec<_>>())
        });
        let elapsed = begin.elapsed();
        let cpu = cpu_time(ClockId::ProcessCPUTime).saturating_sub(cpu);
        let counts = way.close();
        let mut batches: Vec<_> = each.iter().flat_map(|it| it.took.iter().copied()).collect();
        batches.sort_unstable();
        let (submitter_wakes, submitter_waits) = self.completions.calls();
        Figures {
            ios: each.iter().map(|it| it.ios).sum(),
            elapsed,
            cpu,
            submitter_cpu: each.iter().map(|it| it.cpu).sum(),
            counts,
            batches: each.iter().map(|it| it.batches).sum(),
            submitter_wakes,
            submitter_waits,
            timeouts: each.iter().map(|it| it.timeouts).sum(),
            moves: each.iter().map(|it| it.moves).sum(),
            batch_p50: quantile(&batches, 500),
            batch_p99: quantile(&batches, 990),
        }
    }

    fn submit_all<W: Way>(&self, way: &W, number: usize, own: W::Own) -> Submitted {
        if self.load.pins {
            stay_on(self.processors.as_ref(), number);
        }
        self.ready.fetch_add(1, Ordering::AcqRel);
        while !self.opens.load(Ordering::Acquire) {
            thread::park();
        }
        let cpu = cpu_time(ClockId::ThreadCPUTime);
        let random = Rng::with_seed(self.load.seed.wrapping_add(number as u64));
        let (moves, took) = (0, Vec::new());
        let mut submitter =
            Submitter { stage: self, way, number, own, random, ios: 0, timeouts: 0, moves, took };
        submitter.go_on();
        let cpu = cpu_time(ClockId::ThreadCPUTime).saturating_sub(cpu);
        let Submitter { ios, timeouts, mut own, moves, took, .. } = submitter;
        Submitted { ios, cpu, timeouts, moves, took, batches: W::batches(&mut own) }
    }

    fn ends(&self, ios: u64) -> bool {
        match self.load.until {
            Until::Ios(all) => ios >= all,
            Until::Runtime(_) => self.stops.load(Ordering::Relaxed),
        }
    }
}

/// What a submitter has done.
struct Submitted {
    ios: u64,
    /// The CPU time of its thread.
    cpu: Duration,
    timeouts: u64,
    moves: u64,
    took: Vec<Duration>,
    batches: Batches,
}

struct Submitter<'a, W: Way> {
    stage: &'a Stage<'a>,
    way: &'a W,
    number: usize,
    own: W::Own,
    random: Rng,
    /// Bios that it has submitted.
    ios: u64,
    /// Devices that it has unplugged as their timers fired.
    timeouts: u64,
    /// How often it has moved to another processor.
    moves: u64,
    /// How long each batch took, where that is measured.
    took: Vec<Duration>,
}

impl<W: Way> Submitter<'_, W> {
    fn go_on(&mut self) {
        let Load { batch, outstanding, until, .. } = *self.stage.load;
        while !self.stage.ends(self.ios) {
            let left = if let Until::Ios(all) = until { all - self.ios } else { u64::MAX };
            let batch = left.min(batch as u64);
            self.wait_for((self.ios + batch).saturating_sub(outstanding as u64));
            let begin = self.stage.clock.now();
            self.submit(batch);
            if self.stage.load.moves_percent.is_some() {
                self.wait_for(self.ios);
                let took = self.stage.clock.now().saturating_since(begin);
                self.took.push(Duration::from_nanos(took.as_nanos()));
            }
        }
        self.wait_for(self.ios);
    }

    fn submit(&mut self, batch: u64) {
        let now = self.stage.clock.now();
        let device = self.random.usize(..self.stage.load.devices);
        for left in (0..batch).rev() {
            let sector = Sector(self.random.u64(..READS) * u64::from(READ.0));
            let name = name(self.number, self.ios);
            let bio = Bio::read(self.stage.ioc, sector, READ).with_user_data(name);
            let then = if left > 0 { Then::More } else { Then::HandsOver };
            self.way.submit(&mut self.own, now, device, bio, then);
            self.ios += 1;
        }
        if self.stage.load.moves_percent.is_some_and(|percent| self.random.u32(..100) < percent) {
            self.moves += 1;
            let moves = usize::try_from(self.moves).expect("a run is short");
            stay_on(self.stage.processors.as_ref(), self.number + moves);
        }
        self.way.hand_over(&mut self.own, now);
    }

    /// Waits until so many are done. Where the way has timers, whoever waits serves them.
    fn wait_for(&mut self, wanted: u64) {
        let Stage { completions, load, .. } = self.stage;
        while completions.done(self.number) < wanted
            && !completions.poll(self.number, wanted, load.poll)
        {
            let now = self.stage.clock.now();
            let due = self.way.poll_timeout();
            if due.is_some_and(|due| due <= now) {
                self.timeouts += self.way.handle_timeout(&mut self.own, now);
                continue;
            }
            let longest = due.map(|due| Duration::from_nanos(due.saturating_since(now).as_nanos()));
            self.stage.completions.wait(self.number, wanted, longest);
        }
    }
}

/// Has this thread stay on one of these processors, by its number. Where there are none, or the
/// system refuses, it stays where it is.
fn stay_on(allowed: Option<&CpuSet>, number: usize) {
    let Some(allowed) = allowed else { return };
    let mut processors = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let nth = number % usize::try_from(allowed.count()).unwrap_or(1).max(1);
    let mut one = CpuSet::new();
    if let Some(cpu) = processors.nth(nth) {
        one.set(cpu);
        let _ = sched_setaffinity(None, &one);
    }
}

/// The sample that so many in a thousand are not longer than; zero where there is none.
fn quantile(sorted: &[Duration], per_mille: usize) -> Duration {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The CPU time of the process, or of this thread, by that clock.
fn cpu_time(of: ClockId) -> Duration {
    let time = clock_gettime(of);
    Duration::try_from(time).expect("CPU time is not negative")
}
