//! A run that is watched: the same run, with what a report shows of it over time.

use paternoster::{AnyScheduler, Hierarchy, Instant, Nanos, Recorder};
use paternoster_trace::Decisions;

use super::chronicle::{Chronicle, Lanes, Window};
use super::device_windows::DeviceWindows;
use super::names::Names;
use super::series::Series;
use crate::fio::Jobs;
use crate::result::job_names;
use crate::sim::{Setup, Simulation, TaskId};
use crate::threads::{
    JobRunError, Outcome, PageCacheParameters, Progress, Sinks, Threads, set_up, simulate,
};
use paternoster_model::Model;

/// What is told of a run while it goes on, and what is kept of it.
#[derive(Default)]
pub struct Watch<'a> {
    /// Whose decisions a report shows; those of a second in the middle where there is none.
    pub window: Option<Window>,
    /// Hears every decision, a line of JSON each, as `oracle/FORMAT.md` has them.
    pub lines: Option<&'a mut dyn FnMut(&str)>,
}

/// What a report shows of a run, beside its outcome.
#[derive(Debug)]
pub struct Observed {
    /// What completed over time, by job.
    pub(super) series: Vec<Series>,
    pub(super) device: DeviceWindows,
    pub(super) chronicle: Chronicle,
    pub(super) hierarchy: Option<Hierarchy>,
    pub(super) has_moving_parts: bool,
}

impl Window {
    /// What is shown unless told otherwise: a second in the middle of the shortest run time, or the
    /// first one where no job has a run time.
    pub fn default_for(jobs: &Jobs) -> Self {
        let middle = jobs.jobs.iter().filter_map(|job| {
            let run = &job.run;
            let half = Nanos::new(run.runtime?.as_nanos() / 2);
            Some(run.start_delay + run.ramp_time + half)
        });
        let from = middle.min().unwrap_or(Nanos::ZERO);
        Self { from, to: from + Nanos::from_millis(1000) }
    }
}

/// Runs the jobs as [`run_jobs_into`](crate::threads::run_jobs_into) does, and keeps what a report
/// shows.
pub fn observe_jobs(
    sinks: Sinks,
    jobs: &Jobs,
    setup: &Setup,
    page_cache: PageCacheParameters,
    model: impl Model,
    watch: Watch<'_>,
    progress: impl FnMut(Progress<'_>),
) -> Result<(Outcome, Observed), JobRunError> {
    let Watch { window, mut lines } = watch;
    let window = window.unwrap_or_else(|| Window::default_for(jobs));
    let mut threads = Threads::new(jobs, page_cache);
    threads.keep_series();
    threads.write_into(jobs, sinks);
    let has_moving_parts = model.rotational();
    let mut sim = set_up(jobs, setup, setup.scheduler(Recorder::default())?, threads, model)?;
    let names = names(jobs, &sim);
    let services = sim.workload().services();
    let path = |group: Option<usize>| group.map_or("/", |group| jobs.groups[group].path.as_str());
    let groups = jobs.jobs.iter().map(|job| job.group.as_str());
    let groups: Vec<_> = groups.chain(services.iter().map(|(_, group)| path(*group))).collect();
    let lanes = Lanes::new(&names.jobs, &groups);
    let mut decisions = lines.is_some().then(|| Decisions::new(names.clone()));
    let mut chronicle = Chronicle::new(window, names, lanes, counted_from(jobs));
    let mut device = DeviceWindows::new();
    let outcome = simulate(&mut sim, jobs, setup, progress, |sim| {
        for (at, event) in sim.trace().take() {
            if let (Some(decisions), Some(lines)) = (&mut decisions, &mut lines) {
                decisions.tell(at, event, *lines);
            }
            chronicle.take(at, event);
        }
        device.observe(sim.now(), || sim.device_time());
    })?;
    let observed = Observed {
        series: sim.workload().series(),
        device,
        chronicle,
        hierarchy: sim.elevator().hierarchy(),
        has_moving_parts,
    };
    Ok((outcome, observed))
}

fn names<M: Model>(jobs: &Jobs, sim: &Simulation<Threads, M, AnyScheduler<Recorder>>) -> Names {
    let services = sim.workload().services();
    let services = services.iter().map(|(name, _)| (*name).to_owned());
    let tasks: Vec<_> = job_names(&jobs.jobs).into_iter().chain(services).collect();
    let indices = (0..tasks.len()).zip(0..);
    let by_context = indices.map(|(index, task)| (sim.io_context(TaskId(task)), index)).collect();
    let paths = std::iter::once("/").chain(jobs.groups.iter().map(|group| group.path.as_str()));
    let groups = sim.groups().iter().copied().zip(paths.map(str::to_owned)).collect();
    Names { jobs: tasks, by_context, groups }
}

/// From when on the jobs are counted that start at once.
pub(super) fn counted_from(jobs: &Jobs) -> Nanos {
    let at_once = jobs.jobs.iter().map(|job| &job.run).filter(|run| run.stage == 0);
    at_once.map(|run| run.start_delay + run.ramp_time).min().unwrap_or(Nanos::ZERO)
}

/// The time since the start of the run, in ns.
pub(super) fn since_start(at: Instant) -> u64 {
    at.since_start().as_nanos()
}
