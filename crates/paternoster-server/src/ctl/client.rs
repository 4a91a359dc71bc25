//! The client of the control socket.

use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::net::UnixStream;

use super::group::{GroupAnswer, GroupChange, GroupQuestion};
use super::hand_over::HandOverAnswer;
use super::place::VARIABLE;
use super::record::{RecordQuestion, RecordingsAnswer};
use super::reload::{ReloadAnswer, ReloadMode};
use super::resources::{GROUPS, HANDOVER, RECORDINGS, SETTINGS, TRACE};
use super::settings::{DiskChange, SettingsAnswer};
use super::trace::TraceQuestion;
use crate::stat::{Detail, Stat};

type Response = hyper::Response<Incoming>;

/// How long an answer may take, or the head of one that goes on.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer may be, in bytes: a thousand times that of a large server.
const ANSWER_MAX: usize = 64 << 20;

/// The error of a question without an answer: why there is none, and what to do about it.
#[derive(Debug, Error)]
pub enum CtlError {
    /// The socket does not exist.
    #[error(
        "there is no control socket {path:?}; name the server's with --ctl PATH or with {VARIABLE} \
         in the environment, and see that it runs, as the user who asks"
    )]
    NoSocket {
        /// Its path.
        path: PathBuf,
    },
    /// Nobody listens.
    #[error("no server listens on control socket {path:?}: it has ended; start it again")]
    Refused {
        /// Its path.
        path: PathBuf,
    },
    /// There is something else at the path.
    #[error("{path:?} is not a socket; name the server's control socket with --ctl PATH")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The socket is another user's.
    #[error("control socket {path:?} is not yours to use; ask as the user that the server runs as")]
    Denied {
        /// Its path.
        path: PathBuf,
    },
    /// The socket cannot be used.
    #[error("cannot connect to control socket {path:?}; name a server's with --ctl")]
    Connect {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No answer in time.
    #[error(
        "the server on {path:?} has not answered for {seconds} s; it hangs or is overloaded, its \
         own messages may say why"
    )]
    Timeout {
        /// The socket's path.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The answer is not HTTP.
    #[error("{path:?} does not speak HTTP; name the server's control socket, not that of clients")]
    NoHttp {
        /// The socket's path.
        path: PathBuf,
        /// What was wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server refused.
    #[error("the server on {path:?} says: {message}")]
    Status {
        /// The socket's path.
        path: PathBuf,
        /// The HTTP status.
        status: u16,
        /// What the server says.
        message: String,
    },
    /// The answer cannot be understood.
    #[error("the server on {path:?} answers in a form unknown to this program; is it paternoster?")]
    BadAnswer {
        /// The socket's path.
        path: PathBuf,
        /// What was wrong.
        source: serde_json::Error,
    },
    /// The answer is of another version.
    #[error(
        "the server on {path:?} answers in version {found}, this program knows {known}; ask with \
         the server's own program",
        known = Stat::VERSION
    )]
    Version {
        /// The socket's path.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// A server's answer.
#[derive(Clone, Debug)]
pub struct StatAnswer {
    /// As it was received, with what this program does not know.
    pub json: String,
    /// What this program knows of it.
    pub stat: Stat,
}

/// Asks the server on this control socket for its state.
pub fn fetch_stat(path: &Path, detail: Detail) -> Result<StatAnswer, CtlError> {
    let resource = match detail {
        Detail::Groups => "/v1/stat",
        Detail::Queues => "/v1/stat?verbose=true",
    };
    let (json, stat) = ask(path, Method::GET, resource, Bytes::new(), |stat: &Stat| stat.version)?;
    Ok(StatAnswer { json, stat })
}

/// Asks the server on this control socket what is set of a group.
pub fn fetch_group(path: &Path, question: &GroupQuestion) -> Result<GroupAnswer, CtlError> {
    let query = serde_urlencoded::to_string(question).expect("texts alone");
    let version = |answer: &GroupAnswer| answer.version;
    let resource = format!("{GROUPS}?{query}");
    ask(path, Method::GET, &resource, Bytes::new(), version).map(|(_, answer)| answer)
}

/// Has the server on this control socket change what is set of a group, and returns what is in
/// force then.
pub fn set_group(path: &Path, change: &GroupChange) -> Result<GroupAnswer, CtlError> {
    let body = serde_json::to_vec(change).expect("the question has string keys only").into();
    let version = |answer: &GroupAnswer| answer.version;
    ask(path, Method::PUT, GROUPS, body, version).map(|(_, answer)| answer)
}

/// Asks the server on this control socket what is set of its disks.
pub fn fetch_settings(path: &Path) -> Result<SettingsAnswer, CtlError> {
    let version = |answer: &SettingsAnswer| answer.version;
    ask(path, Method::GET, SETTINGS, Bytes::new(), version).map(|(_, answer)| answer)
}

/// Has the server on this control socket change what is set of a disk, and returns what is in force
/// then.
pub fn change_settings(path: &Path, change: &DiskChange) -> Result<SettingsAnswer, CtlError> {
    let body = serde_json::to_vec(change).expect("the question has string keys only").into();
    let version = |answer: &SettingsAnswer| answer.version;
    ask(path, Method::PUT, SETTINGS, body, version).map(|(_, answer)| answer)
}

/// Has the server on this control socket read its file again, and returns what that changes.
pub fn reload(path: &Path, mode: ReloadMode) -> Result<ReloadAnswer, CtlError> {
    let resource = match mode {
        ReloadMode::Apply => "/v1/reload",
        ReloadMode::DryRun => "/v1/reload?dry_run=true",
    };
    let version = |answer: &ReloadAnswer| answer.version;
    ask(path, Method::POST, resource, Bytes::new(), version).map(|(_, answer)| answer)
}

/// Asks the server on this control socket how another one can take over.
pub fn fetch_hand_over(path: &Path) -> Result<HandOverAnswer, CtlError> {
    hand_over(path, Method::GET)
}

/// Has SIGTERM, within a minute, leave all that the server on this control socket has to its
/// service manager.
pub fn arm_hand_over(path: &Path) -> Result<HandOverAnswer, CtlError> {
    hand_over(path, Method::POST)
}

fn hand_over(path: &Path, method: Method) -> Result<HandOverAnswer, CtlError> {
    let version = |answer: &HandOverAnswer| answer.version;
    ask(path, method, HANDOVER, Bytes::new(), version).map(|(_, answer)| answer)
}

/// Has the server on this control socket write a disk's requests to files.
pub fn start_recording(path: &Path, what: &RecordQuestion) -> Result<RecordingsAnswer, CtlError> {
    let body = serde_json::to_vec(what).expect("the question has string keys only").into();
    recordings(path, Method::POST, None, body)
}

/// Has the server on this control socket end the recording of a disk.
pub fn stop_recording(path: &Path, disk: &str) -> Result<RecordingsAnswer, CtlError> {
    recordings(path, Method::DELETE, Some(disk), Bytes::new())
}

/// Asks the server on this control socket how far its recordings are, or that of a disk.
pub fn fetch_recordings(path: &Path, disk: Option<&str>) -> Result<RecordingsAnswer, CtlError> {
    recordings(path, Method::GET, disk, Bytes::new())
}

fn recordings(
    path: &Path,
    method: Method,
    disk: Option<&str>,
    body: Bytes,
) -> Result<RecordingsAnswer, CtlError> {
    let query =
        disk.map(|disk| serde_urlencoded::to_string([("disk", disk)]).expect("texts alone"));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let version = |answer: &RecordingsAnswer| answer.version;
    let resource = format!("{RECORDINGS}{query}");
    ask(path, method, &resource, body, version).map(|(_, answer)| answer)
}

/// Has the server on this control socket record what a disk's scheduler decides, and hands over the
/// lines as they come, some at a time, until `take` or the server ends it.
pub fn follow_trace(
    path: &Path,
    question: &TraceQuestion,
    mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), CtlError> {
    let query = serde_urlencoded::to_string(question).expect("a name and a number");
    let request = request(Method::GET, &format!("{TRACE}?{query}"), Bytes::new());
    on_runtime(path, async {
        let answer = within_patience(path, connect(path, request)).await?;
        if answer.status() != StatusCode::OK {
            let status = answer.status();
            let body = within_patience(path, whole(path, answer)).await?;
            return Err(refusal(path, status, &String::from_utf8_lossy(&body)));
        }
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|source| no_http(path, source))?;
            if let Some(lines) = frame.data_ref()
                && take(lines).is_break()
            {
                break;
            }
        }
        Ok(())
    })
}

/// The answer of a server, as it was received and as it is understood.
pub(super) fn ask<T: DeserializeOwned>(
    path: &Path,
    method: Method,
    resource: &str,
    body: Bytes,
    version: fn(&T) -> u32,
) -> Result<(String, T), CtlError> {
    let (_, json) = ask_any(path, method, resource, body)?;
    let answer = parse(path, &json, version)?;
    Ok((json, answer))
}

/// The answer of a server that is no error, with its status.
pub(super) fn ask_any(
    path: &Path,
    method: Method,
    resource: &str,
    body: Bytes,
) -> Result<(StatusCode, String), CtlError> {
    let request = request(method, resource, body);
    let (status, body) = on_runtime(path, async {
        within_patience(path, async {
            let answer = connect(path, request).await?;
            let status = answer.status();
            whole(path, answer).await.map(|body| (status, body))
        })
        .await
    })?;
    let json = String::from_utf8_lossy(&body).into_owned();
    if status.is_success() { Ok((status, json)) } else { Err(refusal(path, status, &json)) }
}

/// An answer as it is understood.
pub(super) fn parse<T: DeserializeOwned>(
    path: &Path,
    json: &str,
    version: fn(&T) -> u32,
) -> Result<T, CtlError> {
    let answer: T = serde_json::from_str(json)
        .map_err(|source| CtlError::BadAnswer { path: path.to_owned(), source })?;
    let found = version(&answer);
    if found != Stat::VERSION {
        return Err(CtlError::Version { path: path.to_owned(), found });
    }
    Ok(answer)
}

fn request(method: Method, resource: &str, body: Bytes) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(resource);
    let request = request.header(header::HOST, "localhost").body(Full::new(body));
    request.expect("each part is one of HTTP's")
}

fn refusal(path: &Path, status: StatusCode, body: &str) -> CtlError {
    let message = message_of(body);
    CtlError::Status { path: path.to_owned(), status: status.as_u16(), message }
}

/// The sentence of an error's JSON, else the beginning of what was sent.
fn message_of(body: &str) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    match serde_json::from_str::<Refusal>(body) {
        Ok(refusal) => refusal.error,
        Err(_) => body.chars().filter(|c| !c.is_control()).take(200).collect(),
    }
}

/// Runs what talks to the server on `path`.
fn on_runtime<T>(
    path: &Path,
    talk: impl Future<Output = Result<T, CtlError>>,
) -> Result<T, CtlError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| CtlError::Connect { path: path.to_owned(), source })?.block_on(talk)
}

async fn within_patience<T>(
    path: &Path,
    talk: impl Future<Output = Result<T, CtlError>>,
) -> Result<T, CtlError> {
    let late = |_| CtlError::Timeout { path: path.to_owned(), seconds: PATIENCE.as_secs() };
    tokio::time::timeout(PATIENCE, talk).await.map_err(late)?
}

/// Sends a request; the answer, as far as its head.
async fn connect(path: &Path, request: Request<Full<Bytes>>) -> Result<Response, CtlError> {
    let stream = UnixStream::connect(path).await.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CtlError::NoSocket { path: path.to_owned() },
        // Linux says the same of a file that is no socket.
        io::ErrorKind::ConnectionRefused if is_no_socket(path) => {
            CtlError::NotASocket { path: path.to_owned() }
        }
        io::ErrorKind::ConnectionRefused => CtlError::Refused { path: path.to_owned() },
        io::ErrorKind::PermissionDenied => CtlError::Denied { path: path.to_owned() },
        _ => CtlError::Connect { path: path.to_owned(), source },
    })?;
    let no_http = |source| no_http(path, source);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(no_http)?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(no_http)
}

/// The whole body of an answer.
async fn whole(path: &Path, answer: Response) -> Result<Bytes, CtlError> {
    let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
    let no_http = |source| CtlError::NoHttp { path: path.to_owned(), source };
    body.map(Collected::to_bytes).map_err(no_http)
}

fn no_http(path: &Path, source: hyper::Error) -> CtlError {
    CtlError::NoHttp { path: path.to_owned(), source: source.into() }
}

fn is_no_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket())
}
