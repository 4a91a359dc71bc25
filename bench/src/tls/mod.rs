//! The server within TLS beside nbdkit within TLS, and both in the clear, by the same client.
//!
//! ```text
//!   a round   nbdkit, TLS   ours, TLS   nbdkit, clear   ours, clear      each: nbdcopy, whole disk
//! ```
//!
//! nbdcopy has so many requests of one size outstanding on one connection. Both disks are in
//! memory. What is compared is compared within a round.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use paternoster_scene::statistics::median;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::KilledOnDrop;

mod handshakes;

/// How long a server may take until it greets a client.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Requests that are outstanding.
const OUTSTANDING: u32 = 16;

/// How it is measured.
#[derive(clap::Args)]
pub struct Args {
    /// Rounds of which medians are taken
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// MiB of the disk, all of which each run moves
    #[arg(long, default_value_t = 256)]
    size: u64,
    /// Measure what handshakes cost those who are served without TLS, and nothing else
    #[arg(long, conflicts_with = "size")]
    handshakes: bool,
}

/// What a run does.
#[derive(Clone, Copy)]
struct Work {
    name: &'static str,
    bytes: u64,
    writes: bool,
}

const WORKS: [Work; 3] = [
    Work { name: "read 64 KiB", bytes: 64 << 10, writes: false },
    Work { name: "write 64 KiB", bytes: 64 << 10, writes: true },
    Work { name: "read 4 KiB", bytes: 4 << 10, writes: false },
];

/// A server that is up, and where its export is.
struct Server {
    process: KilledOnDrop,
    uri: String,
}

/// What a run has come to: requests a second, and µs of the server's processor a request.
#[derive(Clone, Copy)]
struct Run {
    rate: f64,
    cpu: f64,
}

/// Measures, with this executable.
pub fn run(args: &Args, paternoster: &Path) -> Result<()> {
    ensure!(args.rounds > 0 && args.size > 0, "rounds and size are at least 1");
    if args.handshakes {
        return handshakes::run(args.rounds, paternoster);
    }
    let dir = tempfile::tempdir().context("a directory")?;
    let dir = dir.path();
    make_certificates(dir)?;
    let size = args.size << 20;
    fs::write(dir.join("src.img"), noise(size)).context("an image")?;
    let servers = [
        nbdkit(dir, size, true)?,
        ours(dir, size, true, paternoster)?,
        nbdkit(dir, size, false)?,
        ours(dir, size, false, paternoster)?,
    ];
    println!("{OUTSTANDING} outstanding, {} MiB, medians of {} rounds", args.size, args.rounds);
    println!("requests/s: nbdkit TLS, ours TLS, x nbdkit (least..most), clear: nbdkit, ours");
    for work in WORKS {
        let mut rounds = Vec::new();
        for _ in 0..args.rounds {
            let each = servers.iter().map(|server| server.copy(dir, work, size));
            rounds.push(each.collect::<Result<Vec<_>>>()?);
        }
        let of = |value: &dyn Fn(&[Run]) -> f64| {
            median(rounds.iter().map(|round| value(round))).unwrap_or_default()
        };
        let ratios = rounds.iter().map(|round| round[1].rate / round[0].rate);
        let (least, most) = ratios
            .fold((f64::MAX, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
        println!(
            "{:<12} {:>8.0} {:>8.0} {:>5.2} ({least:.2}..{most:.2}) {:>8.0} {:>8.0}; CPU of ours \
             {:.1} us a request, {:.1} in the clear; of nbdkit {:.1}",
            work.name,
            of(&|round| round[0].rate),
            of(&|round| round[1].rate),
            of(&|round| round[1].rate / round[0].rate),
            of(&|round| round[2].rate),
            of(&|round| round[3].rate),
            of(&|round| round[1].cpu),
            of(&|round| round[3].cpu),
            of(&|round| round[0].cpu),
        );
    }
    Ok(())
}

impl Server {
    fn start(mut command: Command, socket: &Path, uri: String) -> Result<Self> {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let process = process.with_context(|| format!("{command:?} does not start"))?;
        let mut server = Self { process: KilledOnDrop(process), uri };
        let begin = Instant::now();
        let mut greeting = [0; 8];
        while !UnixStream::connect(socket)
            .is_ok_and(|mut one| one.read_exact(&mut greeting).is_ok())
        {
            if let Some(status) = server.process.try_wait()? {
                bail!("{command:?} has ended: {status}");
            }
            ensure!(begin.elapsed() < READY_WITHIN, "{command:?} greets nobody");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Has all of the disk be read or written.
    fn copy(&self, dir: &Path, work: Work, size: u64) -> Result<Run> {
        let mut command = Command::new("nbdcopy");
        command.current_dir(dir).args(["--connections=1", "--no-extents"]);
        command.arg(format!("--requests={OUTSTANDING}"));
        command.arg(format!("--request-size={}", work.bytes));
        let places = if work.writes { ["src.img", &self.uri] } else { [&self.uri, "null:"] };
        let (cpu, begin) = (self.cpu_time()?, Instant::now());
        let status = command.args(places).status().context("nbdcopy, of libnbd-bin")?;
        let (took, cpu) = (begin.elapsed(), self.cpu_time()? - cpu);
        ensure!(status.success(), "{command:?}: {status}");
        #[expect(clippy::cast_precision_loss, reason = "a few millions")]
        let requests = (size / work.bytes) as f64;
        Ok(Run { rate: requests / took.as_secs_f64(), cpu: cpu * 1e6 / requests })
    }

    /// Seconds of processor time so far.
    fn cpu_time(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("a line of stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        let ticks: f64 = ticks.sum::<Result<f64, _>>()?;
        #[expect(clippy::cast_precision_loss, reason = "100, mostly")]
        Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
    }
}

fn uri(dir: &Path, socket: &Path, export: &str, within_tls: bool) -> String {
    let socket = socket.display();
    if within_tls {
        format!("nbds+unix:///{export}?socket={socket}&tls-certificates={}", dir.display())
    } else {
        format!("nbd+unix:///{export}?socket={socket}")
    }
}

fn nbdkit(dir: &Path, size: u64, within_tls: bool) -> Result<Server> {
    let socket = dir.join(format!("nbdkit-{within_tls}.sock"));
    let mut command = Command::new("nbdkit");
    command.args(["--foreground", "--unix"]).arg(&socket);
    if within_tls {
        command.args(["--tls=require", "--tls-verify-peer"]);
        command.arg(format!("--tls-certificates={}", dir.display()));
    }
    command.args(["memory", &size.to_string()]);
    Server::start(command, &socket, uri(dir, &socket, "", within_tls))
}

fn ours(dir: &Path, size: u64, within_tls: bool, paternoster: &Path) -> Result<Server> {
    let socket = dir.join(format!("ours-{within_tls}.sock"));
    let toml: PathBuf = socket.with_extension("toml");
    let files = "[tls]\ncertificate = \"server-cert.pem\"\nkey = \"server-key.pem\"\n\
                 client_ca = \"ca-cert.pem\"\n[groups.\"/disk\"]\nidentities = [\"dns:client\"]\n";
    let (files, tls) = if within_tls { (files, "tls = \"require\"\n") } else { ("", "") };
    let place = socket.to_str().context("a path in UTF-8")?;
    let text = format!(
        "ctl = \"none\"\n{files}[[listen]]\nunix = {place:?}\n{tls}\
         [disks.d]\nbackend = \"memory\"\nscheduler = \"none\"\nsize = {size}\n\
         [exports.disk]\ndisk = \"d\"\n"
    );
    fs::write(&toml, text).context("a configuration")?;
    let mut command = Command::new(paternoster);
    command.args(["serve", "--log", "warn"]).arg(&toml);
    Server::start(command, &socket, uri(dir, &socket, "disk", within_tls))
}

/// Bytes that are no hole.
fn noise(len: u64) -> Vec<u8> {
    let mut state = 1_u64;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_le_bytes()
    });
    words.take(usize::try_from(len / 8).expect("it fits into memory")).flatten().collect()
}

/// An authority and what it has signed, as nbdkit and libnbd look for them.
fn make_certificates(dir: &Path) -> Result<()> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    fs::write(dir.join("ca-cert.pem"), authority.pem())?;
    for (who, name) in [("server", "localhost"), ("client", "client")] {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![name.to_owned()])?;
        let certificate = certificate.signed_by(&key, &authority)?;
        fs::write(dir.join(format!("{who}-cert.pem")), certificate.pem())?;
        let path = dir.join(format!("{who}-key.pem"));
        fs::write(&path, key.serialize_pem())?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode)?;
    }
    Ok(())
}
