//! The body and the answer of `PUT /v1/groups/weight`, which changes a group's weights.
//!
//! ```text
//!   {"group": "/gold", "weight": 300}                      echo 300 > blkio.weight
//!   {"group": "/gold", "weight": 300, "disk": "slow"}      echo 8:0 300 > blkio.weight_device
//!   {"group": "/gold", "weight": "default", "disk": "slow"}
//!   {"group": "/gold", "weight": "default"}                as the configuration has it
//! ```
//!
//! As there, a weight of a disk's own stays in force when the group's is set, until it is
//! `"default"` on that disk; and what is not named stays as it is. A change holds until the server
//! ends or reads its file again.

use axum::http::StatusCode;
use paternoster::{DeviceWeights, Group, Weight, Weights};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::trace::UnknownDisk;
use crate::stat::Stat;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightChange {
    /// The group's path.
    pub group: String,
    /// Its weight against its siblings: 1 to 1000, or `"default"`: with a disk that of the group,
    /// else the configuration's.
    pub weight: Value,
    /// The weight of its own requests against the groups below it, likewise; as it is if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf_weight: Option<Value>,
    /// The disk on which this holds; every disk where the group is if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
}

impl WeightChange {
    /// Makes a value from text: a number where it is one.
    pub fn value(text: &str) -> Value {
        text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
    }

    /// What to do to the group on each disk that is meant; `written` are its weights in the
    /// configuration.
    pub(crate) fn check(&self, written: Weights) -> Result<NewWeights, WeightError> {
        let weight = self.check_value("weight", &self.weight, written.weight)?;
        let leaf = self.leaf_weight.as_ref();
        let leaf = leaf.map(|leaf| self.check_value("leaf_weight", leaf, written.leaf));
        Ok(NewWeights { weight, leaf: leaf.transpose()?, of_disk: self.disk.is_some() })
    }

    fn check_value(
        &self,
        key: &'static str,
        value: &Value,
        written: Weight,
    ) -> Result<NewWeight, WeightError> {
        if value == "default" {
            let is_of_disk = self.disk.is_some();
            return Ok(if is_of_disk { NewWeight::Default } else { NewWeight::Weight(written) });
        }
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        let weight = number.and_then(|number| Weight::new(number).ok());
        let found = || value.to_string();
        weight.map(NewWeight::Weight).ok_or_else(|| WeightError::BadWeight { key, found: found() })
    }
}

/// One weight as it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewWeight {
    Weight(Weight),
    /// None of the disk's own: that of the group.
    Default,
}

impl From<NewWeight> for Option<Weight> {
    fn from(new: NewWeight) -> Self {
        match new {
            NewWeight::Weight(weight) => Some(weight),
            NewWeight::Default => None,
        }
    }
}

/// Weights as they are to be, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewWeights {
    weight: NewWeight,
    /// None is to leave it.
    leaf: Option<NewWeight>,
    /// Whether they are a disk's own.
    of_disk: bool,
}

impl NewWeights {
    /// The weights of `group` with these: its own, and those of its disk.
    pub(crate) fn of(self, group: &Group) -> (Weights, DeviceWeights) {
        let (mut own, mut on_device) = (group.configured(), group.on_device());
        if self.of_disk {
            on_device.weight = self.weight.into();
            on_device.leaf = self.leaf.map_or(on_device.leaf, Into::into);
        } else {
            own.weight = Option::from(self.weight).unwrap_or(own.weight);
            own.leaf = self.leaf.and_then(Into::into).unwrap_or(own.leaf);
        }
        (own, on_device)
    }
}

/// What is in force then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WeightAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The disks that were meant, in the order of the configuration.
    pub disks: Vec<WeightsInForce>,
}

impl WeightAnswer {
    /// Makes the answer about these disks.
    pub fn new(disks: Vec<WeightsInForce>) -> Self {
        Self { version: Stat::VERSION, disks }
    }
}

/// The weights of the group on one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WeightsInForce {
    /// The disk's name.
    pub disk: String,
    /// Against the group's siblings, 1 to 1000.
    pub weight: u32,
    /// Of its own requests against the groups below it, 1 to 1000.
    pub leaf_weight: u32,
    /// Whether `weight` is the disk's own.
    pub weight_of_disk: bool,
    /// Whether `leaf_weight` is the disk's own.
    pub leaf_weight_of_disk: bool,
    /// Whether weights have an effect under the disk's scheduler.
    pub weights_apply: bool,
}

/// Why weights stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum WeightError {
    /// Something that is no weight.
    #[error("{key} = {found}: {} to {} is allowed, or \"default\"", Weight::MIN, Weight::MAX)]
    BadWeight { key: &'static str, found: String },
    /// A group that there is not.
    #[error("there is no group {group:?}; there are: {known}")]
    UnknownGroup { group: String, known: String },
    /// A disk that there is not.
    #[error(transparent)]
    UnknownDisk(#[from] UnknownDisk),
    /// A disk on which the group is not.
    #[error("group {group:?} is not on disk {disk:?}; it is on: {known}")]
    NotOnDisk { group: String, disk: String, known: String },
    /// A disk that is hung or has ended.
    #[error("disk {disk:?} does not answer; the weights may have changed on other disks")]
    Unanswered { disk: String },
}

impl WeightError {
    /// The HTTP status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::BadWeight { .. } => StatusCode::BAD_REQUEST,
            Self::UnknownGroup { .. } | Self::UnknownDisk(_) | Self::NotOnDisk { .. } => {
                StatusCode::NOT_FOUND
            }
            Self::Unanswered { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(
        weight: Value,
        leaf_weight: Option<Value>,
        disk: bool,
    ) -> Result<NewWeights, String> {
        let disk = disk.then(|| "d".to_owned());
        let change = WeightChange { group: "/g".to_owned(), weight, leaf_weight, disk };
        let weight = |value| Weight::new(value).expect("within range");
        let written = Weights { weight: weight(44), leaf: weight(55) };
        change.check(written).map_err(|error| error.to_string())
    }

    #[test]
    fn weights_are_1_to_1000_or_default() {
        let weight = |value| NewWeight::Weight(Weight::new(value).expect("within range"));
        let new = |weight, leaf, of_disk| Ok(NewWeights { weight, leaf, of_disk });
        assert_eq!(checked(json!(1), None, false), new(weight(1), None, false));
        let both = checked(json!(1000), Some(json!(7)), true);
        assert_eq!(both, new(weight(1000), Some(weight(7)), true));
        let default = checked(json!("default"), Some(json!("default")), true);
        assert_eq!(default, new(NewWeight::Default, Some(NewWeight::Default), true));
        let written = checked(json!("default"), Some(json!("default")), false);
        assert_eq!(written, new(weight(44), Some(weight(55)), false));
    }

    #[test]
    fn anything_else_is_refused_by_its_key_with_what_is_allowed() {
        for found in [json!(0), json!(1001), json!(-1), json!(1.5), json!("300"), json!(null)] {
            let refused = checked(found.clone(), None, true).expect_err("no weight");
            assert_eq!(refused, format!("weight = {found}: 1 to 1000 is allowed, or \"default\""));
        }
        let leaf = checked(json!(5), Some(json!(0)), false).expect_err("no weight");
        assert!(leaf.starts_with("leaf_weight = 0: 1 to 1000"), "{leaf}");
    }

    #[test]
    fn text_is_a_number_where_it_is_one() {
        assert_eq!(WeightChange::value("300"), json!(300));
        assert_eq!(WeightChange::value("-5"), json!(-5));
        assert_eq!(WeightChange::value("default"), json!("default"));
    }
}
