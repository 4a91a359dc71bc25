//! The answer of `POST /v1/reload`, which reads the configuration's file again.
//!
//! ```text
//!   POST /v1/reload                  kill -HUP
//!   POST /v1/reload?dry_run=true     only answers what that would do
//! ```
//!
//! What may change while clients are served is then as the file says, also what was changed by
//! other requests. The rest is named and stays as it is.

use std::fmt;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::answer::Status;
use crate::stat::Stat;

/// Whether to do what the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadMode {
    /// Do it.
    Apply,
    /// Only answer what it would do.
    DryRun,
}

/// What the file says that is not in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What is in force now that was not; with `dry_run`, what would be.
    pub changed: Vec<Change>,
    /// What stays as it is until a restart.
    pub needs_restart: Vec<Change>,
    /// What goes on: of volumes and exports that the file has no more, clients have time to leave.
    pub under_way: Vec<ReloadNote>,
    /// What could not be done: a volume whose image cannot be opened is not served.
    pub failed: Vec<ReloadNote>,
}

impl ReloadAnswer {
    /// Makes the answer to a request in this mode, by which nothing goes on or has failed.
    pub fn new(mode: ReloadMode, changed: Vec<Change>, needs_restart: Vec<Change>) -> Self {
        let dry_run = mode == ReloadMode::DryRun;
        Self { version: Stat::VERSION, dry_run, changed, needs_restart, ..Self::default() }
    }
}

/// What is told of a volume or an export of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReloadNote {
    /// Which one it is, such as `volume "vm1"`.
    #[serde(rename = "where")]
    pub place: String,
    /// What is told.
    pub why: String,
}

impl ReloadNote {
    pub(crate) fn new(kind: &str, name: &str, why: String) -> Self {
        Self { place: format!("{kind} {name:?}"), why }
    }
}

impl fmt::Display for ReloadNote {
    /// Such as `volume "vm1": its clients have 30s to leave`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

/// One value that the file has and the server has not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Change {
    /// Whose it is, such as `disk "d"`; empty for the server's own.
    #[serde(rename = "where")]
    pub place: String,
    /// The key, as the file has it.
    pub what: String,
    /// The value in force; null where there is none.
    pub from: Value,
    /// The value in the file; null where there is none.
    pub to: Value,
}

impl fmt::Display for Change {
    /// Such as `disk "d": depth 8 -> 16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, what, from, to } = self;
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{what} {} -> {}", Shown(from), Shown(to))
    }
}

/// A value in a line.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("none"),
            value => write!(f, "{value}"),
        }
    }
}

/// Why the server is not as the file says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The server was started from options alone.
    #[error(
        "the server was started without a file that could be read again; `paternoster ctl set` and \
         `paternoster ctl weight` change it while it runs"
    )]
    NoFile,
    /// The file has mistakes, a line each, or cannot be read.
    #[error("nothing has changed, as the file cannot be used:\n{0}")]
    Unusable(String),
    /// A disk that is hung or has ended, found out before anything was changed.
    #[error("disk {disk:?} does not answer; nothing has changed")]
    Unanswered {
        /// Its name.
        disk: String,
    },
    /// A disk that has hung or ended since.
    #[error(
        "disk {disk:?} does not answer; other disks may be as the file says, and this one may \
         become so"
    )]
    Unfinished {
        /// Its name.
        disk: String,
    },
}

impl Status for ReloadError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoFile => StatusCode::CONFLICT,
            Self::Unusable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unanswered { .. } | Self::Unfinished { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn change_is_a_line_and_an_object() {
        let of_disk = Change {
            place: "disk \"d\"".to_owned(),
            what: "scheduler".to_owned(),
            from: json!("cfq"),
            to: json!("bfq"),
        };
        assert_eq!(of_disk.to_string(), "disk \"d\": scheduler \"cfq\" -> \"bfq\"");
        let expected =
            json!({"where": "disk \"d\"", "what": "scheduler", "from": "cfq", "to": "bfq"});
        assert_eq!(serde_json::to_value(&of_disk).expect("string keys"), expected);
        let of_server =
            Change { what: "payload_timeout".to_owned(), from: json!(30), ..Change::default() };
        assert_eq!(of_server.to_string(), "payload_timeout 30 -> none");
    }
}
