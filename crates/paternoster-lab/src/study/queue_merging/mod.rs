//! The study of post 5: what merging queues costs BFQ on a fast device, and what BFQ's work for a
//! request is, beside mq-deadline's.
//!
//! One value is fitted, the drive's time for a flush, to the throughput of the other schedulers.
//! What BFQ does with and without merging is predicted.

mod file;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use paternoster::{NoTrace, SchedulerKind, Sector, parse_tunable};
use serde::{Deserialize, Serialize};

use super::cell::{Cell, Kind};
use super::collect::{Answers, CollectError};
use super::task::{Change, Task, TaskError, TaskName, Work, changed, parsed, time_figures};
use super::{Study, VERSION, Word, words};
use crate::dbench::{Dbench, DbenchParameters};
use crate::host::{Host, host_file};
use crate::sim::{Setup, Simulation};
use file::{Instructions, StudyFile};
use paternoster_model::parameter_file::{Note, ParameterError, notes};
use paternoster_model::{open_device_text, whole_device_file};

/// What the keys of parameters begin with.
const STUDY: &str = "study.";
const DEVICE: &str = "device.";

/// What of the device is told and varied: the load moves with the rest by less than 4 %.
const TOLD: &str = "device.write_buffer.flush_us";

/// What is run.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    scheduler: SchedulerKind,
    merges_queues: bool,
    finds_wakers: bool,
}

/// The post's rows, and the last one as it would be since Linux 5.3.
const ROWS: [Row; 4] = [
    Row::new("mq-deadline", SchedulerKind::MqDeadline, false, false),
    Row::new("bfq", SchedulerKind::Bfq, false, false),
    Row::new("bfq merging", SchedulerKind::Bfq, true, false),
    Row::new("bfq merging with wakers", SchedulerKind::Bfq, true, true),
];

impl Row {
    const fn new(
        name: &'static str,
        scheduler: SchedulerKind,
        merges_queues: bool,
        finds_wakers: bool,
    ) -> Self {
        Self { name, scheduler, merges_queues, finds_wakers }
    }
}

/// The rows that are run with a parameter changed: those that are held against the post.
fn rows(change: Option<&Change>) -> impl Iterator<Item = Row> {
    let is_changed = change.is_some();
    ROWS.into_iter().filter(move |row| !is_changed || !row.finds_wakers)
}

/// The figure of a row.
const MB_PER_S: &str = "MB/s";

/// dbench over a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DbenchWork {
    /// The study's file of parameters.
    pub study: String,
    /// The device's file of parameters.
    pub device: String,
    /// The host's file of parameters.
    pub host: String,
    /// The scheduler, by its name in sysfs.
    pub scheduler: String,
    /// Whether BFQ merges queues on this device, which does not rotate.
    pub merges_queues: bool,
    /// Whether it finds wakers, which the post's kernel did not.
    pub finds_wakers: bool,
    /// The seed of all draws.
    pub seed: u64,
}

impl DbenchWork {
    pub(super) fn run(&self) -> Result<BTreeMap<String, f64>, TaskError> {
        let wrong = |what, problem: ParameterError| TaskError::Value {
            what,
            found: "a file of parameters".to_owned(),
            problem: problem.to_string(),
        };
        let file = StudyFile::read(Path::new("study"), &self.study);
        let file = file.map_err(|error| wrong("study", error))?;
        let host = Host::from_toml(Path::new("host"), &self.host);
        let host = host.map_err(|error| wrong("host", error))?;
        let device = open_device_text(Path::new("device"), &self.device, self.seed)?;
        check_places(&file.load, device.end())?;
        let mut setup = Setup::new(parsed("scheduler", &self.scheduler)?);
        if self.merges_queues {
            let everywhere = parse_tunable("merging", "everywhere").expect("BFQ has it");
            setup.tunables.push(("merging".to_owned(), everywhere));
        }
        setup.finds_wakers = self.finds_wakers;
        host.set_up(&mut setup, device.as_ref());
        let load = DbenchParameters { seed: self.seed, ..file.load };
        let mut sim = Simulation::new(&setup, Dbench::new(load), device, NoTrace)
            .map_err(crate::threads::JobRunError::from)?;
        sim.run().map_err(crate::threads::JobRunError::from)?;
        let mut figures = time_figures(&sim.device_time());
        figures.insert(MB_PER_S.to_owned(), sim.workload().bytes_per_s() / 1e6);
        Ok(figures)
    }
}

/// Files and journal have places of their own on the device.
fn check_places(load: &DbenchParameters, end: Sector) -> Result<(), TaskError> {
    let wrong = |found: &Range<Sector>, problem| TaskError::Value {
        what: "layout, in sectors,",
        found: format!("{} to {}", found.start.0, found.end.0),
        problem,
    };
    let [files, journal] = load.ranges();
    for range in [&files, &journal] {
        if range.end > end {
            return Err(wrong(range, format!("the device has {} sectors", end.0)));
        }
    }
    if files.start < journal.end && journal.start < files.end {
        let problem = format!("the files have {} to {}", files.start.0, files.end.0);
        return Err(wrong(&journal, problem));
    }
    Ok(())
}

/// The study.
struct QueueMergingStudy {
    text: &'static str,
    file: StudyFile,
    device: String,
    host: &'static str,
}

/// Post 5: queue merging on a device that queues and does not rotate.
pub(super) fn queue_merging() -> impl Study {
    let text = include_str!("../../../studies/queue-merging.toml");
    let file = StudyFile::read(Path::new("queue-merging.toml"), text);
    let file = file.unwrap_or_else(|error| panic!("{error}"));
    let device = whole_device_file(&file.device).expect("its device comes with the laboratory");
    let host = host_file(&file.host).expect("its host comes with the laboratory");
    QueueMergingStudy { text, file, device, host }
}

impl QueueMergingStudy {
    /// Rates, and by what merging multiplies them.
    fn rates(&self, answers: &Answers<'_>) -> Result<Vec<Cell>, CollectError> {
        let published = self.file.published;
        let mut cells = Vec::new();
        for row in rows(answers.change()) {
            let seed = match row.scheduler {
                SchedulerKind::Bfq if row.merges_queues => published.merging_mb_per_s,
                SchedulerKind::Bfq => published.bfq_mb_per_s,
                _ => published.peak_mb_per_s,
            };
            cells.push(Cell {
                id: row.name.to_owned(),
                seed,
                ours: answers.mean(row.name, self.file.runs, MB_PER_S)?,
                unit: MB_PER_S,
                calibrated: row.scheduler == SchedulerKind::MqDeadline,
                kind: Kind::Total,
                counted: !row.finds_wakers,
            });
        }
        let (apart, merging) = (&cells[1], &cells[2]);
        cells.push(Cell {
            id: "effect of merging".to_owned(),
            seed: merging.seed / apart.seed,
            ours: merging.ours / apart.ours,
            unit: "x",
            calibrated: false,
            kind: Kind::Effect,
            counted: true,
        });
        Ok(cells)
    }

    /// The work of BFQ as a multiple of mq-deadline's, published as time under the lock, and ours
    /// as instructions beyond those that there are without a scheduler.
    fn cost(&self) -> Cell {
        let published = self.file.published;
        let ours = Instructions::pinned();
        Cell {
            id: "work of bfq by mq-deadline's".to_owned(),
            seed: published.bfq_lock_us / published.mq_deadline_lock_us,
            ours: (ours.bfq - ours.none) / (ours.mq_deadline - ours.none),
            unit: "x",
            calibrated: false,
            kind: Kind::Cost,
            counted: true,
        }
    }

    /// What merging is of BFQ's work, in percent.
    fn cost_of_merging() -> Cell {
        let ours = Instructions::pinned();
        Cell {
            id: "work of bfq with merging by bfq's".to_owned(),
            // "About 10 %" of the work with it.
            seed: 1.0 / 0.9,
            ours: (ours.bfq_merging - ours.none) / (ours.bfq - ours.none),
            unit: "x",
            calibrated: false,
            kind: Kind::Cost,
            counted: true,
        }
    }
}

impl Study for QueueMergingStudy {
    fn name(&self) -> &'static str {
        "queue-merging"
    }

    fn about(&self) -> String {
        self.file.about.clone()
    }

    fn words(&self) -> Vec<Word> {
        words(&[
            ("merging", "the scheduler serves tasks that read near each other from one queue"),
            (
                "wakers",
                "tasks that another task waits for: bfq serves them while it idles for that \
                 task's next request",
            ),
            ("work", "CPU time of the scheduler for a request"),
        ])
    }

    fn parameters(&self) -> Vec<Note> {
        let of = |prefix: &'static str, text: &str| {
            let own = move |note: Note| Note { key: format!("{prefix}{}", note.key), ..note };
            notes(text).into_iter().map(own)
        };
        let told = of(DEVICE, &self.device).filter(|note| note.key == TOLD);
        of(STUDY, self.text).chain(told).collect()
    }

    fn tasks(&self, change: Option<&Change>) -> Vec<Task> {
        let of_row = |row: Row, run| Task {
            version: VERSION,
            name: TaskName {
                study: self.name().to_owned(),
                change: change.cloned(),
                row: row.name.to_owned(),
                run,
            },
            work: Work::Dbench(DbenchWork {
                study: changed(self.text, STUDY, change),
                device: changed(&self.device, DEVICE, change),
                host: self.host.to_owned(),
                scheduler: row.scheduler.name().to_owned(),
                merges_queues: row.merges_queues,
                finds_wakers: row.finds_wakers,
                seed: u64::from(run) + 1,
            }),
        };
        let runs = 0..self.file.runs;
        rows(change).flat_map(|row| runs.clone().map(move |run| of_row(row, run))).collect()
    }

    fn cells(&self, answers: &Answers<'_>) -> Result<Vec<Cell>, CollectError> {
        let mut cells = self.rates(answers)?;
        cells.extend([self.cost(), Self::cost_of_merging()]);
        Ok(cells)
    }
}
