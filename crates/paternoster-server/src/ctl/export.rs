//! The questions and answers of `/v1/exports`: exports beside those that volumes have of their own.
//!
//! ```text
//!   GET    /v1/exports?volume=&limit=100&after=NAME
//!   PUT    /v1/exports/backup   {"volume": "vm7", "read_only": true, "weight": 20}
//!   PATCH  /v1/exports/backup   {"weight": 10}
//!   DELETE /v1/exports/backup?drain=30s
//! ```

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::volume::VolumeStage;

/// Which exports are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportsQuestion {
    /// Those of this volume alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// At most so many, 1 to 1000; 100 if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Those behind this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// One export that is not a volume's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportAnswer {
    /// [`Stat::VERSION`](crate::stat::Stat::VERSION).
    pub version: u32,
    /// Its name.
    pub name: String,
    /// Its disk or pool.
    pub disk: String,
    /// Its volume, if it is of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Where on the disk or volume it starts, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
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
    /// How it is: `ready`, `draining` or `missing`.
    pub state: VolumeStage,
    /// Why it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Clients that are connected.
    pub clients: u32,
    /// The unix socket to which a virtual machine attaches, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<PathBuf>,
    /// Where clients reach it.
    pub uris: Vec<String>,
}

/// Some exports, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportsAnswer {
    /// [`Stat::VERSION`](crate::stat::Stat::VERSION).
    pub version: u32,
    /// The exports.
    pub exports: Vec<ExportAnswer>,
    /// The name behind which to ask for more; none if these were the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
