//! The body and the answer of `PUT /v1/disks/settings`, which changes what is set of a disk.
//!
//! ```text
//!   {"disk": "vda", "set": {"scheduler": "bfq"}}          echo bfq > queue/scheduler
//!   {"disk": "vda", "set": {"scheduler": "auto"}}         what fits the disk
//!   {"disk": "vda", "set": {"slice_idle": 4}}             echo 4 > queue/iosched/slice_idle
//!   {"disk": "vda", "set": {"scheduler": "mq-deadline", "fifo_batch": 8, "depth": 16}}
//!   {"disk": "vda", "set": {"poll": "hybrid", "io_poll_delay": 0}}
//!                                                         echo 0 > queue/io_poll_delay
//!   {"disk": "vda", "set": {"hierarchy": "entities"}}     or {"use_hierarchy": 1}
//! ```
//!
//! All of it is checked first, against the scheduler that is to be in force; then all of it is
//! done, between two requests, or nothing. The order in which tunables are written is the order in
//! which they are set. A change holds until the server ends or reads its file again.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::StatusCode;
use paternoster::SchedulerKind;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use super::answer::{OnDisks, Status};
use super::trace::UnknownDisk;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskChange {
    /// The disk's name.
    pub disk: String,
    /// What to set.
    pub set: Settings,
}

/// Names and values in the order in which they were written. What may be set are the keys of a disk
/// that may change, with values as in the file; `use_hierarchy` and 0 (flat) or 1 (entities); and
/// tunables, with a number in their unit, or one of their words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(pub Vec<(String, Value)>);

impl Settings {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl<N: Into<String>> FromIterator<(N, Value)> for Settings {
    fn from_iter<I: IntoIterator<Item = (N, Value)>>(settings: I) -> Self {
        Self(settings.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

/// Keeps the order of an object's keys, and those that are there twice.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut settings = Vec::new();
        while let Some(entry) = map.next_entry()? {
            settings.push(entry);
        }
        Ok(Settings(settings))
    }
}

/// What is in force on the disks that were asked about.
pub type SettingsAnswer = OnDisks<SettingsInForce>;

/// What is set of one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsInForce {
    /// The disk's name.
    pub disk: String,
    /// The keys that may change, as they are in force. `scheduler` is the one in force, also where
    /// `auto` has chosen it, as `scheduler_auto` then says.
    pub settings: Settings,
    /// The scheduler's tunables, each in its own unit.
    pub tunables: BTreeMap<String, i64>,
    /// The keys that change with a restart.
    pub at_start: Settings,
}

impl SettingsInForce {
    /// The scheduler that is in force.
    pub(crate) fn scheduler(&self) -> SchedulerKind {
        let name = self.settings.get("scheduler").and_then(Value::as_str).unwrap_or_default();
        name.parse().expect("the server has this scheduler")
    }
}

/// Why a disk's settings stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum SettingError {
    /// A disk that there is not.
    #[error(transparent)]
    UnknownDisk(#[from] UnknownDisk),
    /// A change of nothing.
    #[error(
        "nothing is set; NAME=VALUE is allowed, with scheduler, depth, poll or a tunable as NAME"
    )]
    Nothing,
    /// Names and values that are not allowed.
    #[error("{0}")]
    Refused(String),
    /// A disk that is hung or has ended.
    #[error("disk {disk:?} does not answer; its settings may still change")]
    Unanswered { disk: String },
}

impl Status for SettingError {
    fn status(&self) -> StatusCode {
        match self {
            Self::UnknownDisk(_) => StatusCode::NOT_FOUND,
            Self::Unanswered { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Nothing | Self::Refused(_) => StatusCode::BAD_REQUEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_from_and_to_json() {
        let json = r#"{"z":1,"a":2,"m":"x"}"#;
        let settings: Settings = serde_json::from_str(json).expect("an object");
        assert_eq!(settings.0[0], ("z".to_owned(), 1.into()));
        assert_eq!(serde_json::to_string(&settings).expect("string keys"), json);
    }
}
