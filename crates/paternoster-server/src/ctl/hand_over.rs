//! `/v1/handover`: how another server can take over from this one.
//!
//! ```text
//!   GET  /v1/handover     where it waits for that, and with which file it was started
//!   POST /v1/handover     the next SIGTERM, within a minute, leaves all to the service manager
//! ```

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::answer::Status;
use super::control::Control;
use super::problem::answered;
use super::resources::HANDOVER;
use crate::stat::Stat;

/// How another server can take over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandOverAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The file with which the server was started; none where it had none.
    pub file: Option<PathBuf>,
    /// Where it waits for another server; none where it does not.
    pub socket: Option<PathBuf>,
    /// For how many seconds SIGTERM still leaves all to the service manager; none where it does
    /// not.
    pub armed_s: Option<u64>,
}

impl HandOverAnswer {
    pub(crate) fn new(
        file: Option<PathBuf>,
        socket: Option<PathBuf>,
        armed_s: Option<u64>,
    ) -> Self {
        Self { version: Stat::VERSION, file, socket, armed_s }
    }
}

/// Why nothing can be handed over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// Not by this server.
    #[error("this server hands nothing over")]
    NotServed,
    /// There is nobody to leave it to.
    #[error(
        "no service manager has started this server (NOTIFY_SOCKET is not set): \
         serve FILE --take-over is allowed"
    )]
    NoManager,
}

impl Status for HandOverError {
    fn status(&self) -> StatusCode {
        StatusCode::CONFLICT
    }
}

pub(super) fn router(server: Arc<dyn Control>) -> Router {
    Router::new().route(HANDOVER, get(hand_over).post(arm)).with_state(server)
}

async fn hand_over(State(server): State<Arc<dyn Control>>) -> Response {
    answered(tokio::task::spawn_blocking(move || server.hand_over()).await)
}

async fn arm(State(server): State<Arc<dyn Control>>) -> Response {
    answered(tokio::task::spawn_blocking(move || server.arm_hand_over()).await)
}
