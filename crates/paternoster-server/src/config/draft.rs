//! A configuration as it was written: nothing is checked yet, and each value knows its place.

use std::path::PathBuf;

use super::error::{ConfigError, Place, Problem};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

impl<T> At<T> {
    /// The error that says `problem` of this value.
    pub(super) fn refuse<R>(&self, problem: Problem) -> Result<R, ConfigError> {
        Err(self.place.refuses(problem))
    }
}

/// A size, an offset or a mode: numbers may be written with a unit or a base, in quotes.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Plain(i64),
    Text(String),
}

#[derive(Debug)]
pub(super) struct Draft {
    /// Where what is missing as a whole is missed.
    pub(super) whole: Place,
    pub(super) unix: Option<At<PathBuf>>,
    pub(super) unix_mode: Option<At<Number>>,
    pub(super) tcp: Option<At<String>>,
    pub(super) ctl: Option<At<PathBuf>>,
    pub(super) disks: Vec<DraftDisk>,
    pub(super) groups: Vec<DraftGroup>,
    pub(super) exports: Vec<DraftExport>,
}

#[derive(Debug)]
pub(super) struct DraftDisk {
    pub(super) name: At<String>,
    pub(super) path: Option<At<PathBuf>>,
    pub(super) backend: Option<At<String>>,
    pub(super) size: Option<At<Number>>,
    pub(super) servers: Option<At<i64>>,
    pub(super) service_us: Option<At<i64>>,
    pub(super) ns_per_kib: Option<At<i64>>,
    pub(super) scheduler: Option<At<String>>,
    pub(super) depth: Option<At<i64>>,
    pub(super) tunables: Vec<(At<String>, At<i64>)>,
}

#[derive(Debug)]
pub(super) struct DraftGroup {
    pub(super) path: At<String>,
    pub(super) weight: Option<At<i64>>,
    pub(super) leaf_weight: Option<At<i64>>,
    /// By the name of a disk.
    pub(super) weight_device: Vec<(At<String>, At<i64>)>,
    pub(super) leaf_weight_device: Vec<(At<String>, At<i64>)>,
}

#[derive(Debug)]
pub(super) struct DraftExport {
    pub(super) name: At<String>,
    pub(super) disk: At<String>,
    pub(super) offset: Option<At<Number>>,
    pub(super) size: Option<At<Number>>,
    pub(super) group: Option<At<String>>,
    pub(super) weight: Option<At<i64>>,
    pub(super) io_prio: Option<At<String>>,
    pub(super) read_only: bool,
    pub(super) description: Option<At<String>>,
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
    pub(super) fn check(&self, found: &At<i64>) -> Result<u32, ConfigError> {
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

/// The longest name that the NBD protocol has room for, in bytes.
pub(super) const NAME_MAX: usize = 4096;

/// Refuses texts that would spoil the protocol or lines of output.
pub(super) fn check_name(what: &'static str, name: &At<String>) -> Result<(), ConfigError> {
    if name.value.len() <= NAME_MAX && !name.value.chars().any(char::is_control) {
        return Ok(());
    }
    let start = name.value.chars().take(40).collect();
    name.refuse(Problem::BadName { what, name: start, max: NAME_MAX })
}
