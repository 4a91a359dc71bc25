//! The body and the answer of `/v1/groups/settings`, which changes what is set of a group while it
//! is served: its weights, caps, reservations and latency target.
//!
//! ```text
//!   {"group": "/gold", "set": {"weight": 300}}                    echo 300 > blkio.weight
//!   {"group": "/gold", "set": {"weight": 300}, "disk": "slow"}    echo 8:0 300 > …weight_device
//!   {"group": "/gold", "set": {"weight_device": {"slow": 300}}}   the same
//!   {"group": "/gold", "set": {"weight": "default"}, "disk": "slow"}
//!   {"group": "/gold", "set": {"riops": 1000, "wbps": "10M"}}     echo "8:0 riops=1000 …" > io.max
//! ```
//!
//! Keys and values are those of the file, and what is not named stays as it is. A weight of a
//! disk's own stays in force when the group's is set, until it is `"default"` on that disk; without
//! a disk, `"default"` is the weight of the configuration. A change holds until the server ends or
//! reads its file again.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::StatusCode;
use paternoster::{DeviceWeights, Group, GroupLimits, Weight, Weights};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::answer::{OnDisks, Status};
use super::settings::Settings;
use super::trace::UnknownDisk;
use crate::config::{
    GroupKeys, IDENTITIES, Key, Keys as _, Problem, group_kind, limits_in_numbers,
};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupChange {
    /// The group's path.
    pub group: String,
    /// Keys of a group that may change, and their values as in the file; a weight may also be
    /// `"default"`.
    #[serde(deserialize_with = "each_once")]
    pub set: BTreeMap<String, Value>,
    /// The disk on which this holds; every disk where the group is if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
}

/// Reads the names and values of an object, each name once.
fn each_once<'de, D: Deserializer<'de>>(object: D) -> Result<BTreeMap<String, Value>, D::Error> {
    let Settings(settings) = Settings::deserialize(object)?;
    let mut set = BTreeMap::new();
    for (name, value) in settings {
        if set.contains_key(&name) {
            return Err(D::Error::custom(format!("{name} is set twice; once is allowed")));
        }
        set.insert(name, value);
    }
    Ok(set)
}

/// Whose settings are asked for: the group, and the disk if it is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupQuestion {
    /// The group's path.
    pub group: String,
    /// The disk; every disk where the group is if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
}

/// What is written for a weight to have that of the group or of the configuration.
const DEFAULT: &str = "default";

impl GroupChange {
    /// Makes a change of one key.
    pub fn one(group: &str, key: &str, value: impl Into<Value>) -> Self {
        let set = [(key.to_owned(), value.into())].into();
        Self { group: group.to_owned(), set, disk: None }
    }

    /// What to do to the group on each disk that is meant; `written` are its weights in the
    /// configuration.
    pub(crate) fn check(&self, written: Weights) -> Result<NewGroup, GroupError> {
        if self.set.is_empty() {
            return Err(GroupError::Nothing);
        }
        let (mut new, mut refused) = (NewGroup::default(), Vec::new());
        let mut unknown = Vec::new();
        for (name, value) in &self.set {
            match GroupKeys::key(name) {
                Some(key) => refused.extend(self.check_one(key, value, written, &mut new).err()),
                None => unknown.push(format!("{name:?}")),
            }
        }
        if !unknown.is_empty() {
            let known = settable(&self.group).map(|key| key.name);
            let (unknown, known) = (unknown.join(", "), known.collect::<Vec<_>>().join(", "));
            refused.push(format!("a group has no {unknown}; what can be set is: {known}"));
        }
        if refused.is_empty() { Ok(new) } else { Err(GroupError::Refused(refused.join("; "))) }
    }

    /// Takes one key, or says what is wrong with it.
    fn check_one(
        &self,
        key: &'static Key<GroupKeys>,
        value: &Value,
        written: Weights,
        new: &mut NewGroup,
    ) -> Result<(), String> {
        if !key.is_of(group_kind(&self.group)) {
            return Err(Problem::NotOfRoot { key: key.name }.to_string());
        }
        if !key.live {
            return Err(Problem::NeedsRestart { key: key.name }.to_string());
        }
        if key.name == IDENTITIES {
            let by = "PATCH /v1/groups/PATH, or the file of a group that it declares";
            return Err(format!("{IDENTITIES}: {by}, changes them"));
        }
        match (key.name, &self.disk) {
            ("weight", None) => new.weight = Some(weight(key, value, written.weight)?),
            ("leaf_weight", None) => new.leaf = Some(weight(key, value, written.leaf)?),
            ("weight" | "leaf_weight", Some(disk)) => {
                let (is_leaf, weight) = (key.name != "weight", own_weight(key, value)?);
                new.of_disks.push(OfDisk { disk: disk.clone(), is_leaf, weight });
            }
            ("weight_device" | "leaf_weight_device", None) => new.of_disks(key, value)?,
            ("weight_device" | "leaf_weight_device", Some(_)) => {
                let without = "names its disks itself; it is allowed without a disk beside it";
                return Err(format!("{} {without}", key.name));
            }
            _ => {
                key.read_one(&mut GroupKeys::default(), value)?;
                new.limits.push((key, value.clone()));
            }
        }
        Ok(())
    }
}

/// The keys of a group that disks know and that may change.
fn settable(path: &str) -> impl Iterator<Item = &'static Key<GroupKeys>> {
    let is_settable =
        move |key: &&Key<_>| key.live && key.is_of(group_kind(path)) && key.name != IDENTITIES;
    GroupKeys::KEYS.iter().filter(is_settable)
}

/// A weight, or that of the configuration.
fn weight(key: &Key<GroupKeys>, value: &Value, written: Weight) -> Result<Weight, String> {
    own_weight(key, value).map(|own| own.unwrap_or(written))
}

/// A weight, or none.
fn own_weight(key: &Key<GroupKeys>, value: &Value) -> Result<Option<Weight>, String> {
    if value == DEFAULT {
        return Ok(None);
    }
    let mut keys = GroupKeys::default();
    let or_default = |refused| format!("{refused}, or \"{DEFAULT}\"");
    key.read_one(&mut keys, value).map_err(or_default)?;
    Ok(keys.weight.or(keys.leaf_weight))
}

/// What is to be set of a group, checked; what is not named stays.
#[derive(Clone, Default)]
pub(crate) struct NewGroup {
    weight: Option<Weight>,
    leaf: Option<Weight>,
    of_disks: Vec<OfDisk>,
    limits: Vec<(&'static Key<GroupKeys>, Value)>,
}

/// A weight of a disk's own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OfDisk {
    disk: String,
    is_leaf: bool,
    /// None is to have that of the group.
    weight: Option<Weight>,
}

impl NewGroup {
    /// Takes a table of weights by disks.
    fn of_disks(&mut self, key: &Key<GroupKeys>, value: &Value) -> Result<(), String> {
        let (own, is_leaf) = match key.name.strip_suffix("_device") {
            Some("leaf_weight") => ("leaf_weight", true),
            _ => ("weight", false),
        };
        let Some(disks) = value.as_object() else {
            let refused = key.read_one(&mut GroupKeys::default(), value).err();
            return Err(refused.unwrap_or_default());
        };
        let own = GroupKeys::key(own).expect("it is a row");
        for (disk, value) in disks {
            let named = |refused| format!("{}.{disk}: {refused}", key.name);
            let (disk, weight) = (disk.clone(), own_weight(own, value).map_err(named)?);
            self.of_disks.push(OfDisk { disk, is_leaf, weight });
        }
        Ok(())
    }

    /// The disks that it names.
    pub(crate) fn disks(&self) -> impl Iterator<Item = &String> {
        self.of_disks.iter().map(|own| &own.disk)
    }

    /// The weights of `group` on that disk with these: its own, and those of the disk.
    pub(crate) fn weights(&self, group: &Group, disk: &str) -> (Weights, DeviceWeights) {
        let (mut own, mut on_device) = (group.configured(), group.on_device());
        own.weight = self.weight.unwrap_or(own.weight);
        own.leaf = self.leaf.unwrap_or(own.leaf);
        for OfDisk { is_leaf, weight, .. } in self.of_disks.iter().filter(|own| own.disk == disk) {
            *if *is_leaf { &mut on_device.leaf } else { &mut on_device.weight } = *weight;
        }
        (own, on_device)
    }

    /// The limits of a group with these.
    pub(crate) fn limits(&self, limits: GroupLimits) -> GroupLimits {
        let mut keys = GroupKeys { limits, ..GroupKeys::default() };
        for (key, value) in &self.limits {
            key.read_one(&mut keys, value).expect("it was checked");
        }
        keys.limits
    }

    /// Whether it sets a limit that is more than none.
    pub(crate) fn limits_something(&self) -> bool {
        self.limits(GroupLimits::NONE) != GroupLimits::NONE
    }
}

impl fmt::Debug for NewGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<_> = self.limits.iter().map(|(key, value)| (key.name, value)).collect();
        let Self { weight, leaf, of_disks, .. } = self;
        write!(f, "NewGroup {{ {weight:?}, {leaf:?}, {of_disks:?}, {limits:?} }}")
    }
}

/// What is in force on the disks that were asked about.
pub type GroupAnswer = OnDisks<GroupInForce>;

/// What is set of the group on one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInForce {
    /// The disk's name.
    pub disk: String,
    /// The keys that may change, but for tables of disks, and their values as in the file.
    pub settings: BTreeMap<String, Value>,
    /// Whether `weight` is the disk's own.
    pub weight_of_disk: bool,
    /// Whether `leaf_weight` is the disk's own.
    pub leaf_weight_of_disk: bool,
    /// Whether weights have an effect under the disk's scheduler.
    pub weights_apply: bool,
    /// The limits that there are, by their keys: so many a second, and `latency_target` in
    /// microseconds.
    pub limits: BTreeMap<String, u64>,
}

impl GroupInForce {
    /// What is in force of the group of that path on that disk.
    pub(crate) fn of(path: &str, group: &Group, disk: &str, weights_apply: bool) -> Self {
        let keys = GroupKeys {
            weight: Some(group.weight()),
            leaf_weight: Some(group.leaf_weight()),
            limits: *group.limits(),
            ..GroupKeys::default()
        };
        let live = settable(path).filter(|key| !key.name.ends_with("_device"));
        Self {
            disk: disk.to_owned(),
            settings: live.map(|key| (key.name.to_owned(), (key.show)(&keys))).collect(),
            weight_of_disk: group.on_device().weight.is_some(),
            leaf_weight_of_disk: group.on_device().leaf.is_some(),
            weights_apply,
            limits: limits_in_numbers(group.limits()),
        }
    }
}

/// Why what is set of a group stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum GroupError {
    /// All that is wrong with what was to be set.
    #[error("{0}")]
    Refused(String),
    /// A change of nothing.
    #[error("nothing is set; the keys of a group that may change are allowed, such as weight")]
    Nothing,
    /// A group that there is not.
    #[error("there is no group {group:?}; there are: {known}")]
    UnknownGroup { group: String, known: String },
    /// A disk that there is not.
    #[error(transparent)]
    UnknownDisk(#[from] UnknownDisk),
    /// A disk on which the group is not.
    #[error("group {group:?} is not on disk {disk:?}; it is on: {known}")]
    NotOnDisk { group: String, disk: String, known: String },
    /// A disk whose scheduler has no limits.
    #[error(
        "disk {disk:?} has the scheduler {scheduler}, which has no caps, reservations and \
         latency targets of groups; wfq has them"
    )]
    NoLimits { disk: String, scheduler: String },
    /// A disk that is hung or has ended.
    #[error("disk {disk:?} does not answer; the group may have changed on other disks")]
    Unanswered { disk: String },
}

impl Status for GroupError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Refused(_) | Self::Nothing => StatusCode::BAD_REQUEST,
            Self::UnknownGroup { .. } | Self::UnknownDisk(_) | Self::NotOnDisk { .. } => {
                StatusCode::NOT_FOUND
            }
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

    fn checked(set: Value, disk: Option<&str>) -> Result<NewGroup, String> {
        let set = serde_json::from_value(set).expect("an object");
        let change = GroupChange { group: "/g".to_owned(), set, disk: disk.map(str::to_owned) };
        let weight = |value| Weight::new(value).expect("within range");
        let written = Weights { weight: weight(44), leaf: weight(55) };
        change.check(written).map_err(|error| error.to_string())
    }

    #[test]
    fn weights_are_the_groups_or_a_disks_and_default_is_the_next_in_line() {
        let weight = |value| Some(Weight::new(value).expect("within range"));
        let new = checked(json!({"weight": 1, "leaf_weight": "default"}), None).expect("right");
        assert_eq!((new.weight, new.leaf, new.of_disks.len()), (weight(1), weight(55), 0));
        let own = |is_leaf, weight| OfDisk { disk: "d".to_owned(), is_leaf, weight };
        let on_d = [own(true, None), own(false, weight(7))];
        let by_disk = checked(json!({"weight": 7, "leaf_weight": "default"}), Some("d"));
        assert_eq!(by_disk.expect("right").of_disks, on_d);
        let set = json!({"weight_device": {"d": 7}, "leaf_weight_device": {"d": "default"}});
        assert_eq!(checked(set, None).expect("right").of_disks, on_d);
    }

    #[test]
    fn limits_that_are_named_change_and_the_rest_stays() {
        let new = checked(json!({"riops": 1000, "wbps": "1M", "min_iops": 0}), None);
        let before = GroupLimits {
            riops: NonZeroU64::new(1),
            rbps: NonZeroU64::new(2),
            min_iops: NonZeroU64::new(3),
            ..GroupLimits::NONE
        };
        let after = new.expect("right").limits(before);
        let expected = [("rbps", 2), ("riops", 1000), ("wbps", 1 << 20)];
        let expected = expected.map(|(key, value)| (key.to_owned(), value)).into();
        assert_eq!(limits_in_numbers(&after), expected);
    }

    #[test]
    fn anything_else_is_refused_by_its_key_with_what_is_allowed() {
        for (set, said) in [
            (json!({}), "nothing is set; the keys of a group that may change are allowed"),
            (json!({"speed": 5}), "a group has no \"speed\"; what can be set is: weight, leaf_we"),
            (json!({"memory": "64M"}), "memory is set in the file and changes with a restart"),
            (json!({"weight": 0}), "weight = 0: 1 to 1000 is allowed, or \"default\""),
            (json!({"weight": "300"}), "weight = \"300\": a whole number is allowed, or \"default"),
            (json!({"leaf_weight": 1001}), "leaf_weight = 1001: 1 to 1000 is allowed, or "),
            (json!({"weight_device": 5}), "weight_device = 5: a table is allowed"),
            (json!({"weight_device": {"d": 0}}), "weight_device.d: weight = 0: 1 to 1000 is"),
            (json!({"riops": 0}), "riops = 0: 1 or more a second, or \"max\" is allowed"),
            (json!({"riops": 1.5}), "riops = 1.5: 1 or more"),
            (json!({"rbps": null}), "rbps = null: 1 byte a second or more"),
            (
                json!({"riops": 0, "speed": 1, "memory": 2}),
                "memory is set in the file and changes with a restart; riops = 0: 1 or more a \
                 second, or \"max\" is allowed; a group has no \"speed\"; ",
            ),
            (json!({"min_iops": "max"}), "min_iops = \"max\": 0 or more a second is allowed"),
        ] {
            let refused = checked(set, None).expect_err(said);
            assert!(refused.starts_with(said), "{refused}");
        }
        let named = checked(json!({"weight_device": {"d": 5}}), Some("e")).expect_err("two ways");
        assert!(named.starts_with("weight_device names its disks itself; "), "{named}");
    }
}
