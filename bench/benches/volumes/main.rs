//! `cargo xtask bench volumes`: how soon a volume that is made can be read, while others load the
//! pool; and whether a server that makes and removes volumes all the time keeps anything of them.
//!
//! ```text
//!   8 clients of HTTP ──PUT──▶ server ──▶ pool of files ◀── 8 tenants that read all the time
//!        └─────first read over NBD──▶
//! ```
//!
//! Status 1 where that is later than the design of volumes asks for, or memory or descriptors grow.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use paternoster_load::{LocalServer, read_once};
use paternoster_scene::Tenant;
use paternoster_server::ctl;
use tempfile::TempDir;

/// The options.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench volumes",
    about = "How soon a new volume can be read, and what is left of those that are gone"
)]
struct Options {
    /// Volumes to make
    #[arg(long, value_name = "VOLUMES", default_value_t = 1000)]
    made: usize,

    /// Tenants that read all the time meanwhile, at most eight
    #[arg(long, value_name = "TENANTS", default_value_t = LOADERS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=8))]
    loaders: usize,

    /// Clients that make them at once
    #[arg(long, value_name = "CLIENTS", default_value_t = MAKERS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    makers: usize,

    /// Make volumes that are there after a restart; they may take as long as three syncs more
    #[arg(long)]
    durable: bool,

    /// For how long to make and remove volumes
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    soak: u64,

    /// How many to make, and to remove, in a second of that
    #[arg(long, value_name = "VOLUMES", default_value_t = RATE,
          value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,

    /// Cargo gives a bench this option.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Those who make volumes at once, and those who read all the time.
const MAKERS: usize = 8;
const LOADERS: usize = 8;
/// Of each loader's volume.
const LOADED: u64 = 64 << 20;
/// Until a new volume can be read: the median, and what one of a hundred may take.
const MEDIAN: Duration = Duration::from_micros(1_500);
const ONE_OF_A_HUNDRED: Duration = Duration::from_millis(5);
/// Volumes that are made, and removed, in a second of the soak.
const RATE: u32 = 50;
/// Volumes that are there at a time during the soak.
const KEPT: usize = 50;

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let rig = Rig::start(options.durable)?;
    let soon = rig.first_reads(&options)?;
    let flat = rig.soak(Duration::from_secs(options.soak), options.rate)?;
    rig.end()?;
    Ok(if soon && flat { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A server with a pool of files, and its control socket.
struct Rig {
    dir: TempDir,
    server: LocalServer,
    control: ctl::CtlServer,
    durable: bool,
}

impl Rig {
    fn start(durable: bool) -> Result<Self> {
        let dir = tempfile::tempdir().context("there is no room for images")?;
        let folder = dir.path().display();
        let state =
            if durable { format!("state_dir = \"{folder}/state\"\n") } else { String::new() };
        let mut toml = format!("{state}[pools.fast]\npath = \"{folder}\"\nscheduler = \"wfq\"\n");
        for loader in 0..LOADERS {
            let image = File::create(dir.path().join(format!("loader{loader}.img")))?;
            image.set_len(LOADED)?;
            writeln!(toml, "[volumes.loader{loader}]\npool = \"fast\"")?;
        }
        let server = LocalServer::from_toml(&toml)?;
        let listener = UnixListener::bind(dir.path().join("ctl.sock"))?;
        let control = ctl::serve(listener, Arc::new(server.control()))?;
        Ok(Self { dir, server, control, durable })
    }

    fn ctl(&self) -> PathBuf {
        self.dir.path().join("ctl.sock")
    }

    /// Has clients make volumes and read each, while the loaders read. Returns whether each
    /// could be read soon enough.
    fn first_reads(&self, options: &Options) -> Result<bool> {
        let &Options { made: volumes, loaders, makers, .. } = options;
        let tenants: Vec<_> = (0..loaders)
            .map(|loader| Tenant::reads(100, 1, 8).named(format!("loader{loader}")))
            .collect();
        let next = AtomicUsize::new(0);
        let (ctl, socket) = (&self.ctl(), &self.server.socket());
        let mut load = self.server.connect(&tenants, 7)?;
        let (mut took, mut syncs) = thread::scope(|scope| {
            let make = || -> Result<Vec<[Duration; 2]>> {
                let mut took = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= volumes {
                        return Ok(took);
                    }
                    let (name, begun) = (format!("vm{number}"), Instant::now());
                    put(ctl, &name)?;
                    let answered = begun.elapsed();
                    read_once(socket, &name)?;
                    took.push([answered, begun.elapsed()]);
                }
            };
            let making: Vec<_> = (0..makers).map(|_| scope.spawn(make)).collect();
            load.start()?;
            let mut syncs = Vec::new();
            while !making.iter().all(thread::ScopedJoinHandle::is_finished) {
                load.run_for(Duration::from_millis(20))?;
                if self.durable {
                    syncs.push(self.sync()?);
                }
            }
            let took = making.into_iter().map(|one| one.join().expect("no panic"));
            let took = took.collect::<Result<Vec<_>>>()?.concat();
            Ok::<_, anyhow::Error>((took, syncs))
        })?;
        load.finish()?;
        for number in 0..volumes {
            delete(ctl, &format!("vm{number}"))?;
        }
        let mut is_soon = true;
        syncs.sort_unstable();
        let sync = syncs.get(syncs.len() * 99 / 100).or(syncs.last()).copied().unwrap_or_default();
        let (median, one_of_a_hundred) = (MEDIAN, ONE_OF_A_HUNDRED + 3 * sync);
        if self.durable {
            println!("{} syncs of a new file meanwhile: p99 {sync:?}", syncs.len());
        }
        println!("{volumes} volumes by {makers} clients, beside {loaders} that read");
        for (index, what) in ["answered", "first read"].into_iter().enumerate() {
            took.sort_unstable_by_key(|one| one[index]);
            let at = |percent: usize| took[(took.len() * percent / 100).min(took.len() - 1)][index];
            println!("{what:>12}: p50 {:?}, p99 {:?}, most {:?}", at(50), at(99), at(100));
            // Of durable ones nothing is promised of the median.
            is_soon = (self.durable || at(50) <= median) && at(99) <= one_of_a_hundred;
        }
        let median = if self.durable { String::new() } else { format!("p50 {median:?}, ") };
        println!("promised: {median}p99 {one_of_a_hundred:?}; is met: {is_soon}");
        Ok(is_soon)
    }

    /// How long a sync takes of a file that is new.
    fn sync(&self) -> Result<Duration> {
        let mut file = tempfile::NamedTempFile::new_in(self.dir.path())?;
        file.write_all(&[7; 512])?;
        let begun = Instant::now();
        file.as_file().sync_all()?;
        Ok(begun.elapsed())
    }

    /// Makes and removes volumes for that long. Returns whether memory and descriptors stay as they
    /// are.
    fn soak(&self, span: Duration, rate: u32) -> Result<bool> {
        let (ctl, socket) = (&self.ctl(), &self.server.socket());
        let begun = Instant::now();
        let mut readings = Vec::new();
        let mut number = 0;
        while begun.elapsed() < span {
            put(ctl, &format!("soak{number}"))?;
            read_once(socket, &format!("soak{number}"))?;
            if number >= KEPT {
                delete(ctl, &format!("soak{}", number - KEPT))?;
            }
            number += 1;
            let at = begun.elapsed().as_secs() * 10 / span.as_secs().max(1);
            if readings.len() as u64 <= at && number > 2 * KEPT {
                readings.push(Used::now()?);
            }
            let due = Duration::from_secs(1) / rate * u32::try_from(number)?;
            thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        for left in number.saturating_sub(KEPT)..number {
            delete(ctl, &format!("soak{left}"))?;
        }
        println!("{number} volumes were made and removed in {span:?}");
        for Used { anonymous_kib, descriptors } in &readings {
            println!("{anonymous_kib:>8} KiB of anonymous memory, {descriptors} descriptors");
        }
        let [Some(first), Some(last)] = [readings.get(readings.len() / 2), readings.last()] else {
            bail!("the soak was too short");
        };
        // In the first half the allocator gets what it needs, and some more later: what was kept of
        // a volume would be more than a pointer.
        let in_half = number as u64 / 2;
        let is_flat = last.descriptors <= first.descriptors + 2
            && last.anonymous_kib <= first.anonymous_kib + 64 + 8 * in_half / 1024;
        println!("flat: {is_flat}");
        Ok(is_flat)
    }

    fn end(self) -> Result<()> {
        self.control.stop();
        self.server.end()
    }
}

/// What the process uses.
#[derive(Clone, Copy, Debug)]
struct Used {
    anonymous_kib: u64,
    descriptors: usize,
}

impl Used {
    fn now() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).context("RssAnon")?;
        let descriptors = fs::read_dir("/proc/self/fd")?.count();
        Ok(Self { anonymous_kib: kib.trim().parse()?, descriptors })
    }
}

fn put(ctl: &Path, name: &str) -> Result<()> {
    ask(ctl, "PUT", &format!("/v1/volumes/{name}"), r#"{"pool": "fast", "size": "64M"}"#, "201")
}

fn delete(ctl: &Path, name: &str) -> Result<()> {
    ask(ctl, "DELETE", &format!("/v1/volumes/{name}?drain=0s&data=delete"), "", "200")
}

/// Asks over HTTP, which has to answer with that status.
fn ask(ctl: &Path, method: &str, resource: &str, body: &str, status: &str) -> Result<()> {
    let mut stream = UnixStream::connect(ctl)?;
    let len = body.len();
    let request =
        format!("{method} {resource} HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n{body}");
    // At once, as clients of HTTP do.
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {resource}: {answer}");
    Ok(())
}
