//! The body and the answer of `PUT /v1/groups/limits`, which changes a group's limits: its caps,
//! reservations and latency target.
//!
//! ```text
//!   {"group": "/gold", "set": {"riops": 1000, "wbps": "10M"}}     echo "8:0 riops=1000 …" > io.max
//!   {"group": "/gold", "set": {"riops": "max"}, "disk": "fast"}
//! ```
//!
//! As there, what is not named stays as it is. A change holds until the server ends or reads its
//! file again.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::StatusCode;
use paternoster::GroupLimits;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::WeightError;
use crate::config::{GroupKeys, Key, Keys as _};
use crate::stat::Stat;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitChange {
    /// The group's path.
    pub group: String,
    /// Limits by their keys and with values as in the file: `riops`, `wiops`, `rbps` and `wbps`,
    /// of which `"max"` is to have none; `min_iops`, `min_bps` and `latency_target`, of which 0 is.
    pub set: BTreeMap<String, Value>,
    /// The disk on which this holds; every disk where the group is if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
}

impl LimitChange {
    pub(crate) fn check(&self) -> Result<NewLimits, LimitError> {
        if self.set.is_empty() {
            return Err(LimitError::NothingSet);
        }
        let limits = self.set.iter().map(|(name, value)| {
            let key = GroupKeys::part("limits").find(|key| key.name == name).ok_or_else(|| {
                let known = GroupKeys::part("limits").map(|key| key.name);
                let known = known.collect::<Vec<_>>().join(", ");
                LimitError::UnknownLimit { key: name.clone(), known }
            })?;
            key.read_one(&mut GroupKeys::default(), value).map_err(LimitError::BadLimit)?;
            Ok((key, value.clone()))
        });
        limits.collect::<Result<_, _>>().map(NewLimits)
    }
}

/// Limits as they are to be, checked; those that are not named stay.
#[derive(Clone)]
pub(crate) struct NewLimits(Vec<(&'static Key<GroupKeys>, Value)>);

impl NewLimits {
    /// The limits of a group with these.
    pub(crate) fn over(&self, limits: GroupLimits) -> GroupLimits {
        let mut keys = GroupKeys { limits, ..GroupKeys::default() };
        for (key, value) in &self.0 {
            key.read_one(&mut keys, value).expect("it was checked");
        }
        keys.limits
    }

    /// Whether all of it is to have no limit.
    pub(crate) fn only_removes(&self) -> bool {
        self.over(GroupLimits::NONE) == GroupLimits::NONE
    }
}

impl fmt::Debug for NewLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key.name, value))).finish()
    }
}

/// What is in force then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The disks that were meant, in the order of the configuration.
    pub disks: Vec<LimitsInForce>,
}

impl LimitAnswer {
    /// Makes the answer about these disks.
    pub fn new(disks: Vec<LimitsInForce>) -> Self {
        Self { version: Stat::VERSION, disks }
    }
}

/// The limits of the group on one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsInForce {
    /// The disk's name.
    pub disk: String,
    /// The limits that there are, by their keys: so many a second, and `latency_target` in
    /// microseconds.
    pub limits: BTreeMap<String, u64>,
}

/// Why limits stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum LimitError {
    /// Nothing to set.
    #[error("no limit is set; NAME=VALUE is needed, such as riops=1000")]
    NothingSet,
    /// A limit that there is not.
    #[error("there is no limit {key:?}; there are: {known}")]
    UnknownLimit { key: String, known: String },
    /// Something that is no limit.
    #[error("{0}")]
    BadLimit(String),
    /// A group or a disk that there is not, or a disk that does not answer.
    #[error(transparent)]
    Place(#[from] WeightError),
    /// A disk whose scheduler has no limits.
    #[error(
        "disk {disk:?} has the scheduler {scheduler}, which has no caps, reservations and \
         latency targets of groups; wfq has them"
    )]
    NoLimits { disk: String, scheduler: String },
    /// A disk that is hung or has ended.
    #[error("disk {disk:?} does not answer; the limits may have changed on other disks")]
    Unanswered { disk: String },
}

impl LimitError {
    /// The HTTP status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NothingSet | Self::UnknownLimit { .. } | Self::BadLimit(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::Place(error) => error.status(),
            Self::NoLimits { .. } => StatusCode::CONFLICT,
            Self::Unanswered { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use serde_json::json;

    use super::*;
    use crate::config::limits_in_numbers;

    fn checked(set: Value) -> Result<NewLimits, String> {
        let set = serde_json::from_value(set).expect("an object");
        let change = LimitChange { group: "/g".to_owned(), set, disk: None };
        change.check().map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_named_changes_and_the_rest_stays() {
        let new = checked(json!({"riops": 1000, "wbps": "1M", "min_iops": 0}));
        let before = GroupLimits {
            riops: NonZeroU64::new(1),
            rbps: NonZeroU64::new(2),
            min_iops: NonZeroU64::new(3),
            ..GroupLimits::NONE
        };
        let after = new.expect("right").over(before);
        let expected = [("rbps", 2), ("riops", 1000), ("wbps", 1 << 20)];
        assert_eq!(
            limits_in_numbers(&after),
            expected.map(|(key, value)| (key.to_owned(), value)).into()
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for (set, said) in [
            (json!({}), "no limit is set"),
            (json!({"iops": 5}), "there is no limit \"iops\"; there are: riops, wiops, rbps, wbps"),
            (json!({"riops": 0}), "riops = 0: 1 or more a second, or \"max\" is allowed"),
            (json!({"riops": 1.5}), "riops = 1.5: 1 or more"),
            (json!({"rbps": null}), "rbps = null: 1 byte a second or more"),
            (json!({"min_iops": "max"}), "min_iops = \"max\": 0 or more a second is allowed"),
        ] {
            let refused = checked(set).expect_err(said);
            assert!(refused.starts_with(said), "{refused}");
        }
    }
}
