//! `/v1/recordings`: the requests of a disk, written to files of the server's machine.
//!
//! ```text
//!   POST   /v1/recordings  {"disk": "vm", "out": "/rec/monday"}   it begins
//!   GET    /v1/recordings                                         how far each is
//!   DELETE /v1/recordings?disk=vm                                 it ends
//! ```
//!
//! The server writes `OUT.blktrace.0`, which blktrace's tools read, and `OUT.pater` beside it.
//! docs/recording.md says what is in them.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::answer::{OnDisks, Status};
use super::control::Control;
use super::problem::{answered, refuse};
use super::resources::RECORDINGS;
use super::server::read;
use super::trace::UnknownDisk;

/// What to record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordQuestion {
    /// The disk.
    pub disk: String,
    /// The path of the files, without what they end in. It is absolute.
    pub out: String,
    /// How many bytes both files may have; [`RecordQuestion::BYTES`] if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// For how long; until it is ended if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Whether names and offsets are to say nothing.
    #[serde(default)]
    pub anonymous: bool,
    /// Whether what the disk still knows of the past is wanted, instead of what comes.
    #[serde(default)]
    pub last: bool,
}

impl RecordQuestion {
    /// How many bytes both files may have if that is not said.
    pub const BYTES: u64 = 4 << 30;
    /// How few may be allowed.
    pub const FEWEST: u64 = 1 << 20;
    /// For how long a recording may be asked for, in seconds.
    pub const SECONDS: RangeInclusive<f64> = 0.1..=2_592_000.0;

    /// How many bytes are allowed, and for how long.
    pub(crate) fn bounds(&self) -> Result<(u64, Option<Duration>), RecordError> {
        if self.last {
            let is_bound = self.max_bytes.is_some() || self.seconds.is_some();
            return if is_bound { Err(RecordError::LastIsWhole) } else { Ok((u64::MAX, None)) };
        }
        let max = self.max_bytes.unwrap_or(Self::BYTES);
        if max < Self::FEWEST {
            return Err(RecordError::BadMax { found: max });
        }
        match self.seconds {
            Some(found) if !Self::SECONDS.contains(&found) => {
                Err(RecordError::BadSeconds { found })
            }
            seconds => Ok((max, seconds.map(Duration::from_secs_f64))),
        }
    }

    /// The paths of both files.
    pub(crate) fn files(&self) -> Result<[PathBuf; 2], RecordError> {
        let is_named = PathBuf::from(&self.out).file_name().is_some() && !self.out.ends_with('/');
        if !self.out.starts_with('/') || !is_named {
            return Err(RecordError::NoPath { found: self.out.clone() });
        }
        Ok([".blktrace.0", ".pater"].map(|ends| PathBuf::from(format!("{}{ends}", self.out))))
    }
}

/// The newest recording of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingStatus {
    /// The disk.
    pub disk: String,
    /// The path of its files, without what they end in.
    pub out: String,
    /// Whether it goes on.
    pub runs: bool,
    /// Why it has ended; empty while it goes on.
    pub ended: String,
    /// Whether it has ended before it was whole.
    pub failed: bool,
    /// Requests that are recorded, with their replies.
    pub requests: u64,
    /// Requests that are missing, as the writer was too slow.
    pub lost: u64,
    /// Bytes of both files.
    pub bytes: u64,
    /// The time that is recorded.
    pub span_ns: u64,
}

/// The newest recordings of disks.
pub type RecordingsAnswer = OnDisks<RecordingStatus>;

/// Why there is no recording.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum RecordError {
    /// A disk that there is not.
    #[error(transparent)]
    UnknownDisk(#[from] UnknownDisk),
    /// A path that the server does not take.
    #[error("out={found:?}: an absolute path is allowed, whose last part is a name")]
    NoPath { found: String },
    /// Fewer bytes than a recording has.
    #[error("max_bytes={found}: {} (1 MiB) or more is allowed", RecordQuestion::FEWEST)]
    BadMax { found: u64 },
    /// A bound on what is there already.
    #[error("last=true: neither max_bytes nor seconds is allowed, as record_ring bounds it")]
    LastIsWhole,
    /// A time that is too short, too long, or none.
    #[error(
        "seconds={found}: {} to {} is allowed",
        RecordQuestion::SECONDS.start(),
        RecordQuestion::SECONDS.end()
    )]
    BadSeconds { found: f64 },
    /// A disk that is recorded.
    #[error("disk {disk:?} is recorded already, to {out:?}; one recording at a time is allowed")]
    Busy { disk: String, out: String },
    /// A file that cannot be made.
    #[error("cannot make {path:?}: {why}")]
    File { path: PathBuf, why: String },
    /// A disk that keeps nothing of the past.
    #[error("disk {disk:?} keeps nothing of the past: its record_ring is 0")]
    NoRing { disk: String },
    /// A disk that is not recorded.
    #[error("disk {disk:?} is not recorded")]
    NotRecorded { disk: String },
    /// A disk that is hung or has ended.
    #[error("disk {disk:?} does not answer")]
    Unanswered { disk: String },
    /// No thread could be started.
    #[error("cannot start the thread that writes: {why}")]
    NoThread { why: String },
}

impl Status for RecordError {
    fn status(&self) -> StatusCode {
        match self {
            Self::UnknownDisk(_) | Self::NotRecorded { .. } => StatusCode::NOT_FOUND,
            Self::NoPath { .. }
            | Self::BadMax { .. }
            | Self::BadSeconds { .. }
            | Self::LastIsWhole => StatusCode::BAD_REQUEST,
            Self::Busy { .. } | Self::File { .. } | Self::NoRing { .. } => StatusCode::CONFLICT,
            Self::Unanswered { .. } | Self::NoThread { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Which disk.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    disk: Option<String>,
}

pub(super) fn router(server: Arc<dyn Control>) -> Router {
    Router::new().route(RECORDINGS, get(status).post(start).delete(stop)).with_state(server)
}

async fn status(
    State(server): State<Arc<dyn Control>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Response {
    match which {
        Ok(Query(Which { disk })) => {
            let status = move || server.recordings(disk.as_deref());
            answered(tokio::task::spawn_blocking(status).await)
        }
        Err(error) => {
            refuse(error.status(), format!("{}: ?disk=NAME is allowed", error.body_text()))
        }
    }
}

async fn start(
    State(server): State<Arc<dyn Control>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let allowed = "a JSON object with disk and out is allowed, and with max_bytes, seconds, \
                   anonymous and last";
    let question: RecordQuestion = match read(body, allowed) {
        Ok(question) => question,
        Err((status, error)) => return refuse(status, error),
    };
    answered(tokio::task::spawn_blocking(move || server.start_recording(&question)).await)
}

async fn stop(
    State(server): State<Arc<dyn Control>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Response {
    let Ok(Query(Which { disk: Some(disk) })) = which else {
        return refuse(StatusCode::BAD_REQUEST, "?disk=NAME is allowed".to_owned());
    };
    answered(tokio::task::spawn_blocking(move || server.stop_recording(&disk)).await)
}
