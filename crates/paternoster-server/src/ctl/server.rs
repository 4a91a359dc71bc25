//! The server of the control socket.

use std::convert::Infallible;
use std::future;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::Listener;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::control::Control;
use super::group::{GroupChange, GroupQuestion};
use super::hand_over;
use super::problem::{Problem, answered, failed, json, refuse};
use super::record;
use super::reload::ReloadMode;
use super::resources::{self, GROUPS, METRICS, OPENAPI, RELOAD, SETTINGS, STAT, TRACE};
use super::settings::DiskChange;
use super::slots::{Progress, Slots, Stage};
use super::stat_page;
use super::trace::{self, GoesOn, TraceError, TraceQuestion};
use super::volumes_http;
use crate::metrics::{self, Metrics};

/// Connections at once. One more takes the slot of one that has not asked: see `slots.rs`.
const CONNECTIONS: u32 = 32;

/// How long a connection may take for its request and the answer: longer than an owner may.
const TIMEOUT: Duration = Duration::from_secs(8);

/// How long connections have to end when the server is stopped.
const GRACE: Duration = Duration::from_secs(1);

/// The header of every answer, with the UUID of the directory of records.
const INSTANCE: HeaderName = HeaderName::from_static(resources::INSTANCE);

/// The running control plane. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct CtlServer {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl CtlServer {
    /// Accepts no more connections, and returns when the last has ended, after a second at most.
    pub fn stop(self) {
        self.stop.send_replace(true);
        self.thread.join().expect("the control plane does not panic");
    }
}

/// Answers on `listener`, in a thread of its own, until it is stopped.
pub fn serve(listener: UnixListener, server: Arc<dyn Control>) -> io::Result<CtlServer> {
    listener.set_nonblocking(true)?;
    start("ctl", move || tokio::net::UnixListener::from_std(listener), router(server))
}

/// Answers by `router` where metrics are, in a thread of its own, until it is stopped.
pub(crate) fn serve_metrics(listener: TcpListener, router: Router) -> io::Result<CtlServer> {
    listener.set_nonblocking(true)?;
    let router = router.fallback(no_such_metrics);
    start("metrics", move || tokio::net::TcpListener::from_std(listener), router)
}

/// Starts the thread of that name, on which `router` answers.
fn start<L: Listener>(
    name: &str,
    listener: impl FnOnce() -> io::Result<L>,
    router: Router,
) -> io::Result<CtlServer> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _context = runtime.enter();
        listener()?
    };
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        runtime.block_on(answer(listener, router, stopped, TIMEOUT));
        // Somebody may still wait in `Control::stat`; that is not waited for.
        runtime.shutdown_background();
    })?;
    Ok(CtlServer { stop, thread })
}

async fn answer(
    mut listener: impl Listener,
    router: Router,
    stop: watch::Receiver<bool>,
    patience: Duration,
) {
    let mut slots = Slots::new(CONNECTIONS);
    tokio::select! {
        () = accept(&mut listener, router, &mut slots, patience) => {}
        () = until_set(stop) => {}
    }
    // Every slot is free when the last connection has ended.
    let _ = tokio::time::timeout(GRACE, slots.all_free()).await;
}

/// Accepts connections, each of which has its slot and its time.
async fn accept(
    listener: &mut impl Listener,
    router: Router,
    slots: &mut Slots,
    patience: Duration,
) {
    loop {
        // Where there is no descriptor for it, this waits and tries again.
        let (stream, _) = listener.accept().await;
        let slot = slots.take().await;
        let progress = Progress::new();
        let service = watched(TowerToHyperService::new(router.clone()), progress.clone());
        let mut http = http1::Builder::new();
        let serving = http.keep_alive(false).serve_connection(TokioIo::new(stream), service);
        let late = too_late(progress.clone(), patience);
        let connection = tokio::spawn(async move {
            // What becomes of it is the client's to see.
            tokio::select! {
                _ = serving => {}
                () = late => {}
            }
            drop(slot);
        });
        slots.note(progress, connection.abort_handle());
        // It has asked, mostly: it does so before the next takes its slot.
        tokio::task::yield_now().await;
    }
}

/// Ends when the connection has had its time; never while its answer is one that goes on.
async fn too_late(progress: Progress, patience: Duration) {
    tokio::time::sleep(patience).await;
    if progress.is(Stage::GoesOn) {
        future::pending::<()>().await;
    }
}

/// The same service, which says how far the connection is.
fn watched(
    service: TowerToHyperService<Router>,
    progress: Progress,
) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> {
    service_fn(move |request: Request<Incoming>| {
        progress.set(Stage::Asked);
        let (answer, progress) = (service.call(request), progress.clone());
        async move {
            let answer = answer.await;
            let goes_on =
                answer.as_ref().is_ok_and(|answer| answer.extensions().get::<GoesOn>().is_some());
            progress.set(if goes_on { Stage::GoesOn } else { Stage::Answered });
            answer
        }
    })
}

async fn until_set(mut stop: watch::Receiver<bool>) {
    // An error says that the handle is gone, which stops too.
    let _ = stop.wait_for(|&set| set).await;
}

fn router(server: Arc<dyn Control>) -> Router {
    let instance = server.instance().map(|uuid| uuid.to_string());
    let instance = instance.map(|text| HeaderValue::try_from(text).expect("a UUID is ASCII"));
    let named = map_response(move |mut answer: Response| {
        answer.headers_mut().extend(instance.clone().map(|instance| (INSTANCE, instance)));
        future::ready(answer)
    });
    Router::new()
        .route(STAT, get(stat_page::stat))
        .route(GROUPS, get(group).put(set_group))
        .route(SETTINGS, get(settings).put(change_settings))
        .route(RELOAD, post(reload))
        .route(OPENAPI, get(openapi))
        // Else a HEAD would record.
        .route(TRACE, get(trace_of).head(not_allowed))
        .with_state(Arc::clone(&server))
        .merge(volumes_http::router(Arc::clone(&server)))
        .merge(hand_over::router(Arc::clone(&server)))
        .merge(record::router(Arc::clone(&server)))
        .merge(metrics_router(server))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(named)
}

/// Answers `GET /metrics`.
pub(crate) fn metrics_router(server: Arc<dyn Control>) -> Router {
    Router::new()
        .route(METRICS, get(metrics))
        .method_not_allowed_fallback(not_allowed)
        .with_state(Arc::new(Metrics::new(server)))
}

async fn metrics(State(metrics): State<Arc<Metrics>>) -> Response {
    match tokio::task::spawn_blocking(move || metrics.text()).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Ok(Err(error)) => refuse(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        Err(_) => failed(),
    }
}

async fn group(
    State(server): State<Arc<dyn Control>>,
    question: Result<Query<GroupQuestion>, QueryRejection>,
) -> Response {
    let Query(question) = match question {
        Ok(question) => question,
        Err(error) => {
            let allowed = "group=PATH is allowed, and disk=NAME";
            return refuse(StatusCode::BAD_REQUEST, format!("{}; {allowed}", error.body_text()));
        }
    };
    answered(tokio::task::spawn_blocking(move || server.group(&question)).await)
}

async fn set_group(
    State(server): State<Arc<dyn Control>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let allowed = "a JSON object with group and set, an object of names and values, is allowed, \
                   and with disk";
    let change: GroupChange = match read(body, allowed) {
        Ok(change) => change,
        Err((status, error)) => return refuse(status, error),
    };
    answered(tokio::task::spawn_blocking(move || server.set_group(&change)).await)
}

async fn settings(State(server): State<Arc<dyn Control>>) -> Response {
    answered(tokio::task::spawn_blocking(move || server.settings()).await)
}

async fn change_settings(
    State(server): State<Arc<dyn Control>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let allowed = "a JSON object with disk is allowed, and with set, an object of names and values";
    let change: DiskChange = match read(body, allowed) {
        Ok(change) => change,
        Err((status, error)) => return refuse(status, error),
    };
    answered(tokio::task::spawn_blocking(move || server.change_settings(&change)).await)
}

async fn reload(State(server): State<Arc<dyn Control>>, uri: Uri) -> Response {
    let mode = match read_query(&uri, "dry_run", ReloadMode::Apply, ReloadMode::DryRun) {
        Ok(mode) => mode,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error),
    };
    answered(tokio::task::spawn_blocking(move || server.reload(mode)).await)
}

async fn trace_of(
    State(server): State<Arc<dyn Control>>,
    question: Result<Query<TraceQuestion>, QueryRejection>,
) -> Response {
    let Query(question) = match question {
        Ok(question) => question,
        Err(error) => {
            let allowed = "?disk=NAME is allowed, and with it group and seconds";
            return refuse(error.status(), format!("{}: {allowed}", error.body_text()));
        }
    };
    let begin = move || -> Result<_, TraceError> {
        let span = question.span()?;
        Ok((server.trace(&question)?, span))
    };
    match tokio::task::spawn_blocking(begin).await {
        Ok(Ok((lines, span))) => trace::answer(lines, span).unwrap_or_else(|_| failed()),
        Ok(Err(error)) => Problem::of(&error).into_response(),
        Err(_) => failed(),
    }
}

/// Reads a query that says whether `key` is true: what that means, and what it means if it is not.
fn read_query<T>(uri: &Uri, key: &str, if_false: T, if_true: T) -> Result<T, String> {
    let query = uri.query().unwrap_or_default();
    match query.strip_prefix(key) {
        Some("=true") => Ok(if_true),
        Some("=false") => Ok(if_false),
        None if query.is_empty() => Ok(if_false),
        _ => Err(format!("?{query}: {key}=true or {key}=false is allowed")),
    }
}

/// Reads a body; `allowed` says what it may be. Where it is something else: the status and the
/// error of the answer.
pub(super) fn read<T: DeserializeOwned>(
    body: Result<Bytes, BytesRejection>,
    allowed: &str,
) -> Result<T, (StatusCode, String)> {
    let body = body.map_err(|error| (error.status(), error.body_text()))?;
    let read = serde_json::from_slice(&body);
    read.map_err(|error| (StatusCode::BAD_REQUEST, format!("{error}: {allowed}")))
}

async fn openapi() -> Response {
    json(StatusCode::OK, &resources::document())
}

async fn not_found(uri: Uri) -> Response {
    let known = resources::paths().collect::<Vec<_>>().join(", ");
    let error = format!("there is no {:?}; there are: {known}", uri.path());
    refuse(StatusCode::NOT_FOUND, error)
}

async fn no_such_metrics(uri: Uri) -> Response {
    let error = format!("there is no {:?}; there is {METRICS}, and / if page = true", uri.path());
    refuse(StatusCode::NOT_FOUND, error)
}

async fn not_allowed(method: Method, uri: Uri) -> Response {
    let taken = resources::methods(uri.path()).unwrap_or_default();
    let some = match &taken[..] {
        [one] => format!("{one} is"),
        [others @ .., last] => format!("{} and {last} are", others.join(", ")),
        [] => "nothing is".to_owned(),
    };
    let error = format!("{method} {:?}: {some} allowed", uri.path());
    // A HEAD of a trace would record.
    let with_head = |method: &&'static str| match *method {
        "GET" if uri.path() != TRACE => "GET, HEAD",
        method => method,
    };
    let all = taken.iter().map(with_head).collect::<Vec<_>>().join(", ");
    let refusal = refuse(StatusCode::METHOD_NOT_ALLOWED, error);
    ([(header::ALLOW, all)], refusal).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// How long a connection may take in these tests, which is no answer to anybody's wait.
    const LONG: Duration = Duration::from_secs(60);

    /// A control plane that answers `/` with `body`; what clients do meanwhile.
    fn with_patience(
        patience: Duration,
        body: &'static str,
        clients: impl FnOnce(&dyn Fn() -> UnixStream) + Send + 'static,
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ctl.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
            let (stop, stopped) = watch::channel(false);
            let clients = std::thread::spawn(move || {
                clients(&|| UnixStream::connect(&path).expect("a connection"));
                drop(stop);
            });
            let router = Router::new().route("/", get(move || async move { body }));
            answer(listener, router, stopped, patience).await;
            clients.join().expect("all is as it should be");
        });
    }

    fn ask(mut stream: UnixStream) -> String {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("taken");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("it ends");
        said
    }

    #[test]
    fn connections_that_say_nothing_are_closed_in_time() {
        with_patience(Duration::from_millis(50), "here", |connect| {
            let mut silent = connect();
            assert_eq!(silent.read(&mut [0]).expect("it ends"), 0);
        });
    }

    /// With 200 half requests Prometheus had no answer.
    #[test]
    fn connections_that_have_not_asked_keep_nobody_out() {
        with_patience(LONG, "here", |connect| {
            let half = |_| {
                let mut stream = connect();
                stream.write_all(b"GET / HT").expect("taken");
                stream
            };
            let halves: Vec<_> = (0..200).map(half).collect();
            for _ in 0..5 {
                assert!(ask(connect()).ends_with("here"));
            }
            drop(halves);
        });
    }

    #[test]
    fn connections_that_do_not_read_their_answer_keep_nobody_out() {
        // More than sockets hold.
        let body = Box::leak("x".repeat(4 << 20).into_boxed_str());
        with_patience(LONG, body, |connect| {
            let deaf = |_| {
                let mut stream = connect();
                stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("taken");
                stream
            };
            let deaf: Vec<_> = (0..50).map(deaf).collect();
            assert!(ask(connect()).ends_with("xx"));
            drop(deaf);
        });
    }
}
