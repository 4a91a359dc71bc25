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
use paternoster::{Hierarchy, NoHierarchy, SchedulerKind, TunableInfo};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use thiserror::Error;

use super::answer::{OnDisks, Status};
use super::trace::UnknownDisk;
use crate::config::{
    DEPTH_MAX, DiskKeys, Key, Keys as _, PollMode, Polling, SchedulerChoice, SchedulerWord,
    of_hybrid,
};
use crate::depth::{self, Depth};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskChange {
    /// The disk's name.
    pub disk: String,
    /// What to set.
    pub set: NewSettings,
}

/// Names and their new values in the order in which they were written: `scheduler` and a
/// scheduler's name or `auto`, `hierarchy` and its name, `use_hierarchy` and 0 (flat) or 1
/// (entities), `depth` and a number of requests or, under wfq, `learned`, `poll` and its name and
/// what `hybrid` has to set, or a tunable and a number in its unit, or one of its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSettings(pub Vec<(String, Value)>);

impl Serialize for NewSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for NewSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

/// Keeps the order of an object's keys, and those that are there twice.
struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = NewSettings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut settings = Vec::new();
        while let Some(entry) = map.next_entry()? {
            settings.push(entry);
        }
        Ok(NewSettings(settings))
    }
}

impl NewSettings {
    /// Checks all of it for a disk under the scheduler `current` whose thread waits so; whether
    /// that disk is rotational says what `auto` takes.
    pub(crate) fn check(
        &self,
        current: SchedulerKind,
        rotational: bool,
        polling_before: Polling,
    ) -> Result<CheckedSettings, SettingError> {
        let Self(settings) = self;
        if settings.is_empty() {
            return Err(SettingError::Nothing);
        }
        for (index, (name, _)) in settings.iter().enumerate() {
            if settings[..index].iter().any(|(earlier, _)| earlier == name) {
                return Err(SettingError::Twice { name: name.clone() });
            }
        }
        // The keys first: which scheduler is to be in force says what the others may be.
        let mut wanted = DiskKeys { polling: polling_before, ..DiskKeys::default() };
        let is_set = |key: &str| settings.iter().any(|(name, _)| name == key);
        for (name, value) in settings {
            let Some(key) = key(name) else { continue };
            if !key.live {
                return Err(SettingError::NeedsRestart { name: name.clone() });
            }
            // That may be learned here, which the file does not say.
            if name != DEPTH {
                key.read_one(&mut wanted, value).map_err(SettingError::Refused)?;
            }
        }
        let choice = match wanted.scheduler {
            SchedulerWord::Auto => SchedulerChoice::Auto { rotational },
            SchedulerWord::Named(kind) => SchedulerChoice::Named(kind),
        };
        let named = is_set(SCHEDULER).then_some(choice);
        let kind = named.map_or(current, SchedulerChoice::kind);
        let because = named.and_then(SchedulerChoice::because);
        let explain = |error| SettingError::explained(error, because.as_deref());
        let mut checked = CheckedSettings {
            scheduler: Some(kind).filter(|&kind| kind != current),
            auto: named.map(SchedulerChoice::is_auto),
            polling: polling_of(settings, wanted.polling)?,
            ..CheckedSettings::default()
        };
        for (name, value) in settings {
            match name.as_str() {
                DEPTH => checked.depth = Some(depth(kind, value)?),
                HIERARCHY | USE_HIERARCHY => {
                    let refuse = |error| SettingError::NoHierarchy { name: name.clone(), error };
                    kind.check_hierarchy().map_err(refuse).map_err(explain)?;
                    let used = || use_hierarchy(value).map(Some);
                    let hierarchy = if name == HIERARCHY { wanted.hierarchy } else { used()? };
                    if checked.hierarchy.is_some() {
                        return Err(SettingError::Twice { name: HIERARCHY.to_owned() });
                    }
                    checked.hierarchy = hierarchy;
                }
                IO_POLL => return Err(SettingError::IoPoll),
                _ if key(name).is_some() => {}
                _ => {
                    let tunable = tunable(kind, wanted.polling, name, value).map_err(explain)?;
                    checked.tunables.push(tunable);
                }
            }
        }
        Ok(checked)
    }
}

const SCHEDULER: &str = "scheduler";
const HIERARCHY: &str = "hierarchy";
/// The file of the patch set that the hierarchies `flat` and `entities` are of.
const USE_HIERARCHY: &str = "use_hierarchy";
const DEPTH: &str = "depth";
const TUNABLES: &str = "tunables";
/// Linux's file for whether completions are polled for, which `ctl get` answers.
const IO_POLL: &str = "io_poll";

/// The key of a disk of that name. Tunables are set by their own names, in their order.
fn key(name: &str) -> Option<&'static Key<DiskKeys>> {
    DiskKeys::key(name).filter(|key| key.name != TUNABLES)
}

/// How the thread is to wait, if that is set. Tunables that are not set stay as they are, or have
/// their defaults where `hybrid` is new.
fn polling_of(
    settings: &[(String, Value)],
    wanted: Polling,
) -> Result<Option<Polling>, SettingError> {
    let mut is_set = settings.iter().any(|(name, _)| name == "poll");
    for key in of_hybrid() {
        let is_this_set = settings.iter().any(|(name, _)| name == key.name);
        if is_this_set && wanted.poll != PollMode::Hybrid {
            return Err(SettingError::NotHybrid { name: key.name, poll: wanted.poll.name() });
        }
        is_set |= is_this_set;
    }
    Ok(Some(wanted.in_force()).filter(|_| is_set))
}

fn use_hierarchy(value: &Value) -> Result<Hierarchy, SettingError> {
    match value.as_u64() {
        Some(0) => Ok(Hierarchy::Flat),
        Some(1) => Ok(Hierarchy::Entities),
        _ => Err(SettingError::BadValue {
            name: USE_HIERARCHY.to_owned(),
            found: value.to_string(),
            allowed: "0 (flat) or 1 (entities)".to_owned(),
        }),
    }
}

fn depth(scheduler: SchedulerKind, value: &Value) -> Result<Depth, SettingError> {
    let may_learn = depth::learns(scheduler);
    if may_learn && value == depth::LEARNED {
        return Ok(Depth::Learned);
    }
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let within = number.filter(|number| (1..=DEPTH_MAX).contains(number));
    let or_learned = if may_learn { ", or learned," } else { "" };
    within.map(Depth::Fixed).ok_or_else(|| SettingError::BadValue {
        name: DEPTH.to_owned(),
        found: value.to_string(),
        allowed: format!("1 to {DEPTH_MAX} requests{or_learned}"),
    })
}

/// A tunable of the scheduler and its value in the tunable's range.
fn tunable(
    scheduler: SchedulerKind,
    polling: Polling,
    name: &str,
    value: &Value,
) -> Result<(&'static str, i64), SettingError> {
    let info = depth::other_tunable(scheduler, name).map_err(|_| {
        let has_hierarchy = scheduler.check_hierarchy().is_ok();
        let is_hybrid = polling.poll == PollMode::Hybrid;
        let can_be_set = |key: &&Key<DiskKeys>| match key.name {
            HIERARCHY => has_hierarchy,
            TUNABLES => false,
            _ => key.live && (is_hybrid || of_hybrid().all(|other| other.name != key.name)),
        };
        let keys = DiskKeys::KEYS.iter().filter(can_be_set).map(|key| key.name);
        let tunables = depth::other_tunables(scheduler).map(|info| info.name);
        let known = keys.chain(has_hierarchy.then_some(USE_HIERARCHY)).chain(tunables);
        let known = known.collect::<Vec<_>>().join(", ");
        SettingError::Unknown { name: name.to_owned(), scheduler, known }
    })?;
    let TunableInfo { name, unit, words, .. } = *info;
    let word = value.as_str().filter(|word| words.contains(word));
    let word = word.and_then(|word| info.parse(word).ok());
    let number = value.as_i64().filter(|&number| info.accepts(number).is_ok());
    let value = number.or(word).ok_or_else(|| SettingError::BadValue {
        name: name.to_owned(),
        found: value.to_string(),
        allowed: format!("{} ({unit})", info.range()),
    })?;
    Ok((name, value))
}

/// Settings that may all be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckedSettings {
    /// Another scheduler than that in force.
    pub(crate) scheduler: Option<SchedulerKind>,
    /// Whether `auto` has chosen the scheduler, if one is named.
    pub(crate) auto: Option<bool>,
    pub(crate) hierarchy: Option<Hierarchy>,
    pub(crate) depth: Option<Depth>,
    pub(crate) polling: Option<Polling>,
    pub(crate) tunables: Vec<(&'static str, i64)>,
}

/// What is in force on the disks that were asked about.
pub type SettingsAnswer = OnDisks<SettingsInForce>;

/// What is set of one disk. The names are those of [`NewSettings`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsInForce {
    /// The disk's name.
    pub disk: String,
    /// Its scheduler.
    pub scheduler: String,
    /// Whether `auto` has chosen it.
    pub scheduler_auto: bool,
    /// In what way groups share the disk, where the scheduler has such ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<String>,
    /// The most requests in the device at once.
    pub depth: u32,
    /// Whether the scheduler learns how many of these it makes use of, as `depth=learned` has it.
    pub depth_learned: bool,
    /// Whether connection threads plug; missing of an older server. It changes with a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plug: Option<bool>,
    /// How the disk's thread waits: `auto`, `interrupt`, `classic` or `hybrid`.
    pub poll: String,
    /// The tunables of `hybrid`, each in its own unit.
    pub hybrid: BTreeMap<String, i64>,
    /// The scheduler's tunables, each in its own unit.
    pub tunables: BTreeMap<String, i64>,
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
    /// A name that is there twice.
    #[error("{name} is set twice; once is allowed")]
    Twice { name: String },
    /// A name that cannot be set under the scheduler.
    #[error("{name:?} cannot be set under {scheduler}; what can be set is: {known}")]
    Unknown { name: String, scheduler: SchedulerKind, known: String },
    /// A value that a key does not take.
    #[error("{0}")]
    Refused(String),
    /// Something that the scheduler does not have which `auto` takes.
    #[error("{error}; scheduler={because}")]
    UnderAuto { error: Box<Self>, because: String },
    /// A hierarchy for a scheduler that has none to choose.
    #[error("{name}: {error}")]
    NoHierarchy { name: String, error: NoHierarchy },
    /// A tunable of `poll=hybrid` without it.
    #[error("{name} has no effect with poll={poll}; it is allowed with poll=hybrid")]
    NotHybrid { name: &'static str, poll: &'static str },
    /// Linux's name for whether completions are polled for.
    #[error("io_poll is set by poll: interrupt is 0; auto, classic and hybrid are 1")]
    IoPoll,
    /// A key that is read at the start.
    #[error("{name} is set in the file, below the disk, and changes with a restart")]
    NeedsRestart { name: String },
    /// A value out of its range, or none.
    #[error("{name} = {found}: {allowed} is allowed")]
    BadValue { name: String, found: String, allowed: String },
    /// A disk that is hung or has ended.
    #[error("disk {disk:?} does not answer; its settings may still change")]
    Unanswered { disk: String },
}

impl SettingError {
    /// What is not there under the scheduler, with the reason why `auto` takes that.
    fn explained(self, because: Option<&str>) -> Self {
        let is_of_scheduler = matches!(self, Self::Unknown { .. } | Self::NoHierarchy { .. });
        match because.filter(|_| is_of_scheduler) {
            Some(because) => Self::UnderAuto { error: Box::new(self), because: because.to_owned() },
            None => self,
        }
    }
}

impl Status for SettingError {
    fn status(&self) -> StatusCode {
        match self {
            Self::UnknownDisk(_) => StatusCode::NOT_FOUND,
            Self::Unanswered { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::UnderAuto { error, .. } => error.status(),
            Self::Nothing
            | Self::Twice { .. }
            | Self::Unknown { .. }
            | Self::Refused(_)
            | Self::NoHierarchy { .. }
            | Self::NotHybrid { .. }
            | Self::IoPoll
            | Self::NeedsRestart { .. }
            | Self::BadValue { .. } => StatusCode::BAD_REQUEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(json: &str) -> Result<CheckedSettings, String> {
        let settings: NewSettings = serde_json::from_str(json).expect("an object");
        settings
            .check(SchedulerKind::Cfq, true, Polling::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn tunables_are_those_of_the_scheduler_that_is_to_be_in_force() {
        let expected = CheckedSettings {
            scheduler: Some(SchedulerKind::MqDeadline),
            auto: Some(false),
            hierarchy: None,
            depth: Some(Depth::Fixed(16)),
            polling: None,
            tunables: vec![("writes_starved", 1), ("fifo_batch", 8)],
        };
        let json = r#"{"writes_starved": 1, "fifo_batch": 8, "depth": 16,
                       "scheduler": "mq-deadline"}"#;
        assert_eq!(checked(json), Ok(expected));
        let refused = checked(r#"{"slice_idle": 0, "scheduler": "mq-deadline"}"#);
        let refused = refused.expect_err("CFQ's");
        assert!(
            refused.starts_with("\"slice_idle\" cannot be set under mq-deadline; what can be set"),
            "{refused}"
        );
    }

    /// Post 4: who writes to Linux's `io_poll` hears of `poll`; what `hybrid` has is in the list.
    #[test]
    fn names_of_sysfs_that_are_not_set_name_what_is() {
        let refused = |json| checked(json).expect_err("it is not set");
        assert_eq!(
            refused(r#"{"io_poll": 1}"#),
            "io_poll is set by poll: interrupt is 0; auto, classic and hybrid are 1"
        );
        assert!(refused(r#"{"plug": "off"}"#).contains("changes with a restart"));
        let hybrid = "io_poll_delay, io_poll_part, io_poll_hyb_use_min, io_poll_hyb_adjust";
        assert!(refused(r#"{"poll": "hybrid", "speed": 1}"#).contains(hybrid));
        assert!(!refused(r#"{"speed": 1}"#).contains(hybrid));
    }

    #[test]
    fn value_that_has_words_is_one_of_them_or_its_number() {
        for json in
            [r#"{"cost": "bytes", "scheduler": "wfq"}"#, r#"{"cost": 2, "scheduler": "wfq"}"#]
        {
            assert_eq!(checked(json).expect("allowed").tunables, [("cost", 2)]);
        }
    }

    #[test]
    fn tunables_of_hybrid_polling_are_set_with_it_or_where_it_is() {
        let polling = |json| checked(json).map(|checked| checked.polling);
        let hybrid =
            Polling { io_poll_hyb_use_min: 1, io_poll_hyb_adjust: 2000, ..PollMode::Hybrid.into() };
        let all =
            polling(r#"{"io_poll_hyb_use_min": 1, "poll": "hybrid", "io_poll_hyb_adjust": 2000}"#);
        assert_eq!(all, Ok(Some(hybrid)));
        assert_eq!(polling(r#"{"poll": "classic"}"#), Ok(Some(PollMode::Classic.into())));
        assert_eq!(polling(r#"{"slice_idle": 3}"#), Ok(None));
        // One of them, where the others stay.
        let one = NewSettings(vec![("io_poll_delay".to_owned(), 7.into())]);
        let one = one.check(SchedulerKind::Cfq, true, hybrid).expect("it is hybrid").polling;
        assert_eq!(one, Some(Polling { io_poll_delay: 7, ..hybrid }));
        for (json, expected) in [
            (
                r#"{"io_poll_delay": 7}"#,
                "io_poll_delay has no effect with poll=auto; it is allowed with poll=hybrid",
            ),
            (
                r#"{"poll": "hybrid", "io_poll_delay": -2}"#,
                "io_poll_delay = -2: -1 to 4294967 µs is allowed",
            ),
            (
                r#"{"poll": "no"}"#,
                "poll = \"no\": \"auto\", \"interrupt\", \"classic\" or \"hybrid\" is allowed",
            ),
        ] {
            assert_eq!(polling(json), Err(expected.to_owned()));
        }
    }

    #[test]
    fn depth_is_learned_where_wfq_is_to_be_in_force() {
        let depth = |json| checked(json).map(|checked| checked.depth);
        let learned = depth(r#"{"depth": "learned", "scheduler": "wfq"}"#);
        assert_eq!(learned, Ok(Some(Depth::Learned)));
        let refused = depth(r#"{"depth": "learned"}"#).expect_err("cfq learns none");
        assert_eq!(refused, "depth = \"learned\": 1 to 1024 requests is allowed");
        let refused = depth(r#"{"depth": 0, "scheduler": "wfq"}"#).expect_err("nothing goes");
        assert_eq!(refused, "depth = 0: 1 to 1024 requests, or learned, is allowed");
    }

    #[test]
    fn use_hierarchy_is_another_name_of_two_hierarchies() {
        let hierarchy = |json| checked(json).expect("allowed").hierarchy;
        assert_eq!(hierarchy(r#"{"use_hierarchy": 0}"#), Some(Hierarchy::Flat));
        assert_eq!(hierarchy(r#"{"use_hierarchy": 1}"#), Some(Hierarchy::Entities));
        assert_eq!(hierarchy(r#"{"hierarchy": "leaf-weight"}"#), Some(Hierarchy::LeafWeight));
    }

    /// As in the patch set, which refuses what is not 0 or 1.
    #[test]
    fn use_hierarchy_is_0_or_1_under_cfq() {
        for found in ["2", "-1", "1.0", "0.5", "\"1\"", "\"entities\"", "true", "null", "[1]"] {
            let refused = checked(&format!(r#"{{"use_hierarchy": {found}}}"#)).expect_err(found);
            let allowed = "0 (flat) or 1 (entities) is allowed";
            assert_eq!(refused, format!("use_hierarchy = {found}: {allowed}"));
        }
        for kind in SchedulerKind::ALL.into_iter().filter(|&kind| kind != SchedulerKind::Cfq) {
            let json = format!(r#"{{"use_hierarchy": 1, "scheduler": "{kind}"}}"#);
            let none = "has no hierarchy to choose; cfq has: leaf-weight, flat, entities";
            assert_eq!(checked(&json), Err(format!("use_hierarchy: {kind} {none}")));
        }
    }

    #[test]
    fn scheduler_in_force_is_no_change() {
        let same = checked(r#"{"scheduler": "cfq"}"#).expect("allowed");
        assert_eq!(same, CheckedSettings { auto: Some(false), ..CheckedSettings::default() });
    }

    #[test]
    fn auto_takes_what_fits_the_disk_and_says_so_where_that_lacks_something() {
        let auto = |json: &str, rotational| {
            let settings: NewSettings = serde_json::from_str(json).expect("an object");
            let checked = settings.check(SchedulerKind::Cfq, rotational, Polling::default());
            checked.map_err(|error| error.to_string())
        };
        let to = |scheduler| CheckedSettings { scheduler, auto: Some(true), ..Default::default() };
        let set = r#"{"scheduler": "auto"}"#;
        assert_eq!(auto(set, false), Ok(to(Some(SchedulerKind::Wfq))));
        assert_eq!(auto(set, true), Ok(to(None)), "cfq is in force");
        let depth = auto(r#"{"depth": 3}"#, false).expect("allowed");
        assert_eq!((depth.scheduler, depth.auto), (None, None), "auto has its say where named");
        let set = r#"{"scheduler": "auto", "slice_idle": 4}"#;
        assert_eq!(auto(set, true).map(|checked| checked.tunables), Ok(vec![("slice_idle", 4)]));
        let why = "scheduler=auto: wfq, as the disk does not rotate";
        let refused = auto(set, false).expect_err("cfq's");
        let under = "\"slice_idle\" cannot be set under wfq; what can be set is: scheduler, depth";
        assert!(refused.starts_with(under) && refused.ends_with(why), "{refused}");
        let set = r#"{"scheduler": "auto", "hierarchy": "flat"}"#;
        let refused = auto(set, false).expect_err("cfq's");
        let under = "hierarchy: wfq has no hierarchy to choose; cfq has: ";
        assert!(refused.starts_with(under) && refused.ends_with(why), "{refused}");
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (json, message) in [
            (
                "{}",
                "nothing is set; NAME=VALUE is allowed, with scheduler, depth, poll or a tunable",
            ),
            (r#"{"depth": 4, "depth": 4}"#, "depth is set twice; once is allowed"),
            (r#"{"depth": 0}"#, "depth = 0: 1 to 1024 requests is allowed"),
            (r#"{"depth": "4"}"#, "depth = \"4\": 1 to 1024 requests is allowed"),
            (r#"{"quantum": 1.5}"#, "quantum = 1.5: 1 to "),
            (r#"{"slice_idle": -1}"#, "slice_idle = -1: 0 to "),
            (
                r#"{"scheduler": "wfq", "cost": "lern"}"#,
                "cost = \"lern\": learn, requests, bytes, fixed (word) is allowed",
            ),
            (r#"{"scheduler": "wfq", "cost": "2"}"#, "cost = \"2\": learn, "),
            (r#"{"scheduler": "deadline"}"#, "scheduler = \"deadline\": \"auto\", \"none\", "),
            (r#"{"hierarchy": "deep"}"#, "hierarchy = \"deep\": \"leaf-weight\", "),
            (r#"{"use_hierarchy": 2}"#, "use_hierarchy = 2: 0 (flat) or 1 (entities) is allowed"),
            (r#"{"use_hierarchy": 1, "hierarchy": "flat"}"#, "hierarchy is set twice"),
            (r#"{"hierarchy": "flat", "scheduler": "bfq"}"#, "hierarchy: bfq has no hierarchy to "),
            (r#"{"scheduler": 3}"#, "scheduler = 3: \"auto\", \"none\", "),
        ] {
            let refused = checked(json).expect_err(json);
            assert!(refused.starts_with(message), "{json}: {refused}");
        }
    }

    #[test]
    fn order_is_kept_from_and_to_json() {
        let json = r#"{"z":1,"a":2,"m":"x"}"#;
        let settings: NewSettings = serde_json::from_str(json).expect("an object");
        assert_eq!(settings.0[0], ("z".to_owned(), 1.into()));
        assert_eq!(serde_json::to_string(&settings).expect("string keys"), json);
    }
}
