//! Changes that may take longer than a client waits: each is an operation, which goes on when its
//! client has been answered 202 or has gone, and can be asked about.
//!
//! ```text
//!   DELETE /v1/volumes/vm7 ──▶ 200, where it is done within `wait`
//!                         └──▶ 202, Location: /v1/operations/17 ──GET──▶ running, done or failed
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::catalogue_error::CatalogueError;
use super::problem::{Problem, failed, json, refuse};
use crate::config::VOLUME;
use crate::stat::Stat;

/// How long an operation that has ended can be asked about.
const KEPT: Duration = Duration::from_secs(600);
/// How many are known at once.
const MOST: usize = 1000;
/// How many run at once: each has a thread.
const RUNNING: usize = 256;

/// How far an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationState {
    /// It goes on.
    #[default]
    Running,
    /// It has ended well.
    Done,
    /// It has ended with a problem.
    Failed,
}

/// An operation, as answers show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationAnswer {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// Its number.
    pub id: u64,
    /// What is done: `create`, `change`, `remove`, `reopen`, `quiesce` or `resume`.
    pub kind: String,
    /// To which volume; none where it is to an export.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub volume: String,
    /// To which export beside those of volumes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub export: String,
    /// How far it is.
    pub state: OperationState,
    /// Of a removal that goes on: the clients that have not left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Of a removal that goes on: when those that are left are closed, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// What has gone wrong, as the answer would have said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Value>,
}

/// All operations of a server.
#[derive(Debug, Default)]
pub(super) struct Operations {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    last: u64,
    /// With the moment at which each has ended.
    all: BTreeMap<u64, (OperationAnswer, Option<Instant>)>,
}

/// What is to be done.
pub(super) struct Operation {
    pub(super) kind: &'static str,
    /// `volume` or `export`.
    pub(super) of: &'static str,
    pub(super) name: String,
    /// How long the client waits for it.
    pub(super) wait: Duration,
    /// How long those whom it removes have to leave.
    pub(super) drain: Option<Duration>,
}

impl Operations {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operation of that number, as long as it is known.
    pub(super) fn get(&self, id: u64) -> Option<OperationAnswer> {
        let mut known = self.known();
        known.forget_old(Instant::now());
        known.all.get(&id).map(|(operation, _)| operation.clone())
    }

    /// Does `work` on a thread that may wait. Answers what it has led to, or after a while how it
    /// can be asked about.
    pub(super) async fn run<T: Serialize + Send + 'static>(
        self: &Arc<Self>,
        operation: Operation,
        work: impl FnOnce() -> Result<(StatusCode, T), CatalogueError> + Send + 'static,
    ) -> Response {
        let wait = operation.wait;
        let Some(id) = self.begin(operation) else {
            let error = format!("{RUNNING} operations are running, and no more are begun");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, error);
        };
        let operations = Arc::clone(self);
        let doing = spawn_blocking(move || {
            // Also where it panics: nothing is known to run that does not.
            let mut ending = Ending { operations, id, result: None };
            let done = work();
            ending.result = Some(done.as_ref().map(drop).map_err(Problem::of));
            done
        });
        match tokio::time::timeout(wait, doing).await {
            Ok(Ok(Ok((status, answer)))) => json(status, &answer),
            Ok(Ok(Err(error))) => Problem::of(&error).into_response(),
            Ok(Err(_)) => failed(),
            Err(_) => {
                let answer = self.get(id).unwrap_or_default();
                let accepted = json(StatusCode::ACCEPTED, &answer);
                ([(header::LOCATION, format!("/v1/operations/{id}"))], accepted).into_response()
            }
        }
    }

    fn begin(&self, operation: Operation) -> Option<u64> {
        let mut known = self.known();
        known.forget_old(Instant::now());
        let running = known.all.values().filter(|(_, ended)| ended.is_none()).count();
        if running >= RUNNING {
            return None;
        }
        known.last += 1;
        let id = known.last;
        let Operation { kind, of, name, drain, .. } = operation;
        let (kind, version) = (kind.to_owned(), Stat::VERSION);
        let (volume, export) =
            if of == VOLUME { (name, String::new()) } else { (String::new(), name) };
        let state = OperationState::Running;
        let until = drain.and_then(|drain| {
            let until = SystemTime::now().checked_add(drain)?;
            Some(until.duration_since(UNIX_EPOCH).ok()?.as_secs())
        });
        let (clients, problem) = (None, None);
        let operation =
            OperationAnswer { version, id, kind, volume, export, state, clients, until, problem };
        known.all.insert(id, (operation, None));
        Some(id)
    }
}

impl Known {
    /// Forgets operations that ended long ago, and the oldest of those that ended if there are too
    /// many.
    fn forget_old(&mut self, now: Instant) {
        let is_old =
            |ended: &Option<Instant>| ended.is_some_and(|at| now.duration_since(at) > KEPT);
        self.all.retain(|_, (_, ended)| !is_old(ended));
        while self.all.len() >= MOST {
            let oldest = self.all.iter().find(|(_, (_, ended))| ended.is_some());
            let Some((&oldest, _)) = oldest else { return };
            self.all.remove(&oldest);
        }
    }
}

/// Notes how an operation has ended when it is dropped.
struct Ending {
    operations: Arc<Operations>,
    id: u64,
    result: Option<Result<(), Problem>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut known = self.operations.known();
        let Some((operation, ended)) = known.all.get_mut(&self.id) else { return };
        *ended = Some(Instant::now());
        operation.until = None;
        let problem = match self.result.take() {
            Some(Ok(())) => None,
            Some(Err(problem)) => Some(problem),
            None => {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Some(Problem::new(status, "", "the server failed".to_owned()))
            }
        };
        operation.state =
            if problem.is_none() { OperationState::Done } else { OperationState::Failed };
        operation.problem = problem.and_then(|problem| serde_json::to_value(problem).ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create() -> Operation {
        let (name, wait) = ("a".to_owned(), Duration::ZERO);
        Operation { kind: "create", of: VOLUME, name, wait, drain: None }
    }

    #[test]
    fn those_that_have_ended_are_forgotten_after_a_while_and_the_oldest_first() {
        let operations = Operations::default();
        let end = |id| {
            let operations = Arc::new(Operations::default());
            drop(Ending { operations, id, result: Some(Ok(())) });
        };
        end(1);
        let ids: Vec<_> = (0..3).map(|_| operations.begin(create()).expect("room")).collect();
        assert_eq!(ids, [1, 2, 3]);
        let mut known = operations.known();
        let begun = Instant::now();
        known.all.get_mut(&2).expect("it is known").1 = Some(begun);
        known.forget_old(begun + KEPT);
        assert_eq!(known.all.len(), 3);
        known.forget_old(begun + KEPT + Duration::from_secs(1));
        assert_eq!(known.all.keys().copied().collect::<Vec<_>>(), [1, 3]);
        known.all.get_mut(&3).expect("it is known").1 = Some(begun);
        for id in 100..100 + MOST as u64 {
            known.all.insert(id, (OperationAnswer::default(), None));
        }
        known.forget_old(begun);
        assert!(!known.all.contains_key(&3) && known.all.contains_key(&1), "one runs");
    }

    #[test]
    fn so_many_run_at_once_and_no_more() {
        let operations = Operations::default();
        let begin = || operations.begin(create());
        assert!((0..RUNNING).all(|_| begin().is_some()));
        assert_eq!(begin(), None);
        operations.known().all.get_mut(&7).expect("it is known").1 = Some(Instant::now());
        assert!(begin().is_some());
    }
}
