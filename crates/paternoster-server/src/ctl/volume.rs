//! The questions and answers of `/v1/volumes` and `/v1/pools`.
//!
//! ```text
//!   GET    /v1/volumes?pool=&group=&limit=100&after=NAME
//!   GET    /v1/volumes/vm7
//!   PUT    /v1/volumes/vm7      {"pool": "fast", "size": "10G", "weight": 200}     makes it, once
//!   PATCH  /v1/volumes/vm7      {"size": "20G"}                                    a merge patch
//!   DELETE /v1/volumes/vm7?drain=30s&data=keep
//!   POST   /v1/volumes/vm7/reopen
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;

use axum::http::StatusCode;
use paternoster::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::answer::Status;
use crate::config::{parse_span, shown_span};
use crate::stat::Stat;

/// Which volumes are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumesQuestion {
    /// Those of this pool alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Those of this group alone, or of groups below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// At most so many, 1 to 1000; 100 if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Those behind this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl VolumesQuestion {
    /// How many volumes an answer has if the question does not say it, and at most.
    const LIMITS: [usize; 2] = [100, 1000];

    /// How many are asked for.
    pub(crate) fn limit(&self) -> Result<usize, VolumeError> {
        let [usual, most] = Self::LIMITS;
        let limit = self.limit.unwrap_or(usual);
        let refused = || VolumeError::Value(format!("limit = {limit}: 1 to {most} is allowed"));
        (1..=most).contains(&limit).then_some(limit).ok_or_else(refused)
    }
}

/// How a volume is to be removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovalQuestion {
    /// How long its clients have to leave, such as `30s`, which it is if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<String>,
    /// What becomes of its image; `keep` if missing.
    #[serde(default)]
    pub data: Data,
    /// How long to wait for the answer, such as `2s`, which it is if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
}

/// What becomes of the image of a volume that is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// It stays, and what was written is made durable.
    #[default]
    Keep,
    /// It goes.
    Delete,
}

impl RemovalQuestion {
    /// The longest drain: an hour.
    const LONGEST: Nanos = Nanos::from_millis(3_600_000);

    /// How long clients have.
    pub(crate) fn drain(&self) -> Result<Nanos, VolumeError> {
        let Some(text) = &self.drain else { return Ok(Nanos::from_millis(30_000)) };
        let span = parse_span(text).filter(|span| *span <= Self::LONGEST);
        span.ok_or_else(|| {
            let most = shown_span(Self::LONGEST);
            VolumeError::Value(format!(
                "drain = {text:?}: a duration from 0s to {most}, such as \"30s\", is allowed"
            ))
        })
    }
}

/// How a volume is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeStage {
    /// Its image is being made or opened.
    #[default]
    Creating,
    /// Clients can connect.
    Ready,
    /// A sync has failed: flushes and FUA writes get errors until it is reopened.
    Poisoned,
    /// It is being removed, and clients may still leave.
    Draining,
    /// It could not be opened again.
    Missing,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// Its name.
    pub name: String,
    /// Its pool.
    pub pool: String,
    /// Its bytes.
    pub size: u64,
    /// Where its bytes came from; none of a volume of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Value>,
    /// Its image or device.
    pub path: PathBuf,
    /// The path of its group.
    pub group: String,
    /// The weight of its own group; none if it is in another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// The limits of its own group, those that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Value>,
    /// Its I/O priority.
    pub ioprio: String,
    /// Whether clients may only read.
    pub read_only: bool,
    /// What clients are told about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is there again after a restart.
    pub durable: bool,
    /// Whether it is declared in the server's file, which then has to change it.
    pub of_file: bool,
    /// The export that is all of it.
    pub export: String,
    /// How it is.
    pub state: VolumeStage,
    /// Why it is not ready, or what is wrong with its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Clients that are connected to its exports.
    pub clients: u32,
    /// Where clients reach it.
    pub uris: Vec<String>,
}

/// Some volumes, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumesAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The volumes.
    pub volumes: Vec<VolumeAnswer>,
    /// The name behind which to ask for more; none if these were the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolAnswer {
    /// Its name.
    pub name: String,
    /// The directory of its images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The whole devices that it is on; empty if that is not known.
    pub devices: BTreeSet<String>,
    /// The most bytes that the sizes of its volumes may add up to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// What the sizes of its volumes add up to.
    pub used: u64,
    /// Bytes that the file system of its directory has left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<u64>,
    /// Its volumes.
    pub volumes: usize,
    /// The most volumes that it may have.
    pub volumes_max: u32,
}

/// All pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolsAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The pools, in the order of the configuration.
    pub pools: Vec<PoolAnswer>,
}

impl PoolsAnswer {
    /// Makes the answer about these pools.
    pub(crate) fn new(pools: Vec<PoolAnswer>) -> Self {
        Self { version: Stat::VERSION, pools }
    }
}

/// One group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServedGroup {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// Its path.
    pub path: String,
    /// What is set of it, as it may be asked for.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
    /// Whether the server's file declares it, or an export in it.
    pub of_file: bool,
    /// Exports in it and below it.
    pub exports: usize,
    /// Volumes in it and below it.
    pub volumes_used: usize,
    /// What their sizes add up to.
    pub used: u64,
}

/// All groups, in the order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupsAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The groups.
    pub groups: Vec<ServedGroup>,
}

/// A group that was asked for, and whether it was made by that.
#[derive(Clone, Debug, PartialEq)]
pub struct PutGroup {
    /// The group.
    pub group: ServedGroup,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// A volume that was asked for, and whether it was made by that.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// The volume.
    pub volume: VolumeAnswer,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// Why a volume stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum VolumeError {
    #[error("{0}")]
    Name(String),
    #[error("{0}")]
    Value(String),
    #[error("there is no pool {pool:?}; there are: {known}")]
    NoSuchPool { pool: String, known: String },
    #[error("there is no volume {0:?}")]
    NoSuchVolume(String),
    #[error("there is no group {group:?}; there are: {known}")]
    NoSuchGroup { group: String, known: String },
    #[error("group {group:?} has {exports} exports, or groups below it: remove these first")]
    NotEmpty { group: String, exports: usize },
    #[error(
        "group {group:?} has {volumes} volumes and {left} bytes left of its quota; {asked} were \
         asked for"
    )]
    OverQuota { group: String, volumes: usize, left: u64, asked: u64 },
    #[error("{what} {name:?} is declared in the server's file: change it there, and reload")]
    DeclaredInFile { what: &'static str, name: String },
    #[error("volume {name:?} is there, {how}")]
    Exists { name: String, how: String },
    #[error("volume {0:?} is there, and was to be new")]
    NotNew(String),
    #[error("size {size}: {allowed}")]
    Size { size: u64, allowed: String },
    #[error("volume {name:?} has {clients} clients; {what} changes without clients alone")]
    InUse { name: String, clients: u32, what: String },
    #[error("volume {0:?} is being changed by somebody else: ask again")]
    Busy(String),
    #[error("pool {pool:?} has {left} bytes left of {capacity}; {asked} were asked for")]
    OverCapacity { pool: String, left: u64, capacity: u64, asked: u64 },
    #[error("pool {pool:?} has {volumes} volumes, which is all that it may have")]
    TooMany { pool: String, volumes: u32 },
    #[error("{0}")]
    NoDescriptor(String),
    #[error(
        "the file system of pool {pool:?} has {free} bytes free of {all}, and keep_free is \
         {keep_free}%"
    )]
    NoSpace { pool: String, free: u64, all: u64, keep_free: u8 },
    #[error(
        "the file system of pool {pool:?} cannot share blocks ({why}): \"copy\": true has the \
         template copied"
    )]
    NoReflink { pool: String, why: String },
    #[error("there is no state_dir: \"durable\": false makes a volume that goes with the server")]
    NoStateDir,
    #[error(
        "the record of {what} {name:?} cannot be written: {why}; after a restart it is as it was"
    )]
    NotRecorded { what: &'static str, name: String, why: String },
    #[error("pool {pool:?} has no path, so no image is made or found there")]
    NoDirectory { pool: String },
    #[error("image {path:?}: {why}")]
    Image { path: PathBuf, why: String },
    #[error("image {path:?} is there already: \"source\": {{\"path\": …}} takes it as it is")]
    ImageExists { path: PathBuf },
    #[error("image {0:?} was there before the volume, and is not deleted: data=keep is allowed")]
    NotMadeHere(PathBuf),
    #[error("pool {pool:?} has the scheduler {scheduler}, which has no limits; wfq has them")]
    NoLimits { pool: String, scheduler: String },
    #[error(
        "the last sync of volume {name:?} failed: {why}; it is not served, and its image stays"
    )]
    NotDurable { name: String, why: String },
    #[error("pool {0:?} does not answer, or the server is being stopped")]
    Unanswered(String),
}

impl Status for VolumeError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPool { .. } | Self::NoSuchVolume(_) | Self::NoSuchGroup { .. } => {
                StatusCode::NOT_FOUND
            }
            Self::Name(_)
            | Self::Value(_)
            | Self::Size { .. }
            | Self::NoReflink { .. }
            | Self::NoStateDir
            | Self::NoDirectory { .. }
            | Self::NoLimits { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::DeclaredInFile { .. }
            | Self::Exists { .. }
            | Self::InUse { .. }
            | Self::Busy(_)
            | Self::Image { .. }
            | Self::ImageExists { .. }
            | Self::NotEmpty { .. }
            | Self::NotMadeHere(_) => StatusCode::CONFLICT,
            Self::OverCapacity { .. }
            | Self::OverQuota { .. }
            | Self::TooMany { .. }
            | Self::NoDescriptor(_)
            | Self::NoSpace { .. } => StatusCode::INSUFFICIENT_STORAGE,
            Self::NotNew(_) => StatusCode::PRECONDITION_FAILED,
            Self::NotDurable { .. } | Self::NotRecorded { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unanswered(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn problem(&self) -> &'static str {
        match self {
            Self::Name(_) => "bad-name",
            Self::Value(_) => "bad-value",
            Self::NoSuchPool { .. } => "no-such-pool",
            Self::NoSuchVolume(_) => "no-such-volume",
            Self::DeclaredInFile { .. } => "declared-in-file",
            Self::Exists { .. } | Self::NotNew(_) => "exists",
            Self::Size { .. } => "bad-size",
            Self::InUse { .. } => "in-use",
            Self::Busy(_) => "busy",
            Self::NoSuchGroup { .. } => "no-such-group",
            Self::NotEmpty { .. } => "not-empty",
            Self::OverQuota { .. } => "over-quota",
            Self::OverCapacity { .. } | Self::TooMany { .. } | Self::NoDescriptor(_) => {
                "over-capacity"
            }
            Self::NoSpace { .. } => "no-space",
            Self::NoReflink { .. } => "no-reflink",
            Self::NoStateDir => "no-state-dir",
            Self::NoDirectory { .. } => "no-directory",
            Self::Image { .. } | Self::ImageExists { .. } => "bad-image",
            Self::NotMadeHere(_) => "not-made-here",
            Self::NoLimits { .. } => "no-limits",
            Self::NotDurable { .. } => "not-durable",
            Self::NotRecorded { .. } => "not-recorded",
            Self::Unanswered(_) => "unanswered",
        }
    }
}
