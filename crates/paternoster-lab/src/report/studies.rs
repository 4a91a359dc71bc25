//! The page of studies: what was published beside ours.

use serde::Serialize;

use super::page::{MADE_BY, page};
use crate::study::StudyReport;

/// The data of the page.
#[derive(Serialize)]
struct Data<'a> {
    version: u32,
    kind: &'static str,
    title: &'a str,
    made_by: &'static str,
    command: &'a str,
    studies: &'a [StudyReport],
    measured: &'a [PageTable],
}

/// A table that stands on the page as it is: what was measured beside the studies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageTable {
    /// Its title.
    pub title: String,
    /// What is said of it, a paragraph each.
    pub notes: Vec<String>,
    /// The columns; the first names the row.
    pub columns: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// Returns the page of studies, with tables of what was measured; `command` is what repeats them.
pub fn studies_page(command: &str, studies: &[StudyReport], measured: &[PageTable]) -> String {
    let names: Vec<_> = studies.iter().map(|study| study.name).collect();
    let title = match names.as_slice() {
        [] => "Measured".to_owned(),
        [name] => format!("Study {name}"),
        _ => format!("Studies {}", names.join(", ")),
    };
    let made_by = MADE_BY;
    let (version, kind, title) = (1, "study", title.as_str());
    page(title, &Data { version, kind, title, made_by, command, studies, measured })
}
