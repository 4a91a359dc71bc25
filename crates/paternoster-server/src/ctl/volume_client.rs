//! The client of `/v1/volumes`, `/v1/exports`, `/v1/pools`, `/v1/groups` and `/v1/operations`.

use std::path::Path;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::client::{CtlError, ask, ask_any, parse};
use super::export::{ExportAnswer, ExportsAnswer, ExportsQuestion};
use super::operations::{OperationAnswer, OperationState};
use super::resources::{ALL_GROUPS, EXPORT_CONFIG, EXPORTS, POOLS, VOLUMES};
use super::volume::{
    GroupsAnswer, PoolsAnswer, RemovalQuestion, VolumeAnswer, VolumesAnswer, VolumesQuestion,
};
use crate::uri::encode;

/// How often an operation is asked about.
const LOOK: Duration = Duration::from_millis(100);

/// A change of a volume, as it was answered.
#[derive(Clone, Debug)]
pub enum Changed {
    /// It is done: the JSON of the answer.
    Done(String),
    /// It goes on, with or without whoever asked.
    GoesOn(OperationAnswer),
}

/// Asks the server on this control socket for its pools.
pub fn fetch_pools(path: &Path) -> Result<(String, PoolsAnswer), CtlError> {
    ask(path, Method::GET, POOLS, Bytes::new(), |answer: &PoolsAnswer| answer.version)
}

/// Asks for volumes, a page of them.
pub fn fetch_volumes(
    path: &Path,
    question: &VolumesQuestion,
) -> Result<(String, VolumesAnswer), CtlError> {
    let resource = with_query(VOLUMES, question);
    ask(path, Method::GET, &resource, Bytes::new(), |answer: &VolumesAnswer| answer.version)
}

/// Asks for one volume.
pub fn fetch_volume(path: &Path, name: &str) -> Result<(String, VolumeAnswer), CtlError> {
    let version = |answer: &VolumeAnswer| answer.version;
    ask(path, Method::GET, &volume(name), Bytes::new(), version)
}

/// Has a volume be made as the body says, or be as it says.
pub fn put_volume(path: &Path, name: &str, body: &Value) -> Result<Changed, CtlError> {
    change(path, Method::PUT, &volume(name), body)
}

/// Has a volume be changed by a merge patch.
pub fn patch_volume(path: &Path, name: &str, keys: &Value) -> Result<Changed, CtlError> {
    change(path, Method::PATCH, &volume(name), keys)
}

/// Has a volume be removed.
pub fn remove_volume(
    path: &Path,
    name: &str,
    question: &RemovalQuestion,
) -> Result<Changed, CtlError> {
    let resource = with_query(&volume(name), question);
    change(path, Method::DELETE, &resource, &Value::Null)
}

/// Has a volume be opened again.
pub fn reopen_volume(path: &Path, name: &str) -> Result<Changed, CtlError> {
    change(path, Method::POST, &format!("{}/reopen", volume(name)), &Value::Null)
}

/// Has the server of a volume be disconnected, which may then restart.
pub fn quiesce_volume(path: &Path, name: &str) -> Result<Changed, CtlError> {
    change(path, Method::POST, &format!("{}/quiesce", volume(name)), &Value::Null)
}

/// Has a volume that was quiesced go on.
pub fn resume_volume(path: &Path, name: &str) -> Result<Changed, CtlError> {
    change(path, Method::POST, &format!("{}/resume", volume(name)), &Value::Null)
}

/// Asks for exports beside those that volumes have of their own, a page of them.
pub fn fetch_exports(
    path: &Path,
    question: &ExportsQuestion,
) -> Result<(String, ExportsAnswer), CtlError> {
    let resource = with_query(EXPORTS, question);
    ask(path, Method::GET, &resource, Bytes::new(), |answer: &ExportsAnswer| answer.version)
}

/// Asks for one of these exports.
pub fn fetch_export(path: &Path, name: &str) -> Result<(String, ExportAnswer), CtlError> {
    let version = |answer: &ExportAnswer| answer.version;
    ask(path, Method::GET, &export(name), Bytes::new(), version)
}

/// Has an export be made as the body says, or be as it says.
pub fn put_export(path: &Path, name: &str, body: &Value) -> Result<Changed, CtlError> {
    change(path, Method::PUT, &export(name), body)
}

/// Has an export be changed by a merge patch.
pub fn patch_export(path: &Path, name: &str, keys: &Value) -> Result<Changed, CtlError> {
    change(path, Method::PATCH, &export(name), keys)
}

/// Has an export be removed.
pub fn remove_export(
    path: &Path,
    name: &str,
    question: &RemovalQuestion,
) -> Result<Changed, CtlError> {
    change(path, Method::DELETE, &with_query(&export(name), question), &Value::Null)
}

/// Asks how far an operation is.
pub fn fetch_operation(path: &Path, id: u64) -> Result<(String, OperationAnswer), CtlError> {
    let version = |answer: &OperationAnswer| answer.version;
    ask(path, Method::GET, &format!("/v1/operations/{id}"), Bytes::new(), version)
}

/// Asks for what requests have made, as a file declares it.
pub fn fetch_export_config(path: &Path) -> Result<String, CtlError> {
    ask_any(path, Method::GET, EXPORT_CONFIG, Bytes::new()).map(|(_, toml)| toml)
}

/// Waits until an operation has ended.
pub fn wait_for(path: &Path, mut operation: OperationAnswer) -> Result<OperationAnswer, CtlError> {
    while operation.state == OperationState::Running {
        std::thread::sleep(LOOK);
        operation = fetch_operation(path, operation.id)?.1;
    }
    Ok(operation)
}

fn change(path: &Path, method: Method, resource: &str, body: &Value) -> Result<Changed, CtlError> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let (status, json) = ask_any(path, method, resource, body)?;
    if status == StatusCode::ACCEPTED {
        let version = |answer: &OperationAnswer| answer.version;
        return parse(path, &json, version).map(Changed::GoesOn);
    }
    Ok(Changed::Done(json))
}

/// The resource of a volume.
fn volume(name: &str) -> String {
    format!("{VOLUMES}/{}", encode(name.as_bytes(), b""))
}

/// The resource of an export.
fn export(name: &str) -> String {
    format!("{EXPORTS}/{}", encode(name.as_bytes(), b""))
}

fn with_query(resource: &str, question: &impl Serialize) -> String {
    let query = serde_urlencoded::to_string(question).expect("texts and numbers");
    if query.is_empty() { resource.to_owned() } else { format!("{resource}?{query}") }
}

/// Asks for all groups, as the file and requests set them.
pub fn fetch_groups(path: &Path) -> Result<(String, GroupsAnswer), CtlError> {
    let version = |answer: &GroupsAnswer| answer.version;
    ask(path, Method::GET, ALL_GROUPS, Bytes::new(), version)
}

/// Has a group be made as the body says, or be as it says.
pub fn put_group(path: &Path, group: &str, body: &Value) -> Result<String, CtlError> {
    let body = body.to_string().into();
    ask_any(path, Method::PUT, &resource_of(group), body).map(|(_, json)| json)
}

/// Has a group be removed.
pub fn remove_group(path: &Path, group: &str) -> Result<String, CtlError> {
    ask_any(path, Method::DELETE, &resource_of(group), Bytes::new()).map(|(_, json)| json)
}

/// The resource of a group.
fn resource_of(group: &str) -> String {
    format!("{ALL_GROUPS}/{}", encode(group.as_bytes(), b""))
}
