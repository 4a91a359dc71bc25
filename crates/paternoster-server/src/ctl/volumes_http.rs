//! The resources of volumes, pools, groups and operations, as HTTP has them.
#![expect(clippy::result_large_err, reason = "what refuses a request is its answer")]

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
use super::problem::{Problem, answered, failed, json, refuse};
use super::resources::{
    ALL_GROUPS, EXPORT_CONFIG, GROUP, OPERATION, POOLS, REOPEN, VOLUME, VOLUMES,
};
use super::server::{Control, read};
use super::volume::{Put, PutGroup, RemovalQuestion, VolumeError, VolumesQuestion};
use crate::config::{parse_span, shown_span};
use crate::stat::Stat;

/// How long a client waits for a change unless it says so, and at most: a connection has no more
/// time.
const WAIT: Nanos = Nanos::from_millis(2_000);
const WAIT_MAX: Nanos = Nanos::from_millis(5_000);

/// What a request is answered; a refusal is one too.
type Answer = Result<Response, Response>;

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
        .route(EXPORT_CONFIG, get(export_config))
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

async fn group(State((server, _)): Server, path: Result<Path<String>, PathRejection>) -> Answer {
    let path = named(path)?;
    Ok(answered(spawn_blocking(move || server.served_group(&path)).await))
}

async fn put_group(
    State((server, _)): Server,
    path: Result<Path<String>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let (path, body) = (named(path)?, object(body)?);
    Ok(match spawn_blocking(move || server.put_group(&path, &body)).await {
        Ok(Ok(PutGroup { group, is_new: true })) => json(StatusCode::CREATED, &group),
        other => answered(other.map(|done| done.map(|put| put.group))),
    })
}

async fn patch_group(
    State((server, _)): Server,
    path: Result<Path<String>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let (path, body) = (named(path)?, object(body)?);
    Ok(answered(spawn_blocking(move || server.patch_group(&path, &body)).await))
}

async fn remove_group(
    State((server, _)): Server,
    path: Result<Path<String>, PathRejection>,
) -> Answer {
    let path = named(path)?;
    let work = move || server.remove_group(&path).map(|()| removed(&path));
    Ok(answered(spawn_blocking(work).await))
}

/// The answer about what is gone.
fn removed(name: &str) -> Value {
    serde_json::json!({"version": Stat::VERSION, "removed": name})
}

async fn volumes(
    State((server, _)): Server,
    question: Result<Query<VolumesQuestion>, QueryRejection>,
) -> Answer {
    let question = query(question, "pool, group, limit and after are allowed")?;
    Ok(answered(spawn_blocking(move || server.volumes(&question)).await))
}

async fn volume(State((server, _)): Server, name: Result<Path<String>, PathRejection>) -> Answer {
    let name = named(name)?;
    Ok(answered(spawn_blocking(move || server.volume(&name)).await))
}

async fn put(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let (operation, body) = (begin("create", name, question)?, object(body)?);
    let only_new = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*");
    let name = operation.volume.clone();
    let work = move || {
        let Put { volume, is_new } = server.put_volume(&name, &body, only_new)?;
        Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, volume))
    };
    Ok(operations.run(operation, work).await)
}

async fn patch(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let (operation, body) = (begin("change", name, question)?, object(body)?);
    let name = operation.volume.clone();
    let work = move || Ok((StatusCode::OK, server.patch_volume(&name, &body)?));
    Ok(operations.run(operation, work).await)
}

async fn remove(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<RemovalQuestion>, QueryRejection>,
) -> Answer {
    let name = named(name)?;
    let question = query(question, "drain=30s, data=keep, data=delete and wait=2s are allowed")?;
    let wait = wait(question.wait.as_deref())?;
    let operation = Operation { kind: "remove", volume: name.clone(), wait };
    let work = move || {
        server.remove_volume(&name, &question)?;
        Ok((StatusCode::OK, removed(&name)))
    };
    Ok(operations.run(operation, work).await)
}

async fn reopen(
    State((server, operations)): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
) -> Answer {
    let operation = begin("reopen", name, question)?;
    let name = operation.volume.clone();
    let work = move || Ok((StatusCode::OK, server.reopen_volume(&name)?));
    Ok(operations.run(operation, work).await)
}

async fn export_config(State((server, _)): Server) -> Response {
    match spawn_blocking(move || server.export_config()).await {
        Ok(toml) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], toml).into_response(),
        Err(_) => failed(),
    }
}

async fn operation(State((_, operations)): Server, id: Result<Path<u64>, PathRejection>) -> Answer {
    let id: u64 = named(id)?;
    if let Some(operation) = operations.get(id) {
        return Ok(json(StatusCode::OK, &operation));
    }
    let detail = format!("there is no operation {id}, or it ended long ago");
    Err(Problem::new(StatusCode::NOT_FOUND, "no-such-operation", detail).into_response())
}

/// What is to be done; else the answer that refuses it.
fn begin(
    kind: &'static str,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
) -> Result<Operation, Response> {
    let volume = named(name)?;
    let wait = wait(query(question, "wait=2s is allowed")?.wait.as_deref())?;
    Ok(Operation { kind, volume, wait })
}

fn object(body: Result<Bytes, BytesRejection>) -> Result<Value, Response> {
    let body = read(body, "a JSON object of keys and values is allowed");
    body.map_err(|(status, error)| refuse(status, error))
}

/// What the path of a resource names.
fn named<T>(name: Result<Path<T>, PathRejection>) -> Result<T, Response> {
    match name {
        Ok(Path(name)) => Ok(name),
        Err(error) => Err(refuse(error.status(), error.body_text())),
    }
}

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
