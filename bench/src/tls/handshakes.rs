//! What handshakes cost those who are served without TLS by the same server.
//!
//! ```text
//!   tls.sock  ◀── 256 clients that fall silent behind STARTTLS, and come again when closed
//!             ◀── 500 handshakes a second, each until it is answered
//!   nbd.sock  ◀── fio, on memory and on a device with a service time: its p99 with and without
//!             ◀── nbdinfo, again and again: how long it takes from its start to its end
//! ```
//!
//! Clients, fio and the server share the machine's processors. So the same is done a third time
//! where the handshakes are with another server: what that costs fio, the processors cost it.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use paternoster_scene::statistics::median;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::{READY_WITHIN, Server, make_certificates};
use crate::nbd::fio::{Client, Sample, sample};

const STALLED: usize = 256;
const A_SECOND: u32 = 500;
/// Threads that shake hands.
const THREADS: u32 = 2;
/// How long fio runs each time, in seconds.
const SPAN: &str = "3";
/// The exports that fio reads, and their bytes.
const EXPORTS: [&str; 2] = ["memory", "device"];
const SIZE: u64 = 64 << 20;

const CONFIG: &str = r#"
ctl = "none"
[tls]
certificate = "server-cert.pem"
key = "server-key.pem"
client_ca = "ca-cert.pem"
[[listen]]
unix = "nbd.sock"
[[listen]]
unix = "tls.sock"
tls = "require"
[groups."/memory"]
identities = ["dns:client"]
[disks.m]
backend = "memory"
size = "64M"
[disks.d]
backend = "modelled"
size = "64M"
servers = 4
service_us = 500
[exports.memory]
disk = "m"
[exports.device]
disk = "d"
"#;

/// What is seen of one server for a while.
struct Seen {
    fio: Sample,
    /// How long each nbdinfo took, in milliseconds.
    entering: Vec<f64>,
    /// Handshakes that came to their end, in a second.
    handshakes: f64,
}

/// What is seen in a round.
struct Round {
    /// Without handshakes.
    quiet: Seen,
    /// With handshakes of the same server.
    amid: Seen,
    /// With handshakes of another one, on the same processors.
    beside: Seen,
}

/// Measures, with this executable: by turns without handshakes and with them.
pub(super) fn run(rounds: usize, paternoster: &Path) -> Result<()> {
    let (dir, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (dir, other) = (dir.path(), other.path());
    let _servers = [start(dir, paternoster)?, start(other, paternoster)?];
    println!("{STALLED} stalled, {A_SECOND} handshakes a second; medians of {rounds} rounds");
    for export in EXPORTS {
        let mut seen = Vec::new();
        for _ in 0..rounds {
            seen.push(Round {
                quiet: watch(dir, export)?,
                amid: amid_handshakes(dir, || watch(dir, export))?,
                beside: amid_handshakes(other, || watch(dir, export))?,
            });
        }
        print(export, &seen);
    }
    Ok(())
}

fn start(dir: &Path, paternoster: &Path) -> Result<Server> {
    make_certificates(dir)?;
    fs::write(dir.join("server.toml"), CONFIG)?;
    let mut command = Command::new(paternoster);
    command.args(["serve", "--log", "error", "server.toml"]).current_dir(dir);
    Server::start(command, &dir.join("nbd.sock"), String::new())
}

fn print(export: &str, rounds: &[Round]) {
    let of = |value: &dyn Fn(&Round) -> f64| {
        let all: Vec<_> = rounds.iter().map(value).collect();
        let least = all.iter().copied().fold(f64::MAX, f64::min);
        let most = all.iter().copied().fold(0.0, f64::max);
        format!("{:.2} ({least:.2}..{most:.2})", median(all).unwrap_or_default())
    };
    let longest = |seen: &Seen| seen.entering.iter().copied().fold(0.0, f64::max);
    let usual = |seen: &Seen| median(seen.entering.iter().copied()).unwrap_or_default();
    println!(
        "{export}: fio without {} us p99; with: x {} of that, x {} IOPS\n  with another server's: \
         p99 x {}, x {} IOPS; so with ours: p99 x {} of with another's\n  nbdinfo without {} ms, \
         with {} ms, longest {} ms; {} handshakes/s, {} with the other",
        of(&|it| it.quiet.fio.p99_us),
        of(&|it| it.amid.fio.p99_us / it.quiet.fio.p99_us),
        of(&|it| it.amid.fio.iops / it.quiet.fio.iops),
        of(&|it| it.beside.fio.p99_us / it.quiet.fio.p99_us),
        of(&|it| it.beside.fio.iops / it.quiet.fio.iops),
        of(&|it| it.amid.fio.p99_us / it.beside.fio.p99_us),
        of(&|it| usual(&it.quiet)),
        of(&|it| usual(&it.amid)),
        of(&|it| longest(&it.amid)),
        of(&|it| it.amid.handshakes),
        of(&|it| it.beside.handshakes),
    );
}

/// What fio and nbdinfo see of the export for a while.
fn watch(dir: &Path, export: &str) -> Result<Seen> {
    let uri = format!("nbd+unix:///{export}?socket={}", dir.join("nbd.sock").display());
    let options = ["--rw=randread", "--bs=4k", "--iodepth=8", "--time_based", "--runtime", SPAN];
    let mut fio = Client::start(&uri, SIZE, &options)?;
    let mut entering = Vec::new();
    while fio.is_at_work()? {
        let begin = Instant::now();
        let mut info = Command::new("nbdinfo");
        let status = info.args(["--size", &uri]).stdout(Stdio::null()).status();
        ensure!(status.context("nbdinfo, of libnbd-bin")?.success(), "nbdinfo fails");
        entering.push(begin.elapsed().as_secs_f64() * 1e3);
        thread::sleep(Duration::from_millis(50));
    }
    Ok(Seen { fio: sample(&fio.report()?)?, entering, handshakes: 0.0 })
}

/// The same while clients stall and others shake hands.
fn amid_handshakes(dir: &Path, watch: impl FnOnce() -> Result<Seen>) -> Result<Seen> {
    let (config, socket) = (Arc::new(client_config(dir)?), dir.join("tls.sock"));
    let (is_over, done, begin) = (AtomicBool::new(false), AtomicU32::new(0), Instant::now());
    thread::scope(|scope| {
        let stalling = scope.spawn(|| stall(&socket, &is_over));
        let shaking = || shake_again_and_again(&socket, &config, &is_over, &done);
        let shaking: Vec<_> = (0..THREADS).map(|_| scope.spawn(shaking)).collect();
        let seen = watch();
        let handshakes = f64::from(done.load(Ordering::Relaxed)) / begin.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        for thread in shaking.into_iter().chain([stalling]) {
            thread.join().expect("it does not panic")?;
        }
        Ok(Seen { handshakes, ..seen? })
    })
}

/// Has so many clients that are silent, until it is over.
fn stall(socket: &Path, is_over: &AtomicBool) -> Result<()> {
    let mut silent = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        silent.retain_mut(|stream: &mut UnixStream| {
            let read = stream.read(&mut [0]);
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        });
        while silent.len() < STALLED {
            let stream = start_tls(socket)?;
            stream.set_nonblocking(true)?;
            silent.push(stream);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Shakes hands at its part of the rate, until it is over.
fn shake_again_and_again(
    socket: &Path,
    config: &Arc<ClientConfig>,
    is_over: &AtomicBool,
    done: &AtomicU32,
) -> Result<()> {
    let mut next = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let mut stream = start_tls(socket)?;
        let name = ServerName::try_from("localhost").context("a name")?;
        let mut tls = ClientConnection::new(Arc::clone(config), name)?;
        // ABORT, whose reply says that the server has checked the certificate.
        let mut within = rustls::Stream::new(&mut tls, &mut stream);
        within.write_all(b"IHAVEOPT\0\0\0\x02\0\0\0\0")?;
        within.read_exact(&mut [0; 20]).context("a reply within TLS")?;
        done.fetch_add(1, Ordering::Relaxed);
        // What was missed is not made up for.
        next = Instant::now().max(next + Duration::from_secs(1) * THREADS / A_SECOND);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// A connection on which a handshake is due.
fn start_tls(socket: &Path) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(READY_WITHIN))?;
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).context("a greeting")?;
    // Fixed newstyle; IHAVEOPT, STARTTLS, no data.
    stream.write_all(b"\0\0\0\x01IHAVEOPT\0\0\0\x05\0\0\0\0")?;
    let mut reply = [0; 20];
    stream.read_exact(&mut reply).context("a reply to STARTTLS")?;
    ensure!(reply[12..16] == [0, 0, 0, 1], "STARTTLS is refused: {reply:?}");
    Ok(stream)
}

/// A client that shows its certificate.
fn client_config(dir: &Path) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(dir.join("ca-cert.pem"))?)?;
    let certificate = CertificateDer::from_pem_file(dir.join("client-cert.pem"))?;
    let key = PrivateKeyDer::from_pem_file(dir.join("client-key.pem"))?;
    let config = ClientConfig::builder().with_root_certificates(roots);
    Ok(config.with_client_auth_cert(vec![certificate], key)?)
}
