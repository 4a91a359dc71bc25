//! The page of a run: what it gave, where the device's time went, what was decided, and every
//! parameter of it.

use serde::Serialize;

use super::chronicle::WindowData;
use super::lines::{Level, Line, Lines};
use super::observe::{Observed, counted_from, since_start};
use super::page::{MADE_BY, page};
use super::parameters::{Described, described};
use super::times::{CpuTimes, DeviceTimes, DeviceTimesOverTime};
use crate::fio::Jobs;
use crate::sim::Setup;
use crate::threads::Outcome;

/// A job file.
#[derive(Clone, Debug, Serialize)]
pub struct JobFile {
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A device or a host, as it was named.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// Its name, or the path of its file.
    pub name: String,
    /// The text of its file, if it is text.
    pub text: Option<String>,
}

/// A run that is told.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The command that repeats it.
    pub command: String,
    /// Its job file.
    pub job: JobFile,
    /// Its device; of an array, its disk too.
    pub device: Vec<ModelFile>,
    /// Its host.
    pub host: ModelFile,
    /// What was set beside the tunables, by name.
    pub settings: Vec<(String, String)>,
    /// The seed of all that was drawn.
    pub seed: u64,
    /// The jobs.
    pub jobs: &'a Jobs,
    /// The scheduler with its settings.
    pub setup: &'a Setup,
    /// What came of it.
    pub outcome: &'a Outcome,
    /// What was observed of it.
    pub observed: &'a Observed,
}

/// The data of the page.
#[derive(Serialize)]
struct Data<'a> {
    version: u32,
    kind: &'static str,
    title: &'a str,
    made_by: &'static str,
    command: &'a str,
    scheduler: &'static str,
    weights_count: bool,
    hz: u32,
    seed: u64,
    end_ns: u64,
    counted_from_ns: u64,
    /// For how long all jobs had something to do.
    together_ns: u64,
    /// Whether the run was ended before its jobs were.
    interrupted: bool,
    totals: Line,
    table: Vec<Line>,
    levels: Vec<Level>,
    windows: usize,
    window_ns: u64,
    device_time: DeviceTimes,
    device_windows: DeviceTimesOverTime,
    cpu: Option<CpuTimes>,
    window: WindowData<'a>,
    settings: &'a [(String, String)],
    tunables: Vec<Tunable>,
    rotational: bool,
    device: Vec<Model<'a>>,
    host: Model<'a>,
    job: &'a JobFile,
}

#[derive(Serialize)]
struct Tunable {
    name: &'static str,
    value: i64,
    default: i64,
    unit: &'static str,
    doc: &'static str,
}

#[derive(Serialize)]
struct Model<'a> {
    name: &'a str,
    text: Option<&'a str>,
    #[serde(flatten)]
    described: Described,
}

impl Run<'_> {
    /// Returns the page of the run. The same run gives the same page.
    pub fn page(&self) -> String {
        let Self { setup, outcome, observed, .. } = self;
        let device = self.device.first().map_or("", |device| short(&device.name));
        let title = format!("{} on {device}, {}", short(&self.job.path), setup.scheduler);
        let lines = Lines::new(self.jobs, outcome, observed);
        let data = Data {
            version: 1,
            kind: "run",
            title: &title,
            made_by: MADE_BY,
            command: &self.command,
            scheduler: setup.scheduler.name(),
            weights_count: setup.scheduler.has_weights(),
            hz: setup.hz.ticks_per_s(),
            seed: self.seed,
            end_ns: since_start(outcome.end),
            counted_from_ns: counted_from(self.jobs).as_nanos(),
            together_ns: outcome.results.first().map_or(0, |first| first.together.as_nanos()),
            interrupted: outcome.interrupted,
            windows: lines.windows,
            window_ns: lines.width.as_nanos(),
            totals: lines.totals,
            table: lines.table,
            levels: lines.levels,
            device_time: DeviceTimes::new(&outcome.device),
            device_windows: DeviceTimesOverTime::new(observed.device.ends()),
            cpu: CpuTimes::new(setup, outcome),
            window: observed.chronicle.data(),
            settings: &self.settings,
            tunables: self.tunables(),
            rotational: observed.has_moving_parts,
            device: self.device.iter().map(Model::new).collect(),
            host: Model::new(&self.host),
            job: &self.job,
        };
        page(&title, &data)
    }

    fn tunables(&self) -> Vec<Tunable> {
        let values = &self.outcome.tunables;
        let tunable = |(info, value): &(&paternoster::TunableInfo, i64)| Tunable {
            name: info.name,
            value: *value,
            default: info.default,
            unit: info.unit,
            doc: info.doc,
        };
        values.iter().map(tunable).collect()
    }
}

impl<'a> Model<'a> {
    fn new(file: &'a ModelFile) -> Self {
        let text = file.text.as_deref();
        let described = text.map(described).unwrap_or_default();
        Self { name: &file.name, text, described }
    }
}

/// The last part of a path.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
