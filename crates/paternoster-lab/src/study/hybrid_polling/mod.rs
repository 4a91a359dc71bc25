//! The study of hybrid polling: what the post of 2017 measured, and what other ways to wait make of
//! the same device and of others.
//!
//! The policies are the core's own ([`paternoster::poll`]), over a thread and devices in virtual
//! time. Rows 1 to 3 of the post are fitted to, rows 4 to 6 predicted.

mod figures;
mod file;
mod law;
mod policies;
mod simulate;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use paternoster_scene::statistics::{Spread, mean};
use serde::{Deserialize, Serialize};

use super::cell::{Cell, Kind};
use super::collect::{Answers, CollectError};
use super::task::{Change, Task, TaskError, TaskName, Work, changed};
use super::{Study, VERSION, Word, words};
use crate::report::PageTable;
use figures::{CPU, Figures, LATENCY, LOAD, MISSES, P99, SLEPT};
use file::{Device, StudyFile};
use paternoster_model::parameter_file::{Note, notes};
use policies::{MORE, WAYS, Way, post_rows};
use simulate::simulate;

/// What the keys of parameters begin with.
const STUDY: &str = "study.";
/// The way whose figures are a bound, not those of a policy.
const BOUND: &str = "bound";

/// A row of the study of hybrid polling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PollingWork {
    /// The study's file of parameters.
    pub study: String,
    /// The device, by its name there.
    pub device: String,
    /// How it is waited for: a row of the post, or a policy.
    pub way: String,
    /// The seed of all draws.
    pub seed: u64,
}

impl PollingWork {
    pub(super) fn run(&self) -> Result<BTreeMap<String, f64>, TaskError> {
        let wrong = |what, found: &str, problem: String| TaskError::Value {
            what,
            found: found.to_owned(),
            problem,
        };
        let file = StudyFile::read(Path::new("study"), &self.study)
            .map_err(|error| wrong("study", "a file of parameters", error.to_string()))?;
        let device = file.devices.iter().find(|device| device.name == self.device);
        let device = device.ok_or_else(|| {
            let names: Vec<_> = file.devices.iter().map(|device| device.name.as_str()).collect();
            wrong("device", &self.device, format!("there are: {}", names.join(", ")))
        })?;
        if self.way == BOUND {
            let classic = ios(&file, device, &WAYS[0], self.seed);
            return Ok(Figures::bound(&classic, &device.machine).named());
        }
        let way = way(&self.way)
            .ok_or_else(|| wrong("way", &self.way, "there is no such policy".to_owned()))?;
        Ok(Figures::of(&ios(&file, device, &way, self.seed)).named())
    }
}

fn way(name: &str) -> Option<Way> {
    let known = WAYS.into_iter().chain(MORE).find(|way| way.name == name);
    known.or_else(|| Some(post_rows().iter().find(|row| row.name() == name)?.way()))
}

/// The I/Os that are counted.
fn ios(file: &StudyFile, device: &Device, way: &Way, seed: u64) -> Vec<simulate::Io> {
    let Device { machine, streams, .. } = device;
    simulate(machine, streams, way.policy, way.completions, file.length, seed).ios
}

/// The study.
struct HybridPollingStudy {
    text: &'static str,
    file: StudyFile,
}

/// Hybrid polling, 2017.
pub(super) fn hybrid_polling() -> impl Study {
    let text = include_str!("../../../studies/hybrid-polling.toml");
    let file = StudyFile::read(Path::new("hybrid-polling.toml"), text);
    HybridPollingStudy { text, file: file.unwrap_or_else(|error| panic!("{error}")) }
}

/// A device and how it is waited for, and the name of both.
struct Row {
    device: String,
    way: String,
}

impl Row {
    fn name(&self) -> String {
        format!("{} {}", self.device, self.way)
    }
}

impl HybridPollingStudy {
    /// The rows of the post, which are run with each parameter changed, too.
    fn post(&self) -> Vec<Row> {
        let device = &self.file.devices[0].name;
        let row = |way| Row { device: device.clone(), way };
        post_rows().iter().map(|post| row(post.name())).collect()
    }

    /// The ways to wait for each device.
    fn compared(&self) -> Vec<Row> {
        let of_device = |(number, device): (usize, &Device)| {
            let more = if number == 0 { &MORE[..] } else { &[] };
            let bound = (device.streams.len() == 1).then_some(BOUND);
            let ways = WAYS.iter().chain(more).map(|way| way.name).chain(bound);
            let row = |way: &str| Row { device: device.name.clone(), way: way.to_owned() };
            ways.map(row).collect::<Vec<_>>()
        };
        self.file.devices.iter().enumerate().flat_map(of_device).collect()
    }

    /// A table of a device: the mean of each figure over all runs, and where these lie.
    fn table(&self, device: &Device, answers: &Answers<'_>) -> Result<PageTable, CollectError> {
        let mut rows = Vec::new();
        for row in self.compared().into_iter().filter(|row| row.device == device.name) {
            let figure = |name, decimals: usize| -> Result<String, CollectError> {
                let all = answers.all_runs(&row.name(), self.file.runs, name)?;
                let mean = mean(all.iter().copied());
                let Spread { least, most, .. } = Spread::of(all).expect("there are runs");
                Ok(format!("{mean:.decimals$} ({least:.decimals$} to {most:.decimals$})"))
            };
            rows.push(vec![
                row.way.clone(),
                figure(LATENCY, 2)?,
                figure(P99, 2)?,
                figure(CPU, 2)?,
                figure(LOAD, 1)?,
                figure(MISSES, 1)?,
                figure(SLEPT, 1)?,
            ]);
        }
        let held = if device.seen { "" } else { "; not looked at while `auto` was made" };
        let Device { name, about, .. } = device;
        Ok(PageTable {
            title: format!("{name}: {about}{held}"),
            notes: vec![format!(
                "Simulated: the mean of {} runs, and the least to the greatest. Misses are of \
                 the I/Os that somebody slept for. bound: nobody who sleeps once for an I/O uses \
                 less CPU time without adding latency.",
                self.file.runs
            )],
            columns: ["way", "latency µs", "p99 µs", "CPU µs/I/O", "load %", "misses %", "slept %"]
                .map(str::to_owned)
                .to_vec(),
            rows,
        })
    }
}

impl Study for HybridPollingStudy {
    fn name(&self) -> &'static str {
        "hybrid-polling"
    }

    fn about(&self) -> String {
        self.file.about.clone()
    }

    fn footnotes(&self) -> Vec<String> {
        [
            "Row 4, with adjust=1000, is printed with a delay of 9 in the post, which can only \
             be 0: use_min and adjust say nothing of a delay that is set.",
            "The post's text has loads of 59 % and 38 % where its table has 57 and 34. The \
             table is what ours is set beside.",
        ]
        .map(str::to_owned)
        .into()
    }

    fn words(&self) -> Vec<Word> {
        words(&[
            (
                "io_poll_delay",
                "for how many µs the thread sleeps before it polls; at 0 for half of the mean time \
                 of such an I/O, and at -1 not at all",
            ),
            ("min", "it sleeps for the shortest time of such an I/O, where that is longer"),
            ("adjust", "by how many ns it sleeps less"),
            ("p99", "99 % of the I/Os took no longer"),
            ("load", "the part of a CPU that the thread uses"),
            ("classic", "it polls all the time"),
            ("mean/2, 0.6 mean, 3/4 mean", "it sleeps for that part of the mean time"),
            ("io_uring", "it sleeps as hybrid polling of io_uring does"),
            ("auto", "it learns for how long to sleep, as this project does"),
            ("interrupt", "it sleeps until the device says that it is done"),
            ("stamped", "the device notes when each I/O is complete"),
            ("misses", "I/Os that were complete before the sleep was over"),
            ("slept", "I/Os for which the thread slept"),
        ])
    }

    fn parameters(&self) -> Vec<Note> {
        let of = |note: Note| Note { key: format!("{STUDY}{}", note.key), ..note };
        notes(self.text).into_iter().map(of).collect()
    }

    fn tasks(&self, change: Option<&Change>) -> Vec<Task> {
        let text = changed(self.text, STUDY, change);
        let of_row = |row: &Row, run| Task {
            version: VERSION,
            name: TaskName {
                study: self.name().to_owned(),
                change: change.cloned(),
                row: row.name(),
                run,
            },
            work: Work::Polling(PollingWork {
                study: text.clone(),
                device: row.device.clone(),
                way: row.way.clone(),
                seed: u64::from(run) + 1,
            }),
        };
        let compared = if change.is_none() { self.compared() } else { Vec::new() };
        let rows = self.post().into_iter().chain(compared);
        rows.flat_map(|row| {
            (0..self.file.runs).map(move |run| of_row(&row, run)).collect::<Vec<_>>()
        })
        .collect()
    }

    fn cells(&self, answers: &Answers<'_>) -> Result<Vec<Cell>, CollectError> {
        let mut cells = Vec::new();
        for (post, row) in post_rows().iter().zip(self.post()) {
            let figures = [
                (LATENCY, post.latency_us, "µs", Kind::Latency),
                (LOAD, post.load_percent, "%", Kind::Load),
            ];
            for (figure, seed, unit, kind) in figures {
                cells.push(Cell {
                    id: format!("{} {}", post.name(), kind.name()),
                    seed,
                    ours: answers.mean(&row.name(), self.file.runs, figure)?,
                    unit,
                    calibrated: post.is_fitted(),
                    kind,
                    counted: true,
                });
            }
        }
        Ok(cells)
    }

    fn tables(&self, answers: &Answers<'_>) -> Result<Vec<PageTable>, CollectError> {
        self.file.devices.iter().map(|device| self.table(device, answers)).collect()
    }
}
