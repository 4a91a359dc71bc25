//! `GET /v1/trace`: what a disk's scheduler decides, line by line, for as long as somebody reads.
//!
//! ```text
//!   GET /v1/trace?disk=vm&group=/gold&seconds=10
//!   {"t":5021884,"tenant":"/gold","ev":"Q","rq":"web#3.0"}
//!   {"t":5021884,"tenant":"/gold","ev":"D","rq":"web#3.0"}
//!   {"t":5102210,"tenant":"/gold","ev":"arm_idle","q":"web#3S","ns":2000000,"group":1}
//! ```
//!
//! A reader that is too slow misses lines; a line says how many events were lost. One reads a disk
//! at a time, as with `blktrace`.

use std::io;
use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::channel::Channel;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::runtime::Handle;

use super::answer::Status;
use crate::following::be_nice;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceQuestion {
    /// The disk.
    pub disk: String,
    /// The group of which lines are told, with those below it and what is of no group; all where
    /// it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// For how long; until the reader or the server ends if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl TraceQuestion {
    /// For how long a trace may be asked for, in seconds.
    pub const SECONDS: RangeInclusive<f64> = 0.1..=86_400.0;

    pub(super) fn span(&self) -> Result<Option<Duration>, TraceError> {
        let Some(seconds) = self.seconds else { return Ok(None) };
        if Self::SECONDS.contains(&seconds) {
            return Ok(Some(Duration::from_secs_f64(seconds)));
        }
        Err(TraceError::BadSeconds { found: seconds })
    }
}

/// The lines of a disk's decisions, those of a moment at a time. Each waits for the next moment.
pub type DecisionLines = Box<dyn Iterator<Item = String> + Send>;

/// A disk that there is not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no disk {disk:?}; there are: {known}")]
pub struct UnknownDisk {
    /// Its name.
    pub disk: String,
    /// Those that there are.
    pub known: String,
}

/// Why there is no trace.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum TraceError {
    /// A disk that there is not.
    #[error(transparent)]
    UnknownDisk(#[from] UnknownDisk),
    /// A group that is not on the disk.
    #[error("there is no group {group:?} on disk {disk:?}; there are: {known}")]
    UnknownGroup { group: String, disk: String, known: String },
    /// A time that is too short, too long, or none.
    #[error(
        "seconds={found}: {} to {} is allowed",
        TraceQuestion::SECONDS.start(),
        TraceQuestion::SECONDS.end()
    )]
    BadSeconds { found: f64 },
    /// A disk that somebody else traces.
    #[error("disk {disk:?} is traced already; one trace at a time is allowed")]
    Busy { disk: String },
    /// A disk that is hung or has ended.
    #[error("disk {disk:?} does not answer")]
    Unanswered { disk: String },
}

impl Status for TraceError {
    fn status(&self) -> StatusCode {
        match self {
            Self::UnknownDisk(_) | Self::UnknownGroup { .. } => StatusCode::NOT_FOUND,
            Self::BadSeconds { .. } => StatusCode::BAD_REQUEST,
            Self::Busy { .. } => StatusCode::CONFLICT,
            Self::Unanswered { .. } => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// How long a reader may leave what is sent to it.
const STALL: Duration = Duration::from_secs(10);

/// The type of the answer: JSON, an object a line.
const CONTENT_TYPE: &str = "application/jsonl";

/// Marks an answer that goes on for as long as its reader wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoesOn;

/// The answer that these lines are, for so long. Where the reader does not keep up, or the machine
/// is too busy with its clients, lines are lost where they are recorded.
pub(super) fn answer(lines: DecisionLines, span: Option<Duration>) -> io::Result<Response> {
    let (mut sender, body) = Channel::<Bytes>::new(1);
    let end = span.map(|span| Instant::now() + span);
    let runtime = Handle::current();
    thread::Builder::new().name("trace".to_owned()).spawn(move || {
        be_nice();
        for text in lines {
            // An empty one is not sent, but finds out that the reader has gone. One that is there
            // and does not read keeps the disk from others no longer than that.
            let sent = async { tokio::time::timeout(STALL, sender.send_data(text.into())).await };
            let is_sent = runtime.block_on(sent).is_ok_and(|sent| sent.is_ok());
            if !is_sent || end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
        }
    })?;
    let mut answer = ([(header::CONTENT_TYPE, CONTENT_TYPE)], Body::new(body)).into_response();
    answer.extensions_mut().insert(GoesOn);
    Ok(answer)
}
