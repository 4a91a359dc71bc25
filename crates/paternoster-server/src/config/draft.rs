//! A configuration as it was written: nothing is checked yet, and each value knows its place.

use std::path::PathBuf;

use super::error::{Mistake, Place, Problem};
use super::mistakes::Mistakes;

/// A value and where it was written.
#[derive(Clone, Debug, Default)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

impl<T> At<T> {
    /// The mistake that is `problem` in this value.
    pub(super) fn refuse<R>(&self, problem: Problem) -> Result<R, Mistake> {
        Err(self.place.mistake(problem))
    }
}

/// What is behind a key.
#[derive(Clone, Debug, Default)]
pub(super) enum Key<T> {
    /// The key is not written.
    #[default]
    Missing,
    /// There is no such value, which is a mistake already.
    Unreadable,
    Written(At<T>),
}

impl<T> Key<T> {
    /// The value, if it is written and can be read.
    pub(super) fn value(&self) -> Option<&At<T>> {
        match self {
            Self::Written(found) => Some(found),
            Self::Missing | Self::Unreadable => None,
        }
    }

    /// Where the value is written.
    pub(super) fn place(&self) -> Option<&Place> {
        self.value().map(|found| &found.place)
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// What `check` makes of the value, or `default` if none is written. None if it is wrong.
    pub(super) fn check_or<U>(
        &self,
        default: U,
        mistakes: &mut Mistakes,
        check: impl FnOnce(&At<T>) -> Result<U, Mistake>,
    ) -> Option<U> {
        match self {
            Self::Missing => Some(default),
            Self::Unreadable => None,
            Self::Written(found) => mistakes.note(check(found)),
        }
    }

    /// What `check` makes of the value, if one is written. None if it is wrong.
    #[expect(clippy::option_option, reason = "one is whether it is right, one whether it is there")]
    pub(super) fn check<U>(
        &self,
        mistakes: &mut Mistakes,
        check: impl FnOnce(&At<T>) -> Result<U, Mistake>,
    ) -> Option<Option<U>> {
        self.check_or(None, mistakes, |found| check(found).map(Some))
    }
}

/// A size, an offset or a mode: numbers may be written with a unit or a base, in quotes.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    Plain(i64),
    Text(String),
}

#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Where what is missing as a whole is missed.
    pub(super) whole: Place,
    /// Whether there is something unknown, which may be what else is missed, and misspelt.
    pub(super) has_gaps: bool,
    pub(super) unix: Key<PathBuf>,
    pub(super) unix_mode: Key<Number>,
    pub(super) tcp: Key<String>,
    pub(super) listen: Vec<DraftListen>,
    /// None is to have none.
    pub(super) ctl: Key<Option<PathBuf>>,
    pub(super) metrics: Key<String>,
    pub(super) memory: Key<Number>,
    pub(super) connections: Key<i64>,
    pub(super) payload_timeout: Key<i64>,
    pub(super) threads: Key<i64>,
    pub(super) engine: Key<String>,
    pub(super) at_stop: Key<String>,
    pub(super) disks: Vec<DraftDisk>,
    pub(super) groups: Vec<DraftGroup>,
    pub(super) exports: Vec<DraftExport>,
}

/// A table of `[[listen]]`, or what stands for one.
#[derive(Debug, Default)]
pub(super) struct DraftListen {
    /// As in [`Draft`].
    pub(super) has_gaps: bool,
    /// Where it begins.
    pub(super) place: Place,
    pub(super) unix: Key<PathBuf>,
    pub(super) unix_mode: Key<Number>,
    pub(super) tcp: Key<String>,
    pub(super) exports: Key<Vec<At<String>>>,
}

#[derive(Debug, Default)]
pub(super) struct DraftDisk {
    /// As in [`Draft`].
    pub(super) has_gaps: bool,
    pub(super) name: At<String>,
    pub(super) path: Key<PathBuf>,
    pub(super) backend: Key<String>,
    pub(super) cache: Key<String>,
    /// None is to find out.
    pub(super) rotational: Key<Option<bool>>,
    pub(super) size: Key<Number>,
    pub(super) servers: Key<i64>,
    pub(super) model: Key<String>,
    pub(super) service_us: Key<i64>,
    pub(super) ns_per_kib: Key<i64>,
    pub(super) uri: Key<String>,
    pub(super) connections: Key<i64>,
    pub(super) reconnect: Key<String>,
    pub(super) resends: Key<i64>,
    pub(super) answer_timeout: Key<String>,
    pub(super) after_reconnect: Key<String>,
    pub(super) scheduler: Key<String>,
    pub(super) hierarchy: Key<String>,
    pub(super) depth: Key<i64>,
    pub(super) plug: Key<String>,
    pub(super) poll: Key<String>,
    /// In the order of [`HybridTunable::ALL`](super::polling::HybridTunable::ALL).
    pub(super) hybrid: [Key<i64>; 4],
    pub(super) cpu_dma_latency: Key<i64>,
    pub(super) tunables: Vec<(At<String>, At<i64>)>,
}

#[derive(Debug, Default)]
pub(super) struct DraftGroup {
    pub(super) path: At<String>,
    pub(super) weight: Key<i64>,
    pub(super) leaf_weight: Key<i64>,
    /// By the name of a disk.
    pub(super) weight_device: Vec<(At<String>, At<i64>)>,
    pub(super) leaf_weight_device: Vec<(At<String>, At<i64>)>,
    /// In the order of [`Limit::ALL`](super::limit::Limit::ALL).
    pub(super) limits: [Key<Number>; 7],
    pub(super) memory: Key<Number>,
    pub(super) connections: Key<i64>,
}

#[derive(Debug, Default)]
pub(super) struct DraftExport {
    /// As in [`Draft`].
    pub(super) has_gaps: bool,
    pub(super) name: At<String>,
    pub(super) disk: Key<String>,
    pub(super) offset: Key<Number>,
    pub(super) size: Key<Number>,
    pub(super) group: Key<String>,
    pub(super) weight: Key<i64>,
    pub(super) io_prio: Key<String>,
    pub(super) read_only: Key<bool>,
    pub(super) description: Key<String>,
}

impl DraftExport {
    /// Returns whether clients may write, as far as that is known.
    pub(super) fn may_write(&self) -> bool {
        match &self.read_only {
            Key::Missing => !self.has_gaps,
            Key::Unreadable => false,
            Key::Written(read_only) => !read_only.value,
        }
    }
}

/// A number within a range, in a unit that errors name.
pub(super) struct Bounds {
    pub(super) key: &'static str,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) unit: &'static str,
}

impl Bounds {
    /// The number, if it is within.
    pub(super) fn check(&self, found: &At<i64>) -> Result<u32, Mistake> {
        match u32::try_from(found.value) {
            Ok(value) if (self.min..=self.max).contains(&value) => Ok(value),
            _ => found.refuse(Problem::OutOfRange {
                key: self.key,
                value: found.value,
                min: self.min.into(),
                max: self.max.into(),
                unit: self.unit,
            }),
        }
    }
}

/// What is written in place of a path to have none.
pub(super) const NO_PATH: &str = "none";

/// The longest name that the NBD protocol has room for, in bytes.
pub(super) const NAME_MAX: usize = 4096;

/// Refuses texts that would spoil the protocol or lines of output.
pub(super) fn check_name(what: &'static str, name: &At<String>) -> Result<(), Mistake> {
    if name.value.len() <= NAME_MAX && !name.value.chars().any(char::is_control) {
        return Ok(());
    }
    let start = name.value.chars().take(40).collect();
    name.refuse(Problem::BadName { what, name: start, max: NAME_MAX })
}
