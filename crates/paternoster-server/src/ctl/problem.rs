//! The bodies of answers: JSON that people can read too, and for every error a problem (RFC 9457),
//! with what clients of earlier versions read beside.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::task::JoinError;

use super::answer::Status;
use crate::stat::Stat;

/// What every error says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Problem {
    /// `/problems/exists`, for programs; `about:blank` where the status says it all.
    #[serde(rename = "type")]
    kind: String,
    title: String,
    status: u16,
    /// The sentence for people.
    detail: String,
    version: u32,
    /// The same sentence.
    error: String,
}

impl Problem {
    /// Of that type, or of none if it is empty.
    pub(super) fn new(status: StatusCode, kind: &str, detail: String) -> Self {
        let (kind, title) = match kind {
            "" => {
                let reason = status.canonical_reason().unwrap_or_default();
                ("about:blank".to_owned(), reason.to_owned())
            }
            kind => (format!("/problems/{kind}"), kind.replace('-', " ")),
        };
        let (status, error) = (status.as_u16(), detail.clone());
        Self { kind, title, status, detail, version: Stat::VERSION, error }
    }

    /// The problem that an error is.
    pub(super) fn of(error: &impl Status) -> Self {
        Self::new(error.status(), error.problem(), error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).expect("it was one");
        with_type(status, &self, HeaderValue::from_static("application/problem+json"))
    }
}

pub(super) fn refuse(status: StatusCode, error: String) -> Response {
    Problem::new(status, "", error).into_response()
}

pub(super) fn failed() -> Response {
    refuse(StatusCode::INTERNAL_SERVER_ERROR, "the server failed".to_owned())
}

/// What a call has led to, on the thread that could wait for it.
pub(super) fn answered<T: Serialize, E: Status>(call: Result<Result<T, E>, JoinError>) -> Response {
    match call {
        Ok(Ok(answer)) => json(StatusCode::OK, &answer),
        Ok(Err(error)) => Problem::of(&error).into_response(),
        Err(_) => failed(),
    }
}

/// JSON that people can read too, as they may ask with `curl`.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    with_type(status, value, HeaderValue::from_static("application/json"))
}

fn with_type(status: StatusCode, value: &impl Serialize, kind: HeaderValue) -> Response {
    let mut text = serde_json::to_string_pretty(value).expect("the answer has string keys only");
    text.push('\n');
    (status, [(header::CONTENT_TYPE, kind)], text).into_response()
}
