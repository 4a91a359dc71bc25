//! The resources of volumes, pools, groups and operations, as HTTP has them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use paternoster::Nanos;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::operations::{Operation, Operations};
use super::problem::{Problem, answered, json, refuse};
use super::resources::{ALL_GROUPS, GROUP, OPERATION, POOLS, REOPEN, VOLUME, VOLUMES};
use super::server::{Control, read};
use super::volume::{Put, PutGroup, RemovalQuestion, VolumeError, VolumesQuestion};
use crate::config::{parse_span, shown_span};
use crate::stat::Stat;

/// How long a client waits for a change unless it says so, and at most: a connection has no more
/// time.
const WAIT: Nanos = Nanos::from_millis(2_000);
const WAIT_MAX: Nanos = Nanos::from_millis(5_000);

type Server = State<(Arc<dyn Control>, Arc<Operations>)>;

/// A query beside which nothing else is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    wait: Option<String>,
}

pub(super) fn router(server: Arc<dyn Control>) -> Router {
    Router::new()
        .route(POOLS, get(pools))
        .route(VOLUMES, get(volumes))
        .route(VOLUME, get(volume).put(put).patch(patch).delete(remove))
        .route(REOPEN, post(reopen))
        .route(OPERATION, get(operation))
        .route(ALL_GROUPS, get(groups))
        .route(GROUP, get(group).put(put_group).patch(patch_group).delete(remove_group))
        .with_state((server, Arc::default()))
}

async fn pools(State((server, _)): Server) -> Response {
    answered(spawn_blocking(move || Ok::<_, VolumeError>(server.pools())).await)
}

async fn groups(State((server, _)): Server) -> Response {
    answered(spawn_blocking(move || Ok::<_, VolumeError>(server.all_groups())).await)
}

async fn group(State((server, _)): Server, path: Result<Path<String>, PathRejection>) -> Response {
    match named(path) {
        Ok(path) => answered(spawn_blocking(move || server.served_group(&path)).await),
        Err(refused) => refused,
    }
}

async fn put_group(
    State((server, _)): Server,
    path: Result<Path<String>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let (path, body) = match (named(path), object(body)) {
        (Ok(path), Ok(body)) => (path, body),
        (Err(refused), _) | (_, Err(refused)) => return refused,
    };
    match spawn_blocking(move || server.put_group(&path, &body)).await {
        Ok(Ok(PutGroup { group, is_new: true })) => json(StatusCode::CREATED, &group),
        other => answered(other.map(|done| done.map(|put| put.group))),
    }
}

async fn patch_group(
    State((server, _)): Server,
    path: Result<Path<String>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    match (named(path), object(body)) {
        (Ok(path), Ok(body)) => {
            answered(spawn_blocking(move || server.patch_group(&path, &body)).await)
        }
        (Err(refused), _) | (_, Err(refused)) => refused,
    }
}

async fn remove_group(
    State((server, _)): Server,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let removed = move |path: String| server.remove_group(&path).map(|()| removed(&path));
    match named(path) {
        Ok(path) => answered(spawn_blocking(move || removed(path)).await),
        Err(refused) => refused,
    }
}

/// The answer about what is gone.
fn removed(name: &str) -> Value {
    serde_json::json!({"version": Stat::VERSION, "removed": name})
}

async fn volumes(
    State((server, _)): Server,
    question: Result<Query<VolumesQuestion>, QueryRejection>,
) -> Response {
    match query(question, "pool, group, limit and after are allowed") {
        Ok(question) => answered(spawn_blocking(move || server.volumes(&question)).await),
        Err(refused) => refused,
    }
}

async fn volume(State((server, _)): Server, name: Result<Path<String>, PathRejection>) -> Response {
    match named(name) {
        Ok(name) => answered(spawn_blocking(move || server.volume(&name)).await),
        Err(refused) => refused,
    }
}

async fn put(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let (operation, body) = match begin("create", name, question, body) {
        Ok(begun) => begun,
        Err(refused) => return refused,
    };
    let only_new = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*");
    let name = operation.volume.clone();
    let work = move || {
        let Put { volume, is_new } = server.put_volume(&name, &body, only_new)?;
        Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, volume))
    };
    operations.run(operation, work).await
}

async fn patch(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let (operation, body) = match begin("change", name, question, body) {
        Ok(begun) => begun,
        Err(refused) => return refused,
    };
    let name = operation.volume.clone();
    let work = move || Ok((StatusCode::OK, server.patch_volume(&name, &body)?));
    operations.run(operation, work).await
}

async fn remove(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<RemovalQuestion>, QueryRejection>,
) -> Response {
    let allowed = "drain=30s, data=keep, data=delete and wait=2s are allowed";
    let (name, question) = match (named(name), query(question, allowed)) {
        (Ok(name), Ok(question)) => (name, question),
        (Err(refused), _) | (_, Err(refused)) => return refused,
    };
    let wait = match wait(question.wait.as_deref()) {
        Ok(wait) => wait,
        Err(refused) => return refused,
    };
    let operation = Operation { kind: "remove", volume: name.clone(), wait };
    let work = move || {
        server.remove_volume(&name, &question)?;
        Ok((StatusCode::OK, removed(&name)))
    };
    operations.run(operation, work).await
}

async fn reopen(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
) -> Response {
    let (operation, _) = match begin("reopen", name, question, Ok(Bytes::from_static(b"null"))) {
        Ok(begun) => begun,
        Err(refused) => return refused,
    };
    let name = operation.volume.clone();
    let work = move || Ok((StatusCode::OK, server.reopen_volume(&name)?));
    operations.run(operation, work).await
}

async fn operation(
    State((_, operations)): Server,
    id: Result<Path<u64>, PathRejection>,
) -> Response {
    let Path(id) = match id {
        Ok(id) => id,
        Err(error) => return refuse(error.status(), error.body_text()),
    };
    if let Some(operation) = operations.get(id) {
        return json(StatusCode::OK, &operation);
    }
    let detail = format!("there is no operation {id}, or it ended long ago");
    Problem::new(StatusCode::NOT_FOUND, "no-such-operation", detail).into_response()
}

/// What is to be done, and the body; else the answer that refuses it.
#[expect(clippy::result_large_err, reason = "it is the answer")]
fn begin(
    kind: &'static str,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<(Operation, Value), Response> {
    let volume = named(name)?;
    let wait = wait(query(question, "wait=2s is allowed")?.wait.as_deref())?;
    Ok((Operation { kind, volume, wait }, object(body)?))
}

#[expect(clippy::result_large_err, reason = "it is the answer")]
fn object(body: Result<Bytes, BytesRejection>) -> Result<Value, Response> {
    let body = read(body, "a JSON object of keys and values is allowed");
    body.map_err(|(status, error)| refuse(status, error))
}

#[expect(clippy::result_large_err, reason = "it is the answer")]
fn named(name: Result<Path<String>, PathRejection>) -> Result<String, Response> {
    match name {
        Ok(Path(name)) => Ok(name),
        Err(error) => Err(refuse(error.status(), error.body_text())),
    }
}

#[expect(clippy::result_large_err, reason = "it is the answer")]
fn query<T>(question: Result<Query<T>, QueryRejection>, allowed: &str) -> Result<T, Response> {
    match question {
        Ok(Query(question)) => Ok(question),
        Err(error) => {
            let error = format!("{}; {allowed}", error.body_text());
            Err(refuse(StatusCode::BAD_REQUEST, error))
        }
    }
}

/// How long a client waits.
#[expect(clippy::result_large_err, reason = "it is the answer")]
fn wait(asked: Option<&str>) -> Result<Duration, Response> {
    let span = asked.map_or(Some(WAIT), parse_span).filter(|span| *span <= WAIT_MAX);
    let span = span.ok_or_else(|| {
        let most = shown_span(WAIT_MAX);
        let asked = asked.unwrap_or_default();
        let error = format!("wait = {asked:?}: a duration from 0s to {most} is allowed");
        refuse(StatusCode::BAD_REQUEST, error)
    })?;
    Ok(Duration::from_nanos(span.as_nanos()))
}
