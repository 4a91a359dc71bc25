//! Runs the jobs of a file to their end, over a device and behind a scheduler.

use std::cell::Cell;

use paternoster::scheduler::Scheduler;
use paternoster::{Instant, Nanos, NoTrace, SchedulerKind, Sector, TunableInfo, Weight, Weights};
use thiserror::Error;

use super::stand_still::MOST_IOS;
use super::{PageCacheParameters, Progress, SinkError, Sinks, Threads};
use crate::JournalPlace;
use crate::fio::{DataDirection, Engine, Group, Job, Jobs, Mistake, Place};
use crate::result::{JobResult, short_time};
use crate::scenario::CFQ_DEFAULT_WEIGHT;
use crate::sim::{CpuTime, DeviceTime, GroupSetup, Setup, SetupError, SimError, Simulation};
use paternoster_model::{Model, Op};

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was measured of each job, in their order.
    pub results: Vec<JobResult>,
    /// Where the device's time went.
    pub device: DeviceTime,
    /// What the processors did.
    pub cpu: CpuTime,
    /// What the device served, by [`DataDirection`].
    pub served: [Served; 3],
    /// When the last thread ended.
    pub end: Instant,
    /// Whether the run [was ended](Progress::end_here) before its jobs were.
    pub interrupted: bool,
    /// The tunables of the scheduler that the setup names, with their values at the end.
    pub tunables: Vec<(&'static TunableInfo, i64)>,
    /// The groups with their weights, the root first.
    pub groups: Vec<GroupSetup>,
}

/// What the device served of a direction, from the begin of the run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests that completed.
    pub requests: u64,
    /// I/Os that merged into other requests, and requests that others absorbed.
    pub merged: u64,
    /// How long the requests took in all, each from its making to its completion.
    pub took: Nanos,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JobRunError {
    /// A job does what the device does not.
    #[error("{place}: job {job} has {what}, which the device does not take")]
    Device {
        /// Where it says so.
        place: Place,
        /// The job.
        job: String,
        /// What it does.
        what: &'static str,
    },
    /// The journal of the host does not lie on the device.
    #[error(
        "the host's journal lies in sectors {} to {}; the device ends before sector {}",
        place.start.0, place.start.0 + u64::from(place.sectors.0) - 1, device_end.0
    )]
    Journal {
        /// Where it lies.
        place: JournalPlace,
        /// The sector behind the device's last one.
        device_end: Sector,
    },
    /// A log of I/O could not be replayed to its end.
    #[error("{0}")]
    Log(Mistake),
    /// The scheduler cannot be set up like that.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A job that its time ends does so many I/Os without any time going by.
    #[error(
        "{place}: job {job} began more than {MOST_IOS} I/Os at one instant, {} after the begin of \
         the run: they take no time, and its runtime would never be over. Give it a pace \
         (rate_iops, thinktime), no runtime, or a device and an engine that take time",
        short_time(at.since_start())
    )]
    NoTime {
        /// Where it says what its I/O does.
        place: Place,
        /// The job.
        job: String,
        /// When time stood still.
        at: Instant,
    },
    /// The simulation stands still.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// A file of a job could not be written.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// How often a run says how far it has come, in events.
const EVENTS_BETWEEN_REPORTS: u32 = 1 << 16;

/// Checks what can be told before a run: that the device takes what the jobs do, that it holds the
/// journal, and that the scheduler can be set up. A caller who opens files for a run does so first.
pub fn check_jobs(
    jobs: &Jobs,
    setup: &Setup,
    page_cache: PageCacheParameters,
    model: &impl Model,
) -> Result<(), JobRunError> {
    check_device(jobs, Threads::new(jobs, page_cache).journal(), model)?;
    Ok(with_groups(setup, jobs).check(model)?)
}

/// Runs the jobs to their end. `setup` says which scheduler; its groups come from the jobs.
/// `progress` hears from time to time how far it has come. The files that jobs write are not
/// written: [`run_jobs_into`] does that.
pub fn run_jobs(
    jobs: &Jobs,
    setup: &Setup,
    page_cache: PageCacheParameters,
    model: impl Model,
    progress: impl FnMut(Progress<'_>),
) -> Result<Outcome, JobRunError> {
    run_jobs_into(Sinks::default(), jobs, setup, page_cache, model, progress)
}

/// The same, and the files that the jobs write go into `sinks`, opened for these jobs.
pub fn run_jobs_into(
    sinks: Sinks,
    jobs: &Jobs,
    setup: &Setup,
    page_cache: PageCacheParameters,
    model: impl Model,
    progress: impl FnMut(Progress<'_>),
) -> Result<Outcome, JobRunError> {
    let mut threads = Threads::new(jobs, page_cache);
    threads.write_into(jobs, sinks);
    let scheduler = setup.scheduler(NoTrace)?;
    let mut sim = set_up(jobs, setup, scheduler, threads, model)?;
    simulate(&mut sim, jobs, setup, progress, |_| {})
}

/// The same under a scheduler of one's own, instead of the one that `setup` names.
pub fn run_jobs_under(
    scheduler: impl Scheduler,
    jobs: &Jobs,
    setup: &Setup,
    page_cache: PageCacheParameters,
    model: impl Model,
) -> Result<Outcome, JobRunError> {
    let threads = Threads::new(jobs, page_cache);
    let mut sim = set_up(jobs, setup, scheduler, threads, model)?;
    simulate(&mut sim, jobs, setup, |_| {}, |_| {})
}

/// Sets up the simulation of the threads of these jobs, with the groups of the jobs.
pub(crate) fn set_up<M: Model, S: Scheduler>(
    jobs: &Jobs,
    setup: &Setup,
    scheduler: S,
    mut threads: Threads,
    model: M,
) -> Result<Simulation<Threads, M, S>, JobRunError> {
    check_device(jobs, threads.journal(), &model)?;
    threads.ends_at(model.end());
    Ok(Simulation::with_scheduler(&with_groups(setup, jobs), scheduler, threads, model)?)
}

/// Runs the simulation, which was set up so, to its end; `watch` sees it after each event.
pub(crate) fn simulate<M: Model, S: Scheduler>(
    sim: &mut Simulation<Threads, M, S>,
    jobs: &Jobs,
    setup: &Setup,
    mut progress: impl FnMut(Progress<'_>),
    mut watch: impl FnMut(&mut Simulation<Threads, M, S>),
) -> Result<Outcome, JobRunError> {
    let mut events = 0_u32;
    let ends = Cell::new(false);
    while !ends.get() && sim.step()? {
        watch(sim);
        events += 1;
        if events == EVENTS_BETWEEN_REPORTS {
            events = 0;
            sim.workload().check_written()?;
            progress(Progress { now: sim.now(), threads: sim.workload(), ends: &ends });
        }
    }
    if ends.get() {
        let now = sim.now();
        sim.workload_mut().interrupt(now);
    }
    if let Some((place, job)) = sim.workload().without_time() {
        let (place, job) = (place.clone(), job.to_owned());
        return Err(JobRunError::NoTime { place, job, at: sim.now() });
    }
    if let Some(mistake) = sim.workload().failure() {
        return Err(JobRunError::Log(mistake.clone()));
    }
    sim.workload().check_written()?;
    Ok(Outcome {
        results: sim.workload().results(),
        device: sim.device_time(),
        served: served(sim),
        cpu: sim.cpu_time(),
        end: sim.now(),
        interrupted: ends.get(),
        tunables: tunables(sim, setup),
        groups: groups(sim, jobs),
    })
}

/// The tunables of the scheduler that the setup names; one that took its place may lack some.
fn tunables<M: Model, S: Scheduler>(
    sim: &Simulation<Threads, M, S>,
    setup: &Setup,
) -> Vec<(&'static TunableInfo, i64)> {
    let value = |info: &'static TunableInfo| Some((info, sim.elevator().tunable(info.name).ok()?));
    let kernel = setup.kernel.unwrap_or_default();
    setup.scheduler.tunables_of(kernel).iter().filter_map(value).collect()
}

/// The groups as they are weighed, the root first.
fn groups<M: Model, S: Scheduler>(sim: &Simulation<Threads, M, S>, jobs: &Jobs) -> Vec<GroupSetup> {
    let paths = std::iter::once("/").chain(jobs.groups.iter().map(|group| group.path.as_str()));
    let groups = sim.elevator().groups();
    let weighed = |(path, &id): (&str, _)| {
        let weights = Weights { weight: groups[id].weight(), leaf: groups[id].leaf_weight() };
        GroupSetup { path: path.to_owned(), weights }
    };
    paths.zip(sim.groups()).map(weighed).collect()
}

/// What the device served, as the scheduler's front counted it.
fn served<M: Model, S: Scheduler>(sim: &Simulation<Threads, M, S>) -> [Served; 3] {
    DataDirection::ALL.map(|direction| {
        let op = match direction {
            DataDirection::Read => paternoster::Op::Read,
            DataDirection::Write => paternoster::Op::Write,
            DataDirection::Trim => paternoster::Op::Discard,
        };
        let stats = sim.groups().iter().map(|&group| sim.elevator().stats().group(group).op(op));
        stats.fold(Served::default(), |sum, of_group| Served {
            requests: sum.requests + of_group.completed,
            merged: sum.merged + of_group.merged,
            took: sum.took + of_group.wait + of_group.service,
        })
    })
}

/// Checks that the device takes what the jobs do, and holds the journal if there is one.
fn check_device(
    jobs: &Jobs,
    journal: Option<JournalPlace>,
    model: &impl Model,
) -> Result<(), JobRunError> {
    jobs.jobs.iter().try_for_each(|job| check(job, model))?;
    journal.map_or(Ok(()), |place| check_journal(place, model.end()))
}

/// Checks that the device takes what the job does.
fn check(job: &Job, model: &impl Model) -> Result<(), JobRunError> {
    use DataDirection::{Read, Trim, Write};
    if job.submission.engine == Engine::Null {
        return Ok(());
    }
    let directions = DataDirection::ALL.into_iter().filter(|direction| job.does(*direction));
    let ops = directions.map(|direction| match direction {
        Read => (Op::Read, "reads"),
        Write => (Op::Write, "writes"),
        Trim => (Op::Discard, "trims"),
    });
    match { ops }.find(|(op, _)| !model.takes(*op)) {
        Some((_, what)) => {
            Err(JobRunError::Device { place: job.place.clone(), job: job.name.clone(), what })
        }
        None => Ok(()),
    }
}

fn check_journal(place: JournalPlace, device_end: Sector) -> Result<(), JobRunError> {
    if place.start + place.sectors > device_end {
        return Err(JobRunError::Journal { place, device_end });
    }
    Ok(())
}

/// The setup with the groups of the jobs.
fn with_groups(setup: &Setup, jobs: &Jobs) -> Setup {
    let group = |group| group_setup(group, setup.scheduler);
    Setup { groups: jobs.groups.iter().map(group).collect(), ..setup.clone() }
}

/// The group with its weights; each is the scheduler's default where the file has none.
fn group_setup(group: &Group, scheduler: SchedulerKind) -> GroupSetup {
    let default = match scheduler {
        SchedulerKind::Cfq => Weight::new(CFQ_DEFAULT_WEIGHT).expect("a weight of CFQ is one"),
        _ => Weight::default(),
    };
    let weight = group.weight.unwrap_or(default);
    let leaf = group.leaf_weight.unwrap_or(default);
    GroupSetup { path: group.path.clone(), weights: Weights { weight, leaf } }
}
