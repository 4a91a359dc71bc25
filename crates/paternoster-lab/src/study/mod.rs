//! Studies: what others have measured and published, and what the laboratory makes of the same.
//!
//! ```text
//!   posts/NAME.csv     what was published ─────────────────────────────┐
//!   studies/NAME.toml  how it was measured ─┐                          ▼
//!   devices/NAME.toml  on what ─────────────┴▶ tasks ─▶ answers ─▶ collect ─▶ StudyReport
//! ```
//!
//! A task needs nothing but itself, so any machine can run it; the same task gives the same answer.
//! Besides the runs that are set against what was published, there are those that show how much the
//! answer moves with each parameter that is not known for sure.
//!
//! Parameters are fitted to the cells that are marked as calibrated and to no others. Errors are
//! told of the rest.

mod cell;
mod collect;
mod errors;
mod hybrid_polling;
mod iostest;
mod plugging;
mod queue_merging;
mod task;
mod text;

use serde::Serialize;

use crate::report::PageTable;
use paternoster_model::parameter_file::{Mark, Note};

pub use cell::{Cell, Kind};
pub use collect::{CollectError, Move, Moved, StudyReport, collect};
pub use errors::{Aim, Errors, Near};
pub use hybrid_polling::PollingWork;
pub use plugging::{Generation, LocksWork, Machine, Predicted, predict};
pub use queue_merging::DbenchWork;
pub use task::{Answer, Change, JobsWork, Task, TaskError, TaskName, Work};
pub use text::text;

use collect::Answers;

/// The version of what is written: tasks, answers and reports.
pub const VERSION: u32 = 1;

/// A short word of a study's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// The word, as `NR`.
    pub word: String,
    /// What it is.
    pub meaning: String,
}

/// Each word with its meaning.
fn words(all: &[(&str, &str)]) -> Vec<Word> {
    let word = |(word, meaning): &(&str, &str)| Word {
        word: (*word).to_owned(),
        meaning: (*meaning).to_owned(),
    };
    all.iter().map(word).collect()
}

/// A study.
pub trait Study: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What it is about, in a line.
    fn about(&self) -> String;

    /// What its figures and ways are called by for short, with what each is.
    fn words(&self) -> Vec<Word>;

    /// What has to be known of what was published, a sentence or two each.
    fn footnotes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Its parameters, with what is known of each. Their keys begin with the part that they belong
    /// to, as `device.`.
    fn parameters(&self) -> Vec<Note>;

    /// What has to be run, with one parameter changed or none.
    fn tasks(&self, change: Option<&Change>) -> Vec<Task>;

    /// What was published beside what the answers to the tasks of one change say.
    fn cells(&self, answers: &Answers<'_>) -> Result<Vec<Cell>, CollectError>;

    /// What was not published, and is shown beside it.
    fn tables(&self, _answers: &Answers<'_>) -> Result<Vec<PageTable>, CollectError> {
        Ok(Vec::new())
    }
}

/// The studies, in the order of their posts.
pub fn studies() -> Vec<Box<dyn Study>> {
    vec![
        Box::new(plugging::plugging()),
        Box::new(iostest::group_idle()),
        Box::new(iostest::hierarchy()),
        Box::new(hybrid_polling::hybrid_polling()),
        Box::new(queue_merging::queue_merging()),
    ]
}

/// How much of a study is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What is set beside the post.
    Cells,
    /// That, and what shows how much the answer moves with each parameter.
    Whole,
}

/// What has to be run for a study.
pub fn plan(study: &dyn Study, extent: Extent) -> Vec<Task> {
    let changes = match extent {
        Extent::Cells => Vec::new(),
        Extent::Whole => changes(&study.parameters()),
    };
    let with_one = changes.iter().flat_map(|change| study.tasks(Some(change)));
    study.tasks(None).into_iter().chain(with_one).collect()
}

/// Each parameter that is not known for sure, at its least and at its greatest.
fn changes(parameters: &[Note]) -> Vec<Change> {
    let unsure =
        |note: &&Note| matches!(note.mark, Some(Mark::Fitted | Mark::Guess | Mark::Inferred));
    let bounded = parameters.iter().filter(unsure).filter_map(|note| Some((note, note.bounds?)));
    let both = bounded.flat_map(|(note, (least, most))| [(note, least), (note, most)]);
    both.map(|(note, value)| Change { key: note.key.clone(), value })
        .filter(|change| parameters.iter().all(|note| !change.changes_nothing_of(note)))
        .collect()
}
