//! Tasks: runs that need nothing but what is written in them.

use std::collections::BTreeMap;
use std::path::Path;

use paternoster::scheduler::Scheduler as _;
use paternoster::{Hz, Nanos, NoTrace};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::VERSION;
use super::hybrid_polling::PollingWork;
use super::plugging::LocksWork;
use super::queue_merging::DbenchWork;
use crate::fio::{Jobs, Surroundings};
use crate::sim::{DeviceTime, Setup};
use crate::threads::{JobRunError, Outcome, PageCacheParameters, run_jobs};
use paternoster_model::parameter_file::{Mark, Note, with_number};
use paternoster_model::{DeviceError, open_device_text};

/// A parameter that is given another value, to see what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: f64,
}

impl Change {
    /// Whether the parameter has that value already.
    pub(super) fn changes_nothing_of(&self, note: &Note) -> bool {
        note.key == self.key && note.value.parse() == Ok(self.value)
    }
}

/// The file with the change made in it, if the change is of that part: the keys of its values begin
/// with `prefix`.
pub(super) fn changed(text: &str, prefix: &str, change: Option<&Change>) -> String {
    let own = change.and_then(|change| Some((change.key.strip_prefix(prefix)?, change.value)));
    match own {
        Some((key, value)) => with_number(text, key, value),
        None => text.to_owned(),
    }
}

/// Which task it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskName {
    /// The study.
    pub study: String,
    /// The parameter that is changed, if one is.
    pub change: Option<Change>,
    /// What is run.
    pub row: String,
    /// The number of the run, from 0: each has draws of its own.
    pub run: u32,
}

/// A run of a study, with all that it needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// [`VERSION`].
    pub version: u32,
    /// Which task it is.
    pub name: TaskName,
    /// What is run.
    pub work: Work,
}

/// What a task runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Jobs of fio.
    Jobs(JobsWork),
    /// dbench.
    Dbench(DbenchWork),
    /// The model of locks.
    Locks(LocksWork),
    /// A thread that waits for a device.
    Polling(PollingWork),
}

/// Jobs of fio over a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobsWork {
    /// The job file.
    pub job: String,
    /// The device's file of parameters.
    pub device: String,
    /// The scheduler, by its name in sysfs.
    pub scheduler: String,
    /// As which kernel it decides.
    pub kernel: Option<String>,
    /// How groups share the device; the kernel's own way if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<String>,
    /// Its tunables that are set, by their names in sysfs.
    pub tunables: Vec<(String, i64)>,
    /// Ticks a second of the kernel's clock.
    pub hz: u32,
    /// How many requests may wait or be in flight.
    pub nr_requests: u32,
    /// The greatest readahead window, in pages.
    pub read_ahead_pages: u64,
    /// How long a page is copied out of the page cache, in ns.
    pub copy_page_ns: u64,
    /// The seed of all draws.
    pub seed: u64,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u32,
    /// Which task it is of.
    pub name: TaskName,
    /// What was measured, by name; kB/s of the groups by their paths.
    pub figures: BTreeMap<String, f64>,
}

/// Why a task has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TaskError {
    /// It was written by another version.
    #[error("version {found} of a task, where {VERSION} is understood")]
    Version {
        /// What was found.
        found: u32,
    },
    /// A value is none.
    #[error("{what} is {found:?}: {problem}")]
    Value {
        /// Which.
        what: &'static str,
        /// What was found.
        found: String,
        /// Why it is none.
        problem: String,
    },
    /// A job ends before it is counted.
    #[error("job {job} ends before it is counted: its ramp_time is longer than it runs")]
    NoTime {
        /// The job.
        job: String,
    },
    /// Its device is none.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] JobRunError),
}

impl Task {
    /// Runs it.
    pub fn run(&self) -> Result<Answer, TaskError> {
        if self.version != VERSION {
            return Err(TaskError::Version { found: self.version });
        }
        let figures = match &self.work {
            Work::Jobs(work) => work.run()?,
            Work::Dbench(work) => work.run()?,
            Work::Locks(work) => work.run()?,
            Work::Polling(work) => work.run()?,
        };
        Ok(Answer { version: VERSION, name: self.name.clone(), figures })
    }
}

impl JobsWork {
    fn run(&self) -> Result<BTreeMap<String, f64>, TaskError> {
        within("nr_requests", self.nr_requests.into(), 1, 100_000)?;
        within("read_ahead_pages", self.read_ahead_pages, 0, 1 << 18)?;
        within("copy_page_ns", self.copy_page_ns, 0, 1_000_000)?;
        let model = open_device_text(Path::new("device"), &self.device, self.seed)?;
        let jobs = self.jobs(model.end().0.saturating_mul(512).min(1 << 63))?;
        let page_cache = PageCacheParameters {
            read_ahead_pages: self.read_ahead_pages,
            copy_page: Nanos::new(self.copy_page_ns),
            ..PageCacheParameters::default()
        };
        let outcome = run_jobs(&jobs, &self.setup()?, page_cache, model, |_| {})?;
        figures(&jobs, &outcome)
    }

    fn setup(&self) -> Result<Setup, TaskError> {
        let mut setup = Setup::new(parsed("scheduler", &self.scheduler)?);
        let kernel = self.kernel.as_ref();
        setup.kernel = kernel.map(|kernel| parsed("kernel", kernel)).transpose()?;
        let hierarchy = self.hierarchy.as_ref();
        setup.hierarchy = hierarchy.map(|mode| parsed("hierarchy", mode)).transpose()?;
        let scheduler = setup.scheduler(NoTrace).map_err(JobRunError::from)?;
        for (name, value) in &self.tunables {
            let known = scheduler.tunables().iter().find(|info| info.name == name);
            known.map_or(Ok(()), |info| info.accepts(*value)).map_err(|problem| {
                let found = format!("{name}={value}");
                TaskError::Value { what: "a tunable", found, problem: problem.to_string() }
            })?;
        }
        setup.tunables.clone_from(&self.tunables);
        setup.hz = Hz::new(self.hz).ok_or_else(|| TaskError::Value {
            what: "hz",
            found: self.hz.to_string(),
            problem: "1 to 1000 is allowed, where a tick is a whole number of ns".to_owned(),
        })?;
        setup.nr_requests = Some(self.nr_requests);
        Ok(setup)
    }

    fn jobs(&self, device_bytes: u64) -> Result<Jobs, TaskError> {
        let surroundings = Surroundings::without_files(device_bytes, self.seed);
        Jobs::parse("job", self.job.as_bytes(), &surroundings).map_err(|error| TaskError::Value {
            what: "job",
            found: self.job.lines().next().unwrap_or_default().to_owned(),
            problem: error.to_string(),
        })
    }
}

/// Checks that a number is in its range.
fn within(what: &'static str, number: u64, least: u64, most: u64) -> Result<(), TaskError> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let problem = format!("{least} to {most} is allowed");
    Err(TaskError::Value { what, found: number.to_string(), problem })
}

pub(super) fn parsed<T>(what: &'static str, text: &str) -> Result<T, TaskError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|problem: T::Err| TaskError::Value {
        what,
        found: text.to_owned(),
        problem: problem.to_string(),
    })
}

/// The bandwidth of each group in kB/s (of 1024 bytes, as fio says it), and in how many percent of
/// the time the device was busy, withheld and without work.
#[allow(clippy::cast_precision_loss)] // rates are told with 53 bits
fn figures(jobs: &Jobs, outcome: &Outcome) -> Result<BTreeMap<String, f64>, TaskError> {
    let mut figures = BTreeMap::new();
    for (job, result) in jobs.jobs.iter().zip(&outcome.results) {
        let bytes: u64 = result.directions.iter().map(|direction| direction.bytes).sum();
        if result.runtime == Nanos::ZERO {
            return Err(TaskError::NoTime { job: job.name.clone() });
        }
        let seconds = result.runtime.as_nanos() as f64 / 1e9;
        *figures.entry(job.group.clone()).or_default() += bytes as f64 / 1024.0 / seconds;
    }
    figures.extend(time_figures(&outcome.device));
    Ok(figures)
}

/// In how many percent of the time the device was busy, withheld and without work.
#[allow(clippy::cast_precision_loss)] // rates are told with 53 bits
pub(super) fn time_figures(time: &DeviceTime) -> BTreeMap<String, f64> {
    let all = (time.busy + time.withheld + time.without_work).as_nanos() as f64;
    [("busy", time.busy), ("withheld", time.withheld), ("without work", time.without_work)]
        .into_iter()
        .map(|(name, span)| (name.to_owned(), 100.0 * span.as_nanos() as f64 / all))
        .collect()
}

/// The mark of a value, for what is told of it.
pub(super) fn mark_name(note: &Note) -> &'static str {
    note.mark.map_or("", Mark::name)
}
