//! From answers to a report: the cells, their errors, and how much the answer moves with each
//! parameter.

use paternoster_scene::statistics::{mean, median};
use serde::Serialize;
use thiserror::Error;

use super::cell::{Cell, Kind};
use super::errors::{Errors, Near, errors};
use super::task::{Answer, Change, TaskName};
use super::{Study, Word, changes};
use crate::report::PageTable;
use paternoster_model::parameter_file::Note;

/// Why answers make no report.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CollectError {
    /// One is not there.
    #[error("there is no answer to {}", told(name))]
    Missing {
        /// To which task.
        name: TaskName,
    },
    /// One lacks a figure.
    #[error("the answer to {} does not say {figure}", told(name))]
    Figure {
        /// To which task.
        name: TaskName,
        /// What it does not say.
        figure: String,
    },
}

fn told(name: &TaskName) -> String {
    let TaskName { study, change, row, run } = name;
    let change = change.as_ref();
    let change = change.map_or_else(String::new, |it| format!(" with {}={}", it.key, it.value));
    format!("run {run} of {study}, {row}{change}")
}

/// The answers to the tasks of one change.
#[derive(Clone, Copy, Debug)]
pub struct Answers<'a> {
    study: &'static str,
    change: Option<&'a Change>,
    all: &'a [Answer],
}

impl<'a> Answers<'a> {
    /// The change that they are of.
    pub(super) fn change(&self) -> Option<&'a Change> {
        self.change
    }

    /// The mean of a figure over all runs of a row.
    pub(super) fn mean(&self, row: &str, runs: u32, figure: &str) -> Result<f64, CollectError> {
        Ok(mean(self.all_runs(row, runs, figure)?))
    }

    /// A figure of each run of a row.
    pub(super) fn all_runs(
        &self,
        row: &str,
        runs: u32,
        figure: &str,
    ) -> Result<Vec<f64>, CollectError> {
        let of_run = |run| {
            let name = || TaskName {
                study: self.study.to_owned(),
                change: self.change.cloned(),
                row: row.to_owned(),
                run,
            };
            let answer = self.all.iter().find(|answer| {
                let TaskName { study, change, row: of, run: number } = &answer.name;
                study == self.study && change.as_ref() == self.change && of == row && *number == run
            });
            let answer = answer.ok_or_else(|| CollectError::Missing { name: name() })?;
            let figure_of = answer.figures.get(figure).copied();
            figure_of
                .ok_or_else(|| CollectError::Figure { name: name(), figure: figure.to_owned() })
        };
        (0..runs).map(of_run).collect()
    }
}

/// What a parameter does to the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Move {
    /// The parameter.
    pub key: String,
    /// Its value in the study, as TOML.
    pub value: String,
    /// How its value is known.
    pub mark: &'static str,
    /// What other values do.
    pub moved: Vec<Moved>,
}

/// What another value of a parameter does to the totals, in percent of what they are without; to
/// latencies and loads where those were published.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// The value.
    pub value: f64,
    /// By how much the median total moves, whatever the direction.
    pub median: f64,
    /// The total that moves most, with its direction.
    pub most: f64,
    /// Which that is.
    pub most_cell: String,
    /// The median error of the totals that are run with it and were not fitted, in percent.
    pub median_error: f64,
}

/// A study's outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyReport {
    /// The study.
    pub name: &'static str,
    /// What it is about.
    pub about: String,
    /// What its short words mean.
    pub words: Vec<Word>,
    /// What has to be known of what was published.
    pub footnotes: Vec<String>,
    /// Every figure.
    pub cells: Vec<Cell>,
    /// The median error of the totals that were not fitted, in percent.
    pub median_error: f64,
    /// Their 90th percentile.
    pub p90_error: f64,
    /// The errors of what was not fitted, of each kind.
    pub errors: Vec<Errors>,
    /// How many of what was not fitted are near to what was published.
    pub near: Near,
    /// How much the answer moves with each parameter that is not known for sure.
    pub moves: Vec<Move>,
    /// What was not published, and is shown beside it.
    pub tables: Vec<PageTable>,
    /// Every parameter, with what is known of it.
    #[serde(serialize_with = "notes")]
    pub parameters: Vec<Note>,
}

fn notes<S: serde::Serializer>(notes: &[Note], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Told<'a> {
        key: &'a str,
        value: &'a str,
        mark: &'static str,
        source: Option<&'a str>,
        bounds: Option<(f64, f64)>,
    }
    to.collect_seq(notes.iter().map(|note| Told {
        key: &note.key,
        value: &note.value,
        mark: super::task::mark_name(note),
        source: note.source.as_deref(),
        bounds: note.bounds,
    }))
}

/// Makes the report of a study from the answers to its tasks. Changes that were not planned are not
/// told of.
pub fn collect(study: &dyn Study, answers: &[Answer]) -> Result<StudyReport, CollectError> {
    let name = study.name();
    let unchanged = Answers { study: name, change: None, all: answers };
    let cells = study.cells(&unchanged)?;
    let tables = study.tables(&unchanged)?;
    let parameters = study.parameters();
    let mut moves: Vec<Move> = Vec::new();
    let is_answered = |change: &Change| {
        answers
            .iter()
            .any(|answer| answer.name.study == name && answer.name.change.as_ref() == Some(change))
    };
    for change in changes(&parameters).into_iter().filter(is_answered) {
        let changed = Answers { study: name, change: Some(&change), all: answers };
        let effect = moved(&cells, &study.cells(&changed)?, change.value);
        let known = moves.last_mut().filter(|last| last.key == change.key);
        if let Some(last) = known {
            last.moved.push(effect);
            continue;
        }
        let note = parameters.iter().find(|note| note.key == change.key);
        let note = note.expect("a change is of a parameter");
        let (value, mark) = (note.value.clone(), super::task::mark_name(note));
        moves.push(Move { key: change.key, value, mark, moved: vec![effect] });
    }
    let errors: Vec<_> = Kind::ALL.into_iter().filter_map(|kind| errors(&cells, kind)).collect();
    let totals = errors.iter().find(|errors| errors.kind == Kind::Total);
    Ok(StudyReport {
        name,
        about: study.about(),
        words: study.words(),
        footnotes: study.footnotes(),
        median_error: totals.map_or(0.0, |totals| totals.median),
        p90_error: totals.map_or(0.0, |totals| totals.p90),
        near: Near::of(cells.iter()),
        cells,
        errors,
        moves,
        tables,
        parameters,
    })
}

fn moved(base: &[Cell], changed: &[Cell], value: f64) -> Moved {
    let totals = changed.iter().filter(|cell| cell.kind.is_main());
    let without = |id: &String| base.iter().find(|cell| cell.id == *id).map(|cell| cell.ours);
    let percent = |cell: &Cell| Some(100.0 * (cell.ours / without(&cell.id)? - 1.0));
    let mut by_size: Vec<_> = totals.filter_map(|cell| Some((percent(cell)?, &cell.id))).collect();
    by_size.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let (most, most_cell) = by_size.last().expect("a study has totals");
    Moved {
        value,
        median: median(by_size.iter().map(|(percent, _)| percent.abs())).unwrap_or(0.0),
        most: *most,
        most_cell: (*most_cell).clone(),
        median_error: errors(changed, Kind::Total).map_or(0.0, |errors| errors.median),
    }
}
