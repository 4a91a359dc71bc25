//! The study of plugging: what one lock in the submit path cost a machine of 32 processors in 2004,
//! and what the generations after it did, by a model of the locks alone.
//!
//! The generations themselves, with real locks, are in the crate `paternoster-generations`, and are
//! measured by the command line; this part is in virtual time, and the same everywhere.

mod file;
mod model;
mod program;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Kind};
use super::collect::{Answers, CollectError};
use super::task::{Change, Task, TaskError, TaskName, Work, changed};
use super::{Study, VERSION, Word, words};
use crate::report::PageTable;
use file::{Published, StudyFile};
pub use model::{Machine, Predicted, predict};
use paternoster_model::parameter_file::{Note, notes};
pub use program::Generation;

/// What the keys of parameters begin with.
const STUDY: &str = "study.";

/// The figures of a row.
const IOPS: &str = "kIOPS";
const CPU_US: &str = "CPU us";
const SPINNING: &str = "spinning %";

/// What is run.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    machine: fn(&StudyFile) -> Machine,
    generation: Generation,
}

impl Row {
    const fn new(
        name: &'static str,
        machine: fn(&StudyFile) -> Machine,
        generation: Generation,
    ) -> Self {
        Self { name, machine, generation }
    }
}

/// What is set beside the posts.
const PUBLISHED: usize = 9;

/// The rows of the posts, then what the thread objected to.
const ROWS: [Row; 20] = [
    Row::new("32-processors global", |it| it.seed, Generation::Global),
    Row::new("32-processors percpu", |it| it.seed, Generation::PerCpu),
    Row::new("8-processors global", |it| it.second, Generation::Global),
    Row::new("8-processors percpu", |it| it.second, Generation::PerCpu),
    Row::new("8-processors perdev", |it| it.second, Generation::PerDevice),
    Row::new("128-processors mq-deadline", |it| it.null_block, Generation::PlugLock),
    Row::new("128-processors mq-deadline batch", |it| it.null_block, Generation::PlugLockBatch),
    Row::new("128-processors bfq", under_bfq, Generation::PlugLock),
    Row::new("128-processors bfq batch", under_bfq, Generation::PlugLockBatch),
    Row::new("32-processors global list_empty", |it| it.seed, Generation::GlobalListEmpty),
    Row::new("32-processors percpu walk", |it| it.seed, Generation::PerCpuWalk),
    Row::new("8-processors global list_empty", |it| it.second, Generation::GlobalListEmpty),
    Row::new("8-processors percpu walk", |it| it.second, Generation::PerCpuWalk),
    Row::new("32-processors global, 32 devices", |it| with(it, 32), Generation::Global),
    Row::new("32-processors percpu, 32 devices", |it| with(it, 32), Generation::PerCpu),
    Row::new("32-processors global, 320 devices", |it| with(it, 320), Generation::Global),
    Row::new("32-processors percpu, 320 devices", |it| with(it, 320), Generation::PerCpu),
    Row::new("32-processors global, 1000 devices", |it| with(it, 1000), Generation::Global),
    Row::new("32-processors percpu, 1000 devices", |it| with(it, 1000), Generation::PerCpu),
    Row::new("32-processors perdev, 1000 devices", |it| with(it, 1000), Generation::PerDevice),
];

fn under_bfq(file: &StudyFile) -> Machine {
    Machine { device_us: file.bfq_us, ..file.null_block }
}

/// The first machine with another number of devices; the thread says 32 to 1000. Its disks are no
/// limit there, for the locks to be seen.
fn with(file: &StudyFile, devices: u32) -> Machine {
    Machine { devices, disks_iops: None, ..file.seed }
}

/// A row of the study of plugging.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocksWork {
    /// The study's file of parameters.
    pub study: String,
    /// Which row.
    pub row: String,
}

impl LocksWork {
    pub(super) fn run(&self) -> Result<BTreeMap<String, f64>, TaskError> {
        let file = StudyFile::read(Path::new("study"), &self.study);
        let file = file.map_err(|error| TaskError::Value {
            what: "study",
            found: "a file of parameters".to_owned(),
            problem: error.to_string(),
        })?;
        let row = ROWS.iter().find(|row| row.name == self.row);
        let row = row.ok_or_else(|| TaskError::Value {
            what: "row",
            found: self.row.clone(),
            problem: format!("there are: {}", ROWS.map(|row| row.name).join(", ")),
        })?;
        let Predicted { iops, cpu_us, spinning_percent } =
            predict(row.generation, &(row.machine)(&file));
        let figures = [(IOPS, iops / 1e3), (CPU_US, cpu_us), (SPINNING, spinning_percent)];
        Ok(figures.into_iter().map(|(name, figure)| (name.to_owned(), figure)).collect())
    }
}

/// The study.
struct PluggingStudy {
    text: &'static str,
    file: StudyFile,
}

/// Plugging, 2004 and 2025.
pub(super) fn plugging() -> impl Study {
    let text = include_str!("../../../studies/plugging.toml");
    let file = StudyFile::read(Path::new("plugging.toml"), text);
    PluggingStudy { text, file: file.unwrap_or_else(|error| panic!("{error}")) }
}

/// A published figure of a row: the row, the figure, what was published, how it counts.
type Published1 = (&'static str, &'static str, f64, Counts);

/// How a figure counts.
#[derive(Clone, Copy, PartialEq)]
enum Counts {
    Predicted,
    /// A parameter was fitted to it.
    Fitted,
    /// It is said only to be below or above that, or the model is told of it.
    Not,
}

fn figures(published: &Published) -> Vec<Published1> {
    use Counts::{Fitted, Not, Predicted};
    let it = published;
    vec![
        ("32-processors global", IOPS, it.seed_global_iops / 1e3, Fitted),
        ("32-processors global", CPU_US, it.seed_global_cpu_us, Predicted),
        ("32-processors global", SPINNING, it.seed_global_spinning_percent, Predicted),
        ("32-processors percpu", IOPS, it.seed_percpu_iops / 1e3, Not),
        ("32-processors percpu", CPU_US, it.seed_percpu_cpu_us, Fitted),
        ("8-processors global", IOPS, it.second_global_iops / 1e3, Predicted),
        ("8-processors global", CPU_US, it.second_global_cpu_us, Predicted),
        ("8-processors percpu", IOPS, it.second_percpu_iops / 1e3, Predicted),
        ("8-processors percpu", CPU_US, it.second_percpu_cpu_us, Predicted),
        ("8-processors perdev", IOPS, it.second_perdev_iops / 1e3, Not),
        ("8-processors perdev", CPU_US, it.second_perdev_cpu_us, Fitted),
        ("8-processors global", "kIOPS, below", it.second_global_bound_iops / 1e3, Not),
        ("8-processors percpu", "kIOPS, above", it.second_percpu_bound_iops / 1e3, Not),
        ("128-processors mq-deadline", IOPS, it.mq_deadline_iops / 1e3, Fitted),
        ("128-processors mq-deadline batch", IOPS, it.mq_deadline_batch_iops / 1e3, Predicted),
        ("128-processors bfq", IOPS, it.bfq_iops / 1e3, Predicted),
        ("128-processors bfq batch", IOPS, it.bfq_batch_iops / 1e3, Predicted),
    ]
}

impl Study for PluggingStudy {
    fn name(&self) -> &'static str {
        "plugging"
    }

    fn about(&self) -> String {
        self.file.about.clone()
    }

    fn words(&self) -> Vec<Word> {
        words(&[
            ("global", "one list of plugged queues, and one lock, for all devices: Linux 2.6.0"),
            ("percpu", "such a list and a lock for each processor: the patch of the post"),
            ("perdev", "a bit of each device, under the lock of the device: to Linux 2.6.38"),
            ("plug+lock", "a plug of the thread that submits, then the lock of the device"),
            ("plug+rings", "such a plug, then rings to the thread that owns the device"),
            ("off+lock, off+rings", "these two without a plug"),
            ("direct", "no plug, no lock and no other thread"),
            ("mq-deadline, bfq", "schedulers of Linux, under the lock of their device"),
            ("batch", "with several requests dispatched each time the lock is taken"),
            ("kIOPS", "thousand I/Os a second"),
            ("CPU us", "CPU time of an I/O, in µs"),
            ("spinning %", "the part of it in which processors wait for a lock"),
        ])
    }

    fn parameters(&self) -> Vec<Note> {
        let of = |note: Note| Note { key: format!("{STUDY}{}", note.key), ..note };
        notes(self.text).into_iter().map(of).collect()
    }

    fn tasks(&self, change: Option<&Change>) -> Vec<Task> {
        let of_row = |row: &Row| Task {
            version: VERSION,
            name: TaskName {
                study: self.name().to_owned(),
                change: change.cloned(),
                row: row.name.to_owned(),
                run: 0,
            },
            work: Work::Locks(LocksWork {
                study: changed(self.text, STUDY, change),
                row: row.name.to_owned(),
            }),
        };
        // Nothing was published of the others.
        let rows = if change.is_some() { PUBLISHED } else { ROWS.len() };
        ROWS[..rows].iter().map(of_row).collect()
    }

    fn tables(&self, answers: &Answers<'_>) -> Result<Vec<PageTable>, CollectError> {
        let figures = |row: &Row| -> Result<Vec<String>, CollectError> {
            let told = |figure, decimals: usize| {
                let mean = answers.mean(row.name, 1, figure)?;
                Ok(format!("{mean:.decimals$}"))
            };
            Ok(vec![row.name.to_owned(), told(IOPS, 0)?, told(CPU_US, 1)?, told(SPINNING, 0)?])
        };
        let shown = ROWS.iter().filter(|row| !row.name.starts_with("128-"));
        Ok(vec![PageTable {
            title: "What the thread objected to, by the model".to_owned(),
            notes: vec![
                "walk: who needs progress drains the lists of all processors, as all callers but \
                 direct I/O do under the patch. list_empty: the early return on an empty list, \
                 which its author withdrew, as under load some disk is always plugged. The rows of \
                 other numbers of devices (the thread has 32 to 1000) are without the limit of the \
                 disks."
                    .to_owned(),
            ],
            columns: ["row", IOPS, CPU_US, SPINNING].map(str::to_owned).to_vec(),
            rows: shown.map(figures).collect::<Result<_, _>>()?,
        }])
    }

    fn cells(&self, answers: &Answers<'_>) -> Result<Vec<Cell>, CollectError> {
        let cell = |(row, figure, seed, counts): Published1| {
            let is_rate = figure.starts_with(IOPS);
            let ours = answers.mean(row, 1, if is_rate { IOPS } else { figure })?;
            let (unit, kind) = match figure {
                CPU_US => ("µs", Kind::Cost),
                SPINNING => ("%", Kind::Cost),
                _ => (IOPS, Kind::Total),
            };
            Ok(Cell {
                id: format!("{row} {figure}"),
                seed,
                ours,
                unit,
                calibrated: counts == Counts::Fitted,
                kind,
                counted: counts != Counts::Not,
            })
        };
        figures(&self.file.published).into_iter().map(cell).collect()
    }
}
