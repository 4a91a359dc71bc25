//! The questions and answers of `/v1/volumes` and `/v1/pools`.
//!
//! ```text
//!   GET    /v1/volumes?pool=&group=&limit=100&after=NAME
//!   GET    /v1/volumes/vm7
//!   PUT    /v1/volumes/vm7      {"pool": "fast", "size": "10G", "weight": 200}     makes it, once
//!   PATCH  /v1/volumes/vm7      {"size": "20G"}                                    a merge patch
//!   DELETE /v1/volumes/vm7?drain=30s&data=keep
//!   POST   /v1/volumes/vm7/reopen
//!   POST   /v1/volumes/vm7/quiesce    and resume
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;

use paternoster::Nanos;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::catalogue_error::CatalogueError;
use crate::config::{parse_span, shown_span};
use crate::stat::{FarStat, Stat};

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

/// How many objects an answer has if the question does not say it, and at most.
const PAGE: [usize; 2] = [100, 1000];

/// How many objects an answer is to have.
pub(crate) fn page_limit(limit: Option<usize>) -> Result<usize, CatalogueError> {
    let [usual, most] = PAGE;
    let limit = limit.unwrap_or(usual);
    let refused = || CatalogueError::Value(format!("limit = {limit}: 1 to {most} is allowed"));
    (1..=most).contains(&limit).then_some(limit).ok_or_else(refused)
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
    pub(crate) fn drain(&self) -> Result<Nanos, CatalogueError> {
        let Some(text) = &self.drain else { return Ok(Nanos::from_millis(30_000)) };
        let span = parse_span(text).filter(|span| *span <= Self::LONGEST);
        span.ok_or_else(|| {
            let most = shown_span(Self::LONGEST);
            CatalogueError::Value(format!(
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
    /// Its server is disconnected for a restart, and requests wait until it is resumed.
    Quiesced,
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
    /// Its image or device, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The export of another server that it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The path of its group.
    pub group: String,
    /// The weight of its own group; none if it is in another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// The limits of its own group, those that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Value>,
    /// Whose certificates enter it over TLS, of its own group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identities: Option<Value>,
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
    /// The export that is all of it, unless the file says that there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
    /// How it is.
    pub state: VolumeStage,
    /// Why it is not ready, or what is wrong with its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The connections to its server, if it is an export of another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far: Option<FarStat>,
    /// Clients that are connected to its exports.
    pub clients: u32,
    /// The unix socket to which a virtual machine attaches, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<PathBuf>,
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
    /// [`Stat::VERSION`].
    pub version: u32,
    /// Its name.
    pub name: String,
    /// What its volumes are: `file`, `nbd` or `modelled`.
    pub backend: String,
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
    /// Most requests that its scheduler has in the device; none if it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
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

/// What was asked for, and whether it was made by that.
#[derive(Clone, Debug, PartialEq)]
pub struct Put<T> {
    /// How it is.
    pub shown: T,
    /// Whether it was not there before.
    pub is_new: bool,
}
