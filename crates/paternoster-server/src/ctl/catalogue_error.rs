//! What is wrong with a change of volumes, exports and groups.

use std::path::PathBuf;

use axum::http::StatusCode;
use thiserror::Error;

use super::answer::Status;
use crate::config::PoolKind;

/// Why what is served stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum CatalogueError {
    #[error("{0}")]
    Name(String),
    #[error("{0}")]
    Value(String),
    #[error("there is no pool {pool:?}; there are: {known}")]
    NoSuchPool { pool: String, known: String },
    #[error("there is no disk or pool {disk:?}; there are: {known}")]
    NoSuchDisk { disk: String, known: String },
    #[error("there is no volume {0:?}")]
    NoSuchVolume(String),
    #[error("there is no export {0:?} beside those of volumes")]
    NoSuchExport(String),
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
    #[error("{what} {name:?} is there, {how}")]
    Exists { what: &'static str, name: String, how: String },
    #[error("{what} {name:?} is there, and was to be new")]
    NotNew { what: &'static str, name: String },
    #[error("volume {0:?} is not served now")]
    NotServed(String),
    #[error("volume {volume:?} has exports beside its own: {exports}; remove these first")]
    HasExports { volume: String, exports: String },
    #[error("size {size}: {allowed}")]
    Size { size: u64, allowed: String },
    #[error("volume {name:?} has {clients} clients; {what} changes without clients alone")]
    InUse { name: String, clients: u32, what: String },
    #[error("a sync of volume {0:?} has failed: reopen it first")]
    Poisoned(String),
    #[error("volume {name:?} cannot be quiesced: {why}")]
    NotQuiesced { name: String, why: String },
    #[error("volume {0:?} is quiesced: resume it first")]
    Quiesced(String),
    #[error("{0:?} is being changed by somebody else: ask again")]
    Busy(String),
    #[error("another server is taking over: ask again")]
    HandingOver,
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
    #[error("there is no state_dir: \"durable\": false makes one that goes with the server")]
    NoStateDir,
    #[error(
        "the record of {what} {name:?} could not be changed: {why}; after a restart it may be as \
         it was: ask again"
    )]
    NotRecorded { what: &'static str, name: String, why: String },
    #[error("pool {pool:?} has no path, so no image is made or found there")]
    NoDirectory { pool: String },
    #[error("image {path:?}: {why}")]
    Image { path: PathBuf, why: String },
    #[error("what stands behind volume {name:?} cannot be used: {why}")]
    NotOpened { name: String, why: String },
    #[error("pool {pool:?}: {why}")]
    NoMemory { pool: String, why: String },
    #[error("pool {pool:?} makes volumes {}", made_in(*kind))]
    Source { pool: String, kind: PoolKind },
    #[error("image {path:?} is there already: \"source\": {{\"path\": …}} takes it as it is")]
    ImageExists { path: PathBuf },
    #[error("{0} was there before the volume, and is not deleted: data=keep is allowed")]
    NotMadeHere(String),
    #[error("pool {pool:?} has the scheduler {scheduler}, which has no limits; wfq has them")]
    NoLimits { pool: String, scheduler: String },
    #[error(
        "the last sync of volume {name:?} failed: {why}; it is not served, and its image stays"
    )]
    NotDurable { name: String, why: String },
    #[error("pool {0:?} does not answer, or the server is being stopped")]
    Unanswered(String),
}

impl CatalogueError {
    /// Whether it may go by when others leave.
    pub(crate) fn is_about_room(&self) -> bool {
        matches!(
            self,
            Self::TooMany { .. }
                | Self::OverCapacity { .. }
                | Self::OverQuota { .. }
                | Self::NoMemory { .. }
                | Self::NoDescriptor(_)
        )
    }
}

/// How volumes are made in a pool.
fn made_in(kind: PoolKind) -> &'static str {
    match kind {
        PoolKind::Local => "of files and block devices: \"source\" has new, template or path",
        PoolKind::Far => {
            "of exports of other servers: \"source\": {\"uri\": URI} is needed (backend = \"nbd\")"
        }
        PoolKind::Modelled => {
            "in memory: \"source\": {\"new\": \"sparse\"} is allowed (backend = \"modelled\")"
        }
    }
}

impl Status for CatalogueError {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPool { .. }
            | Self::NoSuchDisk { .. }
            | Self::NoSuchVolume(_)
            | Self::NoSuchExport(_)
            | Self::NoSuchGroup { .. } => StatusCode::NOT_FOUND,
            Self::Name(_)
            | Self::Value(_)
            | Self::Size { .. }
            | Self::NoReflink { .. }
            | Self::NoStateDir
            | Self::NoDirectory { .. }
            | Self::Source { .. }
            | Self::NoLimits { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::DeclaredInFile { .. }
            | Self::Exists { .. }
            | Self::InUse { .. }
            | Self::Poisoned(_)
            | Self::NotServed(_)
            | Self::NotQuiesced { .. }
            | Self::Quiesced(_)
            | Self::HasExports { .. }
            | Self::Busy(_)
            | Self::HandingOver
            | Self::Image { .. }
            | Self::NotOpened { .. }
            | Self::ImageExists { .. }
            | Self::NotEmpty { .. }
            | Self::NotMadeHere(_) => StatusCode::CONFLICT,
            Self::OverCapacity { .. }
            | Self::OverQuota { .. }
            | Self::TooMany { .. }
            | Self::NoMemory { .. }
            | Self::NoDescriptor(_)
            | Self::NoSpace { .. } => StatusCode::INSUFFICIENT_STORAGE,
            Self::NotNew { .. } => StatusCode::PRECONDITION_FAILED,
            Self::NotDurable { .. } | Self::NotRecorded { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unanswered(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn problem(&self) -> &'static str {
        match self {
            Self::Name(_) => "bad-name",
            Self::Value(_) | Self::Source { .. } => "bad-value",
            Self::NoSuchPool { .. } | Self::NoSuchDisk { .. } => "no-such-pool",
            Self::NoSuchVolume(_) => "no-such-volume",
            Self::NoSuchExport(_) => "no-such-export",
            Self::DeclaredInFile { .. } => "declared-in-file",
            Self::Exists { .. } | Self::NotNew { .. } => "exists",
            Self::Size { .. } => "bad-size",
            Self::InUse { .. } => "in-use",
            Self::Poisoned(_) => "poisoned",
            Self::NotQuiesced { .. } => "not-quiesced",
            Self::Quiesced(_) => "quiesced",
            Self::Busy(_) => "busy",
            Self::HandingOver => "handing-over",
            Self::NoSuchGroup { .. } => "no-such-group",
            Self::NotEmpty { .. } | Self::HasExports { .. } => "not-empty",
            Self::NotServed(_) => "not-served",
            Self::OverQuota { .. } => "over-quota",
            Self::OverCapacity { .. }
            | Self::TooMany { .. }
            | Self::NoMemory { .. }
            | Self::NoDescriptor(_) => "over-capacity",
            Self::NoSpace { .. } => "no-space",
            Self::NoReflink { .. } => "no-reflink",
            Self::NoStateDir => "no-state-dir",
            Self::NoDirectory { .. } => "no-directory",
            Self::Image { .. } | Self::NotOpened { .. } | Self::ImageExists { .. } => "bad-image",
            Self::NotMadeHere(_) => "not-made-here",
            Self::NoLimits { .. } => "no-limits",
            Self::NotDurable { .. } => "not-durable",
            Self::NotRecorded { .. } => "not-recorded",
            Self::Unanswered(_) => "unanswered",
        }
    }
}

#[cfg(test)]
mod tests {
    const OPERATIONS: &str = include_str!("../../../../docs/operations.md");

    #[test]
    fn every_problem_is_in_the_documents() {
        let source = include_str!("catalogue_error.rs");
        let kinds = source.split("fn problem(").nth(1).expect("it is above");
        let kinds = kinds.split("#[cfg(test)]").next().expect("it ends").split('"');
        let kinds: Vec<_> = kinds.skip(1).step_by(2).collect();
        assert!(kinds.len() > 20, "{kinds:?}");
        let is_missing = |kind: &&&str| !OPERATIONS.contains(&format!("`{kind}`"));
        assert_eq!(kinds.iter().filter(is_missing).collect::<Vec<_>>(), [&""; 0]);
    }
}
