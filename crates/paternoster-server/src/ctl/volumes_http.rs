//! The resources of volumes, exports, pools, groups and operations, as HTTP has them.
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
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::catalogue_error::CatalogueError;
use super::control::Control;
use super::export::ExportsQuestion;
use super::operations::{Operation, OperationAnswer, OperationState, Operations};
use super::problem::{Problem, answered, failed, json, refuse};
use super::resources::{
    ALL_GROUPS, EXPORT, EXPORT_CONFIG, EXPORTS, GROUP, OPERATION, POOL, POOLS, QUIESCE, REOPEN,
    RESUME, VOLUME, VOLUMES,
};
use super::server::read;
use super::volume::{Data, Put, RemovalQuestion, VolumeAnswer, VolumesQuestion};
use crate::config::{self, parse_span, shown_span};
use crate::stat::Stat;

/// How long a client waits for a change unless it says so, and at most: a connection has no more
/// time.
const WAIT: Nanos = Nanos::from_millis(2_000);
const WAIT_MAX: Nanos = Nanos::from_millis(5_000);

/// What a request is answered; a refusal is one too.
type Answer = Result<Response, Response>;

/// What makes something of that name as a body says, which may have to be new.
type DoPut<T> = fn(&dyn Control, &str, &Value, bool) -> Result<Put<T>, CatalogueError>;

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
        .route(POOL, get(pool))
        .route(VOLUMES, get(volumes))
        .route(VOLUME, get(volume).put(put).patch(patch).delete(remove))
        .route(REOPEN, post(reopen))
        .route(QUIESCE, post(quiesce))
        .route(RESUME, post(resume))
        .route(EXPORTS, get(exports))
        .route(EXPORT, get(export).put(put_export).patch(patch_export).delete(remove_export))
        .route(OPERATION, get(operation))
        .route(EXPORT_CONFIG, get(export_config))
        .route(ALL_GROUPS, get(groups))
        .route(GROUP, get(group).put(put_group).patch(patch_group).delete(remove_group))
        .with_state((server, Arc::default()))
}

async fn pools(State((server, _)): Server) -> Response {
    answered(spawn_blocking(move || Ok::<_, CatalogueError>(server.pools())).await)
}

async fn pool(State((server, _)): Server, name: Result<Path<String>, PathRejection>) -> Answer {
    let name = named(name)?;
    Ok(answered(spawn_blocking(move || server.pool(&name)).await))
}

async fn groups(State((server, _)): Server) -> Response {
    answered(spawn_blocking(move || Ok::<_, CatalogueError>(server.all_groups())).await)
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
        Ok(Ok(Put { shown, is_new: true })) => json(StatusCode::CREATED, &shown),
        other => answered(other.map(|done| done.map(|put| put.shown))),
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
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let operation = begin("create", config::VOLUME, name, question)?;
    run_put(server, operation, &headers, body, <dyn Control>::put_volume).await
}

async fn patch(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let operation = begin("change", config::VOLUME, name, question)?;
    run_patch(server, operation, body, <dyn Control>::patch_volume).await
}

async fn remove(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<RemovalQuestion>, QueryRejection>,
) -> Answer {
    let question = query(question, "drain=30s, data=keep, data=delete and wait=2s are allowed")?;
    run_remove(server, config::VOLUME, named(name)?, question, <dyn Control>::remove_volume).await
}

async fn exports(
    State((server, _)): Server,
    question: Result<Query<ExportsQuestion>, QueryRejection>,
) -> Answer {
    let question = query(question, "volume, limit and after are allowed")?;
    Ok(answered(spawn_blocking(move || server.exports(&question)).await))
}

async fn export(State((server, _)): Server, name: Result<Path<String>, PathRejection>) -> Answer {
    let name = named(name)?;
    Ok(answered(spawn_blocking(move || server.export(&name)).await))
}

async fn put_export(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let operation = begin("create", config::EXPORT, name, question)?;
    run_put(server, operation, &headers, body, <dyn Control>::put_export).await
}

async fn patch_export(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let operation = begin("change", config::EXPORT, name, question)?;
    run_patch(server, operation, body, <dyn Control>::patch_export).await
}

async fn remove_export(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<RemovalQuestion>, QueryRejection>,
) -> Answer {
    let question = query(question, "drain=30s and wait=2s are allowed")?;
    if question.data != Data::default() {
        let error = "data=delete: an export has no data; drain=30s and wait=2s are allowed";
        return Err(refuse(StatusCode::BAD_REQUEST, error.to_owned()));
    }
    run_remove(server, config::EXPORT, named(name)?, question, <dyn Control>::remove_export).await
}

async fn reopen(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
) -> Answer {
    let operation = begin("reopen", config::VOLUME, name, question)?;
    run_post(server, operation, <dyn Control>::reopen_volume).await
}

async fn quiesce(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
) -> Answer {
    let operation = begin("quiesce", config::VOLUME, name, question)?;
    run_post(server, operation, <dyn Control>::quiesce_volume).await
}

async fn resume(
    State(server): Server,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
) -> Answer {
    let operation = begin("resume", config::VOLUME, name, question)?;
    run_post(server, operation, <dyn Control>::resume_volume).await
}

async fn export_config(State((server, _)): Server) -> Response {
    match spawn_blocking(move || server.export_config()).await {
        Ok(toml) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], toml).into_response(),
        Err(_) => failed(),
    }
}

async fn operation(
    State((server, operations)): Server,
    id: Result<Path<u64>, PathRejection>,
) -> Answer {
    let id: u64 = named(id)?;
    if let Some(operation) = operations.get(id) {
        let shown = move || Ok::<_, CatalogueError>(with_clients(&*server, operation));
        return Ok(answered(spawn_blocking(shown).await));
    }
    let detail = format!("there is no operation {id}, or it ended long ago");
    Err(Problem::new(StatusCode::NOT_FOUND, "no-such-operation", detail).into_response())
}

/// The same, of a removal that goes on with how many it waits for.
fn with_clients(server: &dyn Control, operation: OperationAnswer) -> OperationAnswer {
    let waits = operation.state == OperationState::Running && operation.until.is_some();
    let clients = match (&*operation.volume, &*operation.export) {
        _ if !waits => None,
        ("", export) => server.export(export).ok().map(|export| export.clients),
        (volume, _) => server.volume(volume).ok().map(|volume| volume.clients),
    };
    OperationAnswer { clients, ..operation }
}

/// Makes what the body says, or has it be so; with `If-None-Match: *` it must not be there.
async fn run_put<T: Serialize + Send + 'static>(
    (server, operations): (Arc<dyn Control>, Arc<Operations>),
    operation: Operation,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
    put: DoPut<T>,
) -> Answer {
    let (name, body) = (operation.name.clone(), object(body)?);
    let only_new = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*");
    let work = move || {
        let Put { shown, is_new } = put(&*server, &name, &body, only_new)?;
        Ok((if is_new { StatusCode::CREATED } else { StatusCode::OK }, shown))
    };
    Ok(operations.run(operation, work).await)
}

/// Changes what there is by a merge patch.
async fn run_patch<T: Serialize + Send + 'static>(
    (server, operations): (Arc<dyn Control>, Arc<Operations>),
    operation: Operation,
    body: Result<Bytes, BytesRejection>,
    patch: fn(&dyn Control, &str, &Value) -> Result<T, CatalogueError>,
) -> Answer {
    let (name, body) = (operation.name.clone(), object(body)?);
    let work = move || Ok((StatusCode::OK, patch(&*server, &name, &body)?));
    Ok(operations.run(operation, work).await)
}

/// Does something with a volume, of which no body says more.
async fn run_post(
    (server, operations): (Arc<dyn Control>, Arc<Operations>),
    operation: Operation,
    does: fn(&dyn Control, &str) -> Result<VolumeAnswer, CatalogueError>,
) -> Answer {
    let name = operation.name.clone();
    let work = move || Ok((StatusCode::OK, does(&*server, &name)?));
    Ok(operations.run(operation, work).await)
}

/// Removes what there is.
async fn run_remove(
    (server, operations): (Arc<dyn Control>, Arc<Operations>),
    of: &'static str,
    name: String,
    question: RemovalQuestion,
    remove: fn(&dyn Control, &str, &RemovalQuestion) -> Result<(), CatalogueError>,
) -> Answer {
    let wait = wait(question.wait.as_deref())?;
    // One that is wrong is refused by what takes it.
    let drain = question.drain().ok().map(|drain| Duration::from_nanos(drain.as_nanos()));
    let operation = Operation { kind: "remove", of, name: name.clone(), wait, drain };
    let work = move || {
        remove(&*server, &name, &question)?;
        Ok((StatusCode::OK, removed(&name)))
    };
    Ok(operations.run(operation, work).await)
}

/// What is to be done; else the answer that refuses it.
fn begin(
    kind: &'static str,
    of: &'static str,
    name: Result<Path<String>, PathRejection>,
    question: Result<Query<Wait>, QueryRejection>,
) -> Result<Operation, Response> {
    let name = named(name)?;
    let wait = wait(query(question, "wait=2s is allowed")?.wait.as_deref())?;
    Ok(Operation { kind, of, name, wait, drain: None })
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
