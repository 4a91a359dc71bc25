//! The question for the state, or a page of it, and how it is answered.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::catalogue_error::CatalogueError;
use super::control::Control;
use super::problem::{answered, refuse};
use crate::stat::{Detail, Stat};

/// What of the state is asked for: all of it, or a page of its groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatQuestion {
    /// Whether all of it is to have the queues of schedulers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbose: Option<bool>,
    /// This disk or pool alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// This group alone, and groups below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// At most so many groups, 1 to 1000; 100 if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Groups behind this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether the volumes of these groups are to be told too.
    #[serde(default)]
    pub volumes: bool,
}

/// Some groups of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatPage {
    /// The disks, each with those of the groups that are on it.
    #[serde(flatten)]
    pub stat: Stat,
    /// The path behind which to ask for more; none if these were the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl StatQuestion {
    /// How much of all is asked for; none if it is a page.
    pub(crate) fn detail(&self) -> Result<Option<Detail>, CatalogueError> {
        let is_page = self.volumes || self.limit.is_some();
        let is_page =
            is_page || [&self.pool, &self.group, &self.after].iter().any(|key| key.is_some());
        match (is_page, self.verbose) {
            (true, Some(true)) => Err(CatalogueError::Value(
                "verbose=true is of the whole state: pool, group, limit, after and volumes are \
                 allowed without it"
                    .to_owned(),
            )),
            (true, _) => Ok(None),
            (false, Some(true)) => Ok(Some(Detail::Queues)),
            (false, _) => Ok(Some(Detail::Groups)),
        }
    }
}

/// Answers `GET /v1/stat`.
pub(super) async fn stat(
    State(server): State<Arc<dyn Control>>,
    question: Result<Query<StatQuestion>, QueryRejection>,
) -> Response {
    let allowed = "verbose, pool, group, limit, after and volumes are allowed";
    let question = match question {
        Ok(Query(question)) => question,
        Err(error) => {
            return refuse(StatusCode::BAD_REQUEST, format!("{}; {allowed}", error.body_text()));
        }
    };
    match question.detail() {
        Ok(Some(detail)) => {
            answered(tokio::task::spawn_blocking(move || server.stat(detail)).await)
        }
        Ok(None) => {
            answered(tokio::task::spawn_blocking(move || server.stat_page(&question)).await)
        }
        Err(error) => answered(Ok(Err::<StatPage, _>(error))),
    }
}
