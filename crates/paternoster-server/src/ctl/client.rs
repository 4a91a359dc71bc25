//! The client of the control socket.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::net::UnixStream;

use super::limit::{LimitAnswer, LimitChange};
use super::place::VARIABLE;
use super::reload::{ReloadAnswer, ReloadMode};
use super::server::SETTINGS;
use super::settings::{DiskChange, SettingsAnswer};
use super::weight::{WeightAnswer, WeightChange};
use crate::stat::{Detail, Stat};

/// How long an answer may take.
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
    #[error("nobody listens on control socket {path:?}; the server has ended, start it again")]
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

/// Has the server on this control socket change a group's weights, and returns those in force then.
pub fn set_weight(path: &Path, change: &WeightChange) -> Result<WeightAnswer, CtlError> {
    let body = serde_json::to_vec(change).expect("the question has string keys only").into();
    let version = |answer: &WeightAnswer| answer.version;
    ask(path, Method::PUT, "/v1/groups/weight", body, version).map(|(_, answer)| answer)
}

/// Has the server on this control socket change a group's limits, and returns those in force then.
pub fn set_limits(path: &Path, change: &LimitChange) -> Result<LimitAnswer, CtlError> {
    let body = serde_json::to_vec(change).expect("the question has string keys only").into();
    let version = |answer: &LimitAnswer| answer.version;
    ask(path, Method::PUT, "/v1/groups/limits", body, version).map(|(_, answer)| answer)
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

/// The answer of a server, as it was received and as it is understood.
fn ask<T: DeserializeOwned>(
    path: &Path,
    method: Method,
    resource: &'static str,
    body: Bytes,
    version: fn(&T) -> u32,
) -> Result<(String, T), CtlError> {
    let request = Request::builder().method(method).uri(resource);
    let request = request.header(header::HOST, "localhost").body(Full::new(body));
    let (status, body) = fetch(path, request.expect("each part is one of HTTP's"))?;
    let json = String::from_utf8_lossy(&body).into_owned();
    if status != StatusCode::OK {
        let message = message_of(&json);
        return Err(CtlError::Status { path: path.to_owned(), status: status.as_u16(), message });
    }
    let answer: T = serde_json::from_str(&json)
        .map_err(|source| CtlError::BadAnswer { path: path.to_owned(), source })?;
    let found = version(&answer);
    if found != Stat::VERSION {
        return Err(CtlError::Version { path: path.to_owned(), found });
    }
    Ok((json, answer))
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

fn fetch(path: &Path, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), CtlError> {
    let failed = |source| CtlError::Connect { path: path.to_owned(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = async {
        let stream = UnixStream::connect(path).await.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CtlError::NoSocket { path: path.to_owned() },
            // Linux says the same of a file that is no socket.
            io::ErrorKind::ConnectionRefused if is_no_socket(path) => {
                CtlError::NotASocket { path: path.to_owned() }
            }
            io::ErrorKind::ConnectionRefused => CtlError::Refused { path: path.to_owned() },
            io::ErrorKind::PermissionDenied => CtlError::Denied { path: path.to_owned() },
            _ => failed(source),
        })?;
        let talked = talk(stream, request).await;
        talked.map_err(|source| CtlError::NoHttp { path: path.to_owned(), source })
    };
    runtime.map_err(failed)?.block_on(async {
        let seconds = PATIENCE.as_secs();
        let late = |_| CtlError::Timeout { path: path.to_owned(), seconds };
        tokio::time::timeout(PATIENCE, answer).await.map_err(late)?
    })
}

async fn talk(
    stream: UnixStream,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await?;
    Ok((status, body.to_bytes()))
}

fn is_no_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket())
}
