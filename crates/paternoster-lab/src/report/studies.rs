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
}

/// Returns the page of studies; `command` is what repeats them.
pub fn studies_page(command: &str, studies: &[StudyReport]) -> String {
    let names: Vec<_> = studies.iter().map(|study| study.name).collect();
    let title = match names.as_slice() {
        [name] => format!("Study {name}"),
        _ => format!("Studies {}", names.join(", ")),
    };
    let made_by = MADE_BY;
    page(&title, &Data { version: 1, kind: "study", title: &title, made_by, command, studies })
}
