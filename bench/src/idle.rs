//! `cargo xtask bench idle`: what a server without clients costs the machine.
//!
//! iowait and I/O pressure are figures of the whole machine. So the server runs and is stopped
//! (SIGSTOP) in alternating windows, and what counts is the difference:
//!
//! ```text
//!   server    runs │ stopped │ runs │ stopped │ …
//!   measured   r1      s1       r2      s2          median of r − s
//! ```
//!
//! Wake-ups are the server's own: its threads' context switches while it runs. They are what `cargo
//! xtask test` judges, as whatever else the machine does cannot change them.

use crate::KilledOnDrop;
use anyhow::{Context, Result, bail};
use paternoster_scene::statistics::median;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Pairs of windows.
const PAIRS: usize = 5;
/// How long a window is.
const WINDOW: Duration = Duration::from_secs(1);
/// How long a server has nothing to do before it is taken to be idle.
const QUIET: Duration = Duration::from_millis(200);
/// How long it may take until it is.
const PATIENCE: Duration = Duration::from_secs(20);

/// I/O pressure that the server may add, in percent of the time.
const MAX_PRESSURE: f64 = 1.0;
/// Cores that the server may have wait for I/O.
const MAX_IOWAIT: f64 = 0.02;
/// The machine's own pressure, in percent, above which nothing can be said.
const NOISY_PRESSURE: f64 = 5.0;
/// Cores without work below which iowait cannot show.
const LEAST_IDLE: f64 = 0.5;

/// What to do with the figures.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Count wake-ups alone, which a busy machine cannot change
    #[arg(long)]
    check: bool,
}

/// The machine's counters.
#[derive(Clone, Copy)]
struct Counters {
    at: Instant,
    /// Ticks of 10 ms in which cores had nothing to do, and in which they waited for I/O.
    idle: u64,
    iowait: u64,
    /// Microseconds in which some task waited for I/O.
    pressure_us: u64,
}

/// What a window has shown.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Cores without work, waiting for I/O or not.
    idle: f64,
    /// Cores that waited for I/O.
    iowait: f64,
    /// In percent of the time.
    pressure: f64,
}

/// A server, ended when this is dropped.
struct Server(KilledOnDrop);

/// Where the kernel reports I/O pressure, unless that is turned off.
const PRESSURE: &str = "/proc/pressure/io";

/// Runs the command, with the program that is ours.
pub fn run(args: &Args, program: &Path) -> Result<()> {
    if args.check { check(program) } else { measure(program) }
}

/// Measures all, and judges what a machine this busy can show.
fn measure(program: &Path) -> Result<()> {
    if !Path::new(PRESSURE).exists() {
        println!("not run: there is no {PRESSURE}; a kernel may have it with psi=1");
        return Ok(());
    }
    let dir = tempfile::Builder::new().prefix("bench-idle").tempdir().context("a directory")?;
    let server = Server::start(program, dir.path())?;
    let (mut running, mut stopped, mut wake_ups) = (vec![], vec![], 0);
    for _ in 0..PAIRS {
        let before = server.until_idle()?;
        running.push(window()?);
        wake_ups += server.switches()? - before;
        server.signal(Signal::STOP)?;
        stopped.push(window()?);
        // To be continued is a switch of its own.
        server.signal(Signal::CONT)?;
    }
    let added = |of: fn(&Window) -> f64| {
        let each = running.iter().zip(&stopped).map(|(r, s)| of(r) - of(s));
        median(each).expect("there are pairs")
    };
    let (iowait, pressure) = (added(|window| window.iowait), added(|window| window.pressure));
    println!("an idle server, {PAIRS} windows of {WINDOW:?} running against stopped:");
    println!("  cores waiting for I/O  {iowait:+.3}");
    println!("  I/O pressure           {pressure:+.2} % of the time");
    println!("  wake-ups               {wake_ups}");
    let alone = |of: fn(&Window) -> f64| median(stopped.iter().map(of)).expect("there are pairs");
    let (idle, own_pressure) = (alone(|window| window.idle), alone(|window| window.pressure));
    refuse_wake_ups(wake_ups)?;
    if own_pressure > NOISY_PRESSURE || idle < LEAST_IDLE {
        println!(
            "not run: iowait and pressure, as the machine is busy without the server: pressure \
             {own_pressure:.1} % (up to {NOISY_PRESSURE} % is quiet), {idle:.1} cores without \
             work (at least {LEAST_IDLE} are)"
        );
        return Ok(());
    }
    if iowait > MAX_IOWAIT || pressure > MAX_PRESSURE {
        bail!(
            "an idle server is taken for one that waits for I/O: at most {MAX_IOWAIT} cores and \
             {MAX_PRESSURE} % are allowed"
        );
    }
    Ok(())
}

/// Counts wake-ups alone, as a step of the tests.
pub fn check(program: &Path) -> Result<()> {
    let dir = tempfile::Builder::new().prefix("bench-idle").tempdir().context("a directory")?;
    let server = Server::start(program, dir.path())?;
    let before = server.until_idle()?;
    sleep(WINDOW);
    let wake_ups = server.switches()? - before;
    println!("an idle server woke up {wake_ups} times in {WINDOW:?}");
    refuse_wake_ups(wake_ups)
}

/// Fails where a server that has nothing to do has done something.
fn refuse_wake_ups(wake_ups: u64) -> Result<()> {
    if wake_ups > 0 {
        bail!("an idle server woke up {wake_ups} times; it has nothing to do");
    }
    Ok(())
}

impl Server {
    /// One with a disk of each kind and a control socket.
    fn start(program: &Path, dir: &Path) -> Result<Self> {
        fs::File::create(dir.join("disk.img"))?.set_len(1 << 20)?;
        let toml = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n\
                    [disks.file]\npath = \"disk.img\"\n\
                    [disks.modelled]\nbackend = \"modelled\"\nsize = \"1M\"\nservers = 4\n\
                    service_us = 200\n\
                    [exports.a]\ndisk = \"file\"\n[exports.b]\ndisk = \"modelled\"\n";
        fs::write(dir.join("idle.toml"), toml)?;
        let mut command = Command::new(program);
        command.args(["serve", "idle.toml"]).current_dir(dir).stdout(Stdio::piped());
        command.stderr(Stdio::null());
        let started = command.spawn();
        let mut child = started.with_context(|| format!("starting {}", program.display()))?;
        let uris = BufReader::new(child.stdout.take().context("it is piped")?).lines().take(2);
        let server = Self(KilledOnDrop(child));
        if uris.map_while(Result::ok).count() < 2 {
            bail!("the server did not start");
        }
        Ok(server)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, signal).context("signalling the server")
    }

    /// Waits until it has nothing to do; how often its threads have been put on a core by then.
    fn until_idle(&self) -> Result<u64> {
        let begin = Instant::now();
        let mut switches = self.switches()?;
        while begin.elapsed() < PATIENCE {
            sleep(QUIET);
            let now = self.switches()?;
            if now == switches {
                return Ok(now);
            }
            switches = now;
        }
        bail!("the server has not been idle for {QUIET:?} in {PATIENCE:?}: {switches} switches")
    }

    /// How often its threads have been put on a core.
    fn switches(&self) -> Result<u64> {
        let mut switches = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            let status = match fs::read_to_string(task?.path().join("status")) {
                // A thread that has helped to start may end meanwhile.
                Err(error) if is_gone(&error) => continue,
                status => status?,
            };
            let counts = status.lines().filter_map(|line| line.split_once("ctxt_switches:"));
            switches +=
                counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum::<u64>();
        }
        Ok(switches)
    }
}

/// Whether that is what `/proc` says of a thread that has ended.
fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    errno == Some(Errno::NOENT.raw_os_error()) || errno == Some(Errno::SRCH.raw_os_error())
}

fn window() -> Result<Window> {
    let before = Counters::read()?;
    sleep(WINDOW);
    let after = Counters::read()?;
    let seconds = after.at.duration_since(before.at).as_secs_f64();
    let cores = |ticks: u64| float(ticks) / 100.0 / seconds;
    let iowait = cores(after.iowait.saturating_sub(before.iowait));
    Ok(Window {
        idle: cores(after.idle.saturating_sub(before.idle)) + iowait,
        iowait,
        pressure: float(after.pressure_us - before.pressure_us) / 10_000.0 / seconds,
    })
}

impl Counters {
    fn read() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        let line = stat.lines().next().context("/proc/stat is empty")?;
        let field = |index| line.split_whitespace().nth(index).and_then(|text| text.parse().ok());
        let pressure = fs::read_to_string(PRESSURE).context("reading I/O pressure")?;
        let total = pressure.lines().next().and_then(|line| line.rsplit_once("total="));
        Ok(Self {
            at: Instant::now(),
            idle: field(4).context("/proc/stat has no idle")?,
            iowait: field(5).context("/proc/stat has no iowait")?,
            pressure_us: total.and_then(|(_, text)| text.parse().ok()).context("no total")?,
        })
    }
}

fn float(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
