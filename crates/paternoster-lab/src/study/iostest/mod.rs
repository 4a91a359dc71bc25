//! The studies of posts that were measured with iostest: groups of fio jobs share one device, and
//! each row says what every group got.
//!
//! How iostest lays out its files and ends its runs is not documented. What is taken for it is in
//! the study's file, as parameters.

mod file;
mod modes;
mod post;

use std::fmt::Write as _;
use std::path::Path;

use super::cell::{Cell, Kind};
use super::collect::{Answers, CollectError};
use super::task::{Change, JobsWork, Task, TaskName, Work, changed};
use super::{Study, VERSION, Word, words};
use crate::report::PageTable;
use file::StudyFile;
use paternoster_model::parameter_file::{Note, notes};
use paternoster_model::whole_device_file;
use post::{Row, Setting};

/// A study of a post that was measured with iostest.
struct Iostest {
    name: &'static str,
    rows: Vec<Row>,
    /// Its file of parameters, as text and read.
    text: &'static str,
    file: StudyFile,
    /// The file of its device.
    device: String,
    /// Whether the ways to have groups share the device are compared too.
    compares_modes: bool,
}

/// Post 1: groups of weights 100 to 800 on an array.
pub(super) fn group_idle() -> impl Study {
    let post = include_str!("../../../posts/group-idle.csv");
    Iostest::new("group-idle", post, include_str!("../../../studies/group-idle.toml"))
}

/// Post 3: groups of weights 100 to 400 on one disk.
pub(super) fn hierarchy() -> impl Study {
    let post = include_str!("../../../posts/hierarchy.csv");
    let study = Iostest::new("hierarchy", post, include_str!("../../../studies/hierarchy.toml"));
    Iostest { compares_modes: true, ..study }
}

impl Iostest {
    fn new(name: &'static str, post: &str, text: &'static str) -> Self {
        let file = StudyFile::read(Path::new(name), text);
        let file = file.unwrap_or_else(|error| panic!("{error}"));
        let device = whole_device_file(&file.device).expect("its device comes with the laboratory");
        Self { name, rows: post::rows(post), text, file, device, compares_modes: false }
    }

    fn task(&self, setting: &Setting, change: Option<&Change>, run: u32) -> Task {
        let text = changed(self.text, STUDY, change);
        let file = StudyFile::read(Path::new(self.name), &text);
        let file = file.unwrap_or_else(|error| panic!("{error}"));
        let mut tunables = file.tunables.clone();
        tunables.push(("slice_idle".to_owned(), i64::from(setting.slice_idle_ms)));
        let work = JobsWork {
            job: file.job(setting, &self.groups(setting)),
            device: changed(&self.device, DEVICE, change),
            scheduler: "cfq".to_owned(),
            kernel: Some(file.kernel.clone()),
            hierarchy: None,
            tunables,
            hz: file.hz,
            nr_requests: file.nr_requests,
            read_ahead_pages: file.read_ahead_pages,
            copy_page_ns: file.copy_page_ns,
            seed: u64::from(run) + 1,
        };
        let name = TaskName {
            study: self.name.to_owned(),
            change: change.cloned(),
            row: setting.name(),
            run,
        };
        Task { version: VERSION, name, work: Work::Jobs(work) }
    }

    /// The settings that are run with that change: of all that were measured, those that the study
    /// varies parameters with.
    fn settings(&self, change: Option<&Change>) -> Vec<Setting> {
        let mut settings = post::settings(&self.rows);
        if change.is_some() && !self.file.varied.is_empty() {
            settings.retain(|setting| self.file.varied.contains(&setting.name()));
        }
        settings
    }

    fn groups(&self, setting: &Setting) -> Vec<String> {
        post::mean(&self.rows, setting).into_iter().map(|(name, _)| name).collect()
    }

    /// What was published of a row beside what the answers say.
    fn row_cells(
        &self,
        name: &str,
        published: &[(String, f64)],
        answers: &Answers<'_>,
        setting: &Setting,
    ) -> Result<Vec<Cell>, CollectError> {
        let row = setting.name();
        let file = &self.file;
        let is_calibrated = |kind| match kind {
            Kind::Total => file.calibrated.contains(&row),
            Kind::Share => file.weights_from.contains(&row),
            _ => false,
        };
        let cell = |what: &str, kind, seed, ours| Cell {
            id: format!("{name} {what}"),
            seed,
            ours,
            unit: if kind == Kind::Share { "%" } else { "kB/s" },
            calibrated: is_calibrated(kind),
            kind,
            counted: true,
        };
        let figure = |group: &str| answers.mean(&row, self.file.runs, &format!("/{group}"));
        let ours = published.iter().map(|(group, _)| figure(group));
        let ours = ours.collect::<Result<Vec<_>, _>>()?;
        let total = ours.iter().sum::<f64>();
        let seed_total = published.iter().map(|(_, seed)| seed).sum::<f64>();
        let mut cells = vec![cell("total", Kind::Total, seed_total, total)];
        for ((group, seed), ours) in published.iter().zip(&ours) {
            cells.push(cell(group, Kind::Group, *seed, *ours));
            let (seed, ours) = (100.0 * seed / seed_total, 100.0 * ours / total);
            cells.push(cell(&format!("{group} share"), Kind::Share, seed, ours));
        }
        Ok(cells)
    }

    /// By what `slice_idle` multiplies the total of each workload: 8 against 0.
    fn effects(totals: &[(Setting, Cell)]) -> Vec<Cell> {
        let mut effects = Vec::new();
        for (with, idling) in totals.iter().filter(|(setting, _)| setting.slice_idle_ms > 0) {
            let without = Setting { slice_idle_ms: 0, ..with.clone() };
            let Some((_, rushing)) = totals.iter().find(|(setting, _)| *setting == without) else {
                continue;
            };
            effects.push(Cell {
                id: format!("{} NR={} effect of slice_idle", with.workload, with.jobs),
                seed: idling.seed / rushing.seed,
                ours: idling.ours / rushing.ours,
                unit: "x",
                calibrated: idling.calibrated && rushing.calibrated,
                kind: Kind::Effect,
                counted: true,
            });
        }
        effects
    }
}

/// What the keys of parameters begin with: those of the device's file, and those of the study's.
const DEVICE: &str = "device.";
const STUDY: &str = "study.";

impl Study for Iostest {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> String {
        self.file.about.clone()
    }

    fn words(&self) -> Vec<Word> {
        let mut workloads: Vec<_> = self.rows.iter().map(|row| &row.setting).collect();
        workloads.sort();
        workloads.dedup_by_key(|setting| setting.workload.clone());
        let of_workload = |setting: &&Setting| Word {
            word: setting.workload.clone(),
            meaning: setting.workload_in_words(),
        };
        let rest = words(&[
            ("slice_idle", "for how many ms CFQ leaves the disk idle for a reader's next request"),
            ("NR", "the number of readers, or of writers, in each group"),
        ]);
        workloads.iter().map(of_workload).chain(rest).collect()
    }

    fn parameters(&self) -> Vec<Note> {
        let of = |prefix: &'static str, text| {
            notes(text)
                .into_iter()
                .map(move |note| Note { key: format!("{prefix}{}", note.key), ..note })
        };
        of(STUDY, self.text).chain(of(DEVICE, &self.device)).collect()
    }

    fn tasks(&self, change: Option<&Change>) -> Vec<Task> {
        let runs = 0..self.file.runs;
        let settings = self.settings(change);
        let of_post = settings
            .iter()
            .flat_map(|setting| runs.clone().map(|run| self.task(setting, change, run)));
        let compared = self.compares_modes && change.is_none();
        of_post.chain(compared.then(|| self.mode_tasks()).into_iter().flatten()).collect()
    }

    fn tables(&self, answers: &Answers<'_>) -> Result<Vec<PageTable>, CollectError> {
        let compared = self.compares_modes.then(|| self.mode_table(answers));
        Ok(compared.transpose()?.into_iter().collect())
    }

    fn cells(&self, answers: &Answers<'_>) -> Result<Vec<Cell>, CollectError> {
        let mut cells = Vec::new();
        let mut totals = Vec::new();
        for setting in self.settings(answers.change()) {
            let published = post::mean(&self.rows, &setting);
            let row = self.row_cells(&setting.name(), &published, answers, &setting)?;
            totals.push((setting, row[0].clone()));
            cells.extend(row);
        }
        cells.extend(Self::effects(&totals));
        let outliers = self.rows.iter().filter(|row| !row.counted);
        for row in outliers.filter(|_| answers.change().is_none()) {
            let name = format!("{} (table {}, an outlier)", row.setting.name(), row.table);
            let shown = self.row_cells(&name, &row.groups, answers, &row.setting)?;
            cells.extend(shown.into_iter().map(|cell| Cell { counted: false, ..cell }));
        }
        Ok(cells)
    }
}

impl StudyFile {
    /// The job file of a setting. Each group has a file for each of its jobs; the first files of
    /// all groups come before the second ones, each so far behind the one before as the study says.
    fn job(&self, setting: &Setting, groups: &[String]) -> String {
        let mut chars = setting.workload.chars();
        let direct = u32::from(chars.next() == Some('d'));
        let random = if chars.next() == Some('r') { "rand" } else { "" };
        let rw = if chars.next() == Some('w') { "write" } else { "read" };
        let mut job = format!(
            "[global]\nioengine=psync\ndirect={direct}\nrw={random}{rw}\nbs={}k\nsize={}m\n\
             ramp_time={}ms\nruntime={}ms\ntime_based\nfadvise_hint={}\n",
            setting.block_kib,
            self.file_mib,
            self.ramp_ms,
            self.window_ms,
            u32::from(self.advises),
        );
        let mut at_mib = 0;
        for number in 0..setting.jobs {
            for (group, weight) in groups.iter().zip(&self.weights) {
                write!(
                    job,
                    "[{group}.{number}]\n; lab: group=/{group} weight={weight} at={at_mib}m\n\
                     filename={group}.{number}\n"
                )
                .expect("a string takes all");
                at_mib += self.apart_mib;
            }
        }
        job
    }
}
