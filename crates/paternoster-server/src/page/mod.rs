//! The page for people at the address of metrics: what tenants are due and had, and why they wait.
//!
//! ```text
//!   GET /               the page, which is the same for all servers and loads nothing else
//!   GET /picture.json   what it shows, since the one before: made at most once a second, and less
//!                       often where it takes long
//! ```
//!
//! It has no names that metrics do not have. `paternoster top --html` writes it with one picture
//! inside.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use paternoster::Nanos;
use serde::Serialize;

use crate::ctl::{Control, StatError};
use crate::stat::{DiskStat, GroupStat, OpStat, Share, Stat, VolumeStat, per_second, ratio};

/// The page, without a picture.
const PAGE: &str = include_str!("page.html");
/// Where its picture goes.
const PLACE: &str = "/*PICTURE*/null";

/// How old a picture may be that another viewer is given too: that, or
const AGE: Duration = Duration::from_millis(900);
/// so many times what it took, most of it time of a disk's thread. So at most a hundredth of that
/// goes into pictures, however many tenants there are.
const TIMES: u32 = 100;
/// How old a reading may be that the next one is compared with; else two are taken, a second apart.
const OLDEST: Duration = Duration::from_secs(120);

/// Causes of a tenant's waiting that are shown.
const WAITS: usize = 3;

/// Nothing is loaded from elsewhere, and nothing but the picture from here.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// Answers with the page and its picture.
pub(crate) fn router(server: Arc<dyn Control>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/picture.json", get(picture))
        .with_state(Arc::new(Pictures::new(server)))
}

async fn page() -> Response {
    let policy = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    ([policy], Html(PAGE)).into_response()
}

async fn picture(State(pictures): State<Arc<Pictures>>) -> Response {
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    match tokio::task::spawn_blocking(move || pictures.json()).await {
        Ok(Ok(text)) => ([json], text).into_response(),
        Ok(Err(error)) => (StatusCode::SERVICE_UNAVAILABLE, error).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Makes pictures of a server, for any number of viewers.
struct Pictures {
    server: Arc<dyn Control>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    reading: Option<(Instant, Stat)>,
    /// The last picture as text, or why there was none; and until when it is the one.
    made: Option<(Instant, Result<String, String>)>,
}

impl Pictures {
    fn new(server: Arc<dyn Control>) -> Self {
        Self { server, last: Mutex::default() }
    }

    /// The picture of now, as JSON. Takes as long as `Control::stat_in_parts`, and a second more
    /// where nobody has looked for a while; whoever asks meanwhile waits for the same one.
    fn json(&self) -> Result<String, String> {
        // Whoever panicked has left a reading or none.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, made)) = &last.made
            && Instant::now() < *until
        {
            return made.clone();
        }
        let (made, took) = match self.take(&mut last.reading) {
            Ok((picture, took)) => (Ok(picture), took),
            Err(error) => (Err(error.to_string()), Duration::ZERO),
        };
        let keeps = AGE.max(took.saturating_mul(TIMES));
        last.made = Some((Instant::now() + keeps, made.clone()));
        made
    }

    /// Makes a picture. Returns it, with how long the server was asked for it.
    fn take(&self, before: &mut Option<(Instant, Stat)>) -> Result<(String, Duration), StatError> {
        let is_recent = |(at, _): &(Instant, Stat)| at.elapsed() < OLDEST;
        let recent = before.take().filter(is_recent);
        let earlier = if let Some((_, earlier)) = recent {
            earlier
        } else {
            let earlier = self.read()?;
            std::thread::sleep(Duration::from_secs(1));
            earlier
        };
        let begun = Instant::now();
        let now = self.read()?;
        let took = begun.elapsed();
        let picture = Picture::of(&now.since(&earlier));
        *before = Some((Instant::now(), now));
        Ok((picture.json(), took))
    }

    fn read(&self) -> Result<Stat, StatError> {
        let mut stat = self.server.stat_in_parts()?;
        self.server.add_volumes(&mut stat)?;
        Ok(stat)
    }
}

/// What the page shows.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// When it was made, in milliseconds since 1970.
    at_ms: u64,
    disks: Vec<Disk>,
}

#[derive(Clone, Debug, Serialize)]
struct Disk {
    name: String,
    backend: String,
    scheduler: String,
    depth: u32,
    learned_depth: Option<u32>,
    in_device: u32,
    queued: u32,
    connections: u32,
    sync_failed: bool,
    tenants: Vec<Tenant>,
    volumes: Vec<Volume>,
}

#[derive(Clone, Debug, Serialize)]
struct Tenant {
    path: String,
    weight: u32,
    due: Option<f64>,
    had: Option<f64>,
    demand: f64,
    iops: f64,
    /// A second.
    bytes: f64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    is_short: bool,
    /// What it waited for, and for what part of the time.
    waits: Vec<(String, f64)>,
}

#[derive(Clone, Debug, Serialize)]
struct Volume {
    name: String,
    reads: f64,
    writes: f64,
    bytes: f64,
    connections: u32,
    sync_failed: bool,
}

impl Picture {
    /// Makes the picture of a span that ends now ([`Stat::since`]).
    pub fn of(stat: &Stat) -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        Self { at_ms, disks: stat.disks.iter().map(Disk::of).collect() }
    }

    fn json(&self) -> String {
        serde_json::to_string(self).expect("it has strings and numbers")
    }

    /// Returns the page with this picture inside, which shows it and asks nobody.
    pub fn page(&self) -> String {
        // A name may not end the script.
        PAGE.replacen(PLACE, &self.json().replace('<', "\\u003c"), 1)
    }
}

impl Disk {
    fn of(disk: &DiskStat) -> Self {
        let rows = disk.groups.iter().zip(disk.shares()).zip(disk.waits());
        let tenants = rows.map(|((group, share), waits)| Tenant::of(disk, group, share, &waits));
        Self {
            name: disk.name.clone(),
            backend: disk.backend.clone(),
            scheduler: disk.scheduler.clone(),
            depth: disk.depth,
            learned_depth: disk.learned_depth.as_ref().map(|learned| learned.depth),
            in_device: disk.in_device,
            queued: disk.queued,
            connections: disk.connections,
            sync_failed: disk.sync_failed,
            tenants: tenants.collect(),
            volumes: disk.volumes.iter().map(|volume| Volume::of(disk, volume)).collect(),
        }
    }
}

impl Tenant {
    fn of(disk: &DiskStat, group: &GroupStat, share: Share, waits: &[(&str, u64)]) -> Self {
        let OpStat { completed, bytes, total, .. } = group.all_ops();
        let latency = |per_mille| total.quantile(per_mille).map(Nanos::as_nanos);
        let part = |&(name, nanos): &(&str, u64)| (name.to_owned(), ratio(nanos, disk.elapsed_ns));
        Self {
            path: group.path.clone(),
            weight: group.weight,
            due: share.entitled,
            had: share.achieved,
            demand: ratio(group.backlogged_ns, disk.elapsed_ns),
            iops: per_second(completed, disk.elapsed_ns),
            bytes: per_second(bytes, disk.elapsed_ns),
            p50_ns: latency(500),
            p99_ns: latency(990),
            is_short: disk.is_short(group, share),
            waits: waits.iter().take(WAITS).map(part).collect(),
        }
    }
}

impl Volume {
    fn of(disk: &DiskStat, volume: &VolumeStat) -> Self {
        let VolumeStat { reads, writes, read_bytes, written_bytes, .. } = *volume;
        let a_second = |count| per_second(count, disk.elapsed_ns);
        Self {
            name: volume.name.clone(),
            reads: a_second(reads),
            writes: a_second(writes),
            bytes: a_second(read_bytes + written_bytes),
            connections: volume.connections,
            sync_failed: volume.sync_failed,
        }
    }
}
