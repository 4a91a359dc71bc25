//! `paternoster sim`: a job file of fio over a modelled device, in virtual time.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use paternoster::{Hierarchy, Hz, Instant, Kernel, Nanos, PlugLimits, SchedulerKind};
use paternoster_lab::fio::{FileKey, Jobs, ReadAt, Surroundings};
use paternoster_lab::host::{CORES, Host, host_names, host_text};
use paternoster_lab::model::{Model, device_names, read_device};
use paternoster_lab::read_input;
use paternoster_lab::report::{Window, observe_jobs};
use paternoster_lab::result::{DiskUse, FioReport, Header, drained_note, table};
use paternoster_lab::sim::{CpuTime, DeviceTime, Setup};
use paternoster_lab::threads::{Outcome, Progress, Sinks, check_jobs, run_jobs_into};

use crate::inputs::{Inputs, is_same_file};
use crate::out_file::OutFile;
use crate::output;
use crate::progress::ProgressLine;
use crate::sim_page::{self, Files, Seen};
use crate::{tunable, weights_note};

/// Run a job file of fio over a modelled device, in virtual time.
///
/// The scheduler is the code that the server runs. The same job, device and seed give the same
/// table. Options of fio that are not simulated are refused by name and line: docs/fio-jobs.md
/// lists them.
///
/// The exit status is 1 where a job ends with an error, such as an I/O that took too long, and
/// where nothing is run, as of a job file that is wrong; then nothing is printed. It is 2 where the
/// command line is wrong. A run that is interrupted reports nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job file.
    pub(crate) job: PathBuf,
    // Its help names all devices.
    #[arg(long, value_name = "NAME|FILE", help = device_help())]
    pub(crate) device: String,
    /// The scheduler.
    #[arg(long, value_name = "NAME", default_value = "none")]
    scheduler: SchedulerKind,
    /// Set a tunable of the scheduler, by its name and unit in sysfs. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = tunable::parse)]
    tunables: Vec<(String, i64)>,
    /// In what way groups share the device, for cfq.
    #[arg(long, value_name = "NAME")]
    pub(crate) hierarchy: Option<Hierarchy>,
    /// As which kernel it decides, for cfq: 2.6.35-seed, 2.6.36, 2.6.37, or 4.20, which it does
    /// unless told.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<Kernel>,
    // Its help names all hosts.
    #[arg(long, value_name = "NAME|FILE", default_value = "free", help = host_help())]
    pub(crate) host: String,
    /// How many cores, instead of the host's. Where I/O costs nothing, as on `free`, they change
    /// nothing.
    #[arg(long, value_name = "COUNT", value_parser = cores)]
    cores: Option<u32>,
    /// Ticks a second of the kernel's clock, instead of the host's.
    #[arg(long, value_name = "TICKS", value_parser = hz)]
    pub(crate) hz: Option<Hz>,
    /// How many requests may wait or be in flight: `nr_requests` of sysfs.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nr_requests: u32,
    /// Whether I/Os that a job hands over with one call (`iodepth_batch`) are held back in a plug,
    /// so that neighbours merge: on or off.
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = on_or_off)]
    pub(crate) plug: Plugging,
    /// The seed of all that is drawn.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the report in fio's JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Write a page with charts of the run, and of every decision of a window, to a file in HTML
    /// that needs nothing else.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// The window of the page whose decisions it shows, in seconds from the start of the run, as
    /// 1.5:2. Unless told, a second in the middle of the shortest runtime.
    #[arg(long, value_name = "FROM:TO", requires = "html", value_parser = window)]
    window: Option<Window>,
}

fn device_help() -> String {
    format!(
        "The device: one that comes with the laboratory ({}), a file of parameters, or a disk as \
         DiskSim describes it (.parv, .diskspecs)",
        device_names().join(", ")
    )
}

fn host_help() -> String {
    format!(
        "The machine: one that comes with the laboratory ({}), or a file of parameters. Its cores \
         take time for I/O and for the scheduler's work",
        host_names().join(", ")
    )
}

fn cores(text: &str) -> Result<u32, String> {
    let cores = text.parse().ok().filter(|cores| CORES.contains(cores));
    cores.ok_or_else(|| format!("{} to {} is allowed", CORES.start(), CORES.end()))
}

/// What a call may hold back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plugging {
    On,
    Off,
}

impl Plugging {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

fn on_or_off(text: &str) -> Result<Plugging, String> {
    let plugging = [Plugging::On, Plugging::Off].into_iter().find(|known| known.name() == text);
    plugging.ok_or_else(|| "on or off is allowed".to_owned())
}

fn window(text: &str) -> Result<Window, String> {
    let allowed = || "FROM:TO is allowed, in seconds, FROM before TO, as 1.5:2".to_owned();
    let nanos = |text: &str| {
        let span = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
        u64::try_from(span.as_nanos()).ok().map(Nanos::new)
    };
    let (from, to) = text.split_once(':').ok_or_else(allowed)?;
    let window = nanos(from).zip(nanos(to)).map(|(from, to)| Window { from, to });
    window.filter(|window| window.from < window.to).ok_or_else(allowed)
}

fn hz(text: &str) -> Result<Hz, String> {
    let hz = text.parse().ok().and_then(Hz::new);
    hz.ok_or_else(|| "1 to 1000 is allowed, where a tick is a whole number of ns".to_owned())
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    tunable::check_once(&args.tunables)?;
    for (name, value) in &args.tunables {
        args.scheduler.tunable(name)?.accepts(*value)?;
    }
    let (device, device_texts) = read_device(&args.device, args.seed)?;
    let job =
        read_input(&args.job).with_context(|| format!("cannot read {}", args.job.display()))?;
    let inputs = Inputs::default();
    let jobs = parse(args, &job, device.as_ref(), &inputs)?;
    if let Some(html) = &args.html {
        check_page(args, html, &jobs, &inputs)?;
    }
    for note in &jobs.notes {
        eprintln!("paternoster: {}: {} changes nothing: {}", note.place, note.option, note.why);
    }
    let waits = jobs.jobs.iter().filter_map(|job| job.replay.as_ref()?.first_wait());
    for place in waits.collect::<BTreeSet<_>>() {
        eprintln!(
            "paternoster: {place}: a wait is in ms since the start of the job, as in fio 3.33; its \
             HOWTO says us since the wait before"
        );
    }
    let files = Files { job, device: device_texts, host: host_text(&args.host)? };
    let host = Host::from_toml(Path::new(&args.host), &files.host)?;
    let setup = set_up(args, &host, device.as_ref());
    for note in weights_note::notes(&jobs, &setup) {
        eprintln!("paternoster: {note}");
    }
    let out = args.html.as_deref().map(OutFile::open).transpose()?;
    let line = ProgressLine::new()?;
    // What a run cannot begin with is found before any file is emptied for it.
    check_jobs(&jobs, &setup, host.page_cache, &device)?;
    let sinks = Sinks::open(&jobs, written_file)?;
    let shows = |run: Progress<'_>| line.shows(run);
    let (outcome, page) = match out {
        None => (run_jobs_into(sinks, &jobs, &setup, host.page_cache, device, shows)?, None),
        Some(out) => {
            let window = args.window.unwrap_or_else(|| Window::default_for(&jobs));
            let (outcome, observed) =
                observe_jobs(sinks, &jobs, &setup, host.page_cache, device, window, shows)?;
            note_empty_window(window, outcome.end);
            let (outcome_seen, observed) = (&outcome, &observed);
            let seen =
                Seen { jobs: &jobs, setup: &setup, host: &host, outcome: outcome_seen, observed };
            let page = sim_page::page(args, files, &seen);
            (outcome, Some((out, page)))
        }
    };
    line.clear();
    let text = if args.json { json(args, &jobs, &outcome)? } else { text(&setup, &jobs, &outcome) };
    output::print(text.as_bytes())?;
    if let Some((out, page)) = page {
        out.write(page.as_bytes())?;
    }
    // As with fio, 1 where a job ended with an error.
    let has_failed = outcome.results.iter().any(|result| result.error.is_some());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn parse(args: &Args, job: &[u8], device: &dyn Model, inputs: &Inputs) -> Result<Jobs> {
    let surroundings = Surroundings {
        variable: &|name| std::env::var(name).ok(),
        file: &|path| {
            inputs.add(path);
            read_input(path)
        },
        log: &|path| {
            inputs.add(path);
            open_log(path)
        },
        file_key: &FileKey::of,
        device_bytes: device.end().0.saturating_mul(512).min(1 << 63),
        seed: args.seed,
    };
    Ok(Jobs::parse(&args.job.display().to_string(), job, &surroundings)?)
}

/// The page takes the place of no file that the run reads or writes.
fn check_page(args: &Args, html: &Path, jobs: &Jobs, inputs: &Inputs) -> Result<()> {
    inputs.add(&args.job);
    // A name that comes with the laboratory is no file.
    if !device_names().contains(&args.device.as_str()) {
        inputs.add(Path::new(&args.device));
    }
    if !host_names().contains(&args.host.as_str()) {
        inputs.add(Path::new(&args.host));
    }
    inputs.check("--html", html)?;
    let written = jobs.written_files();
    let log = written.into_iter().find(|log| is_same_file(Path::new(log), html));
    let page = html.display();
    ensure!(log.is_none(), "--html {page}: that file is a log of a job");
    Ok(())
}

/// Says so where the page shows no decision: its window lies behind the run.
fn note_empty_window(window: Window, end: Instant) {
    let Window { from, to } = window;
    if from >= end.since_start() {
        eprintln!(
            "paternoster: --window {}:{} shows nothing: the run ends at {} s",
            seconds(from),
            seconds(to),
            seconds(end.since_start())
        );
    }
}

/// Opens a log that a job replays: relative to the working directory, as fio does.
fn open_log(path: &Path) -> io::Result<Arc<dyn ReadAt>> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("a regular file is expected: a log is read twice"));
    }
    Ok(Arc::new(fs::File::open(path)?))
}

/// A file that jobs write: as under fio, what it had is gone when the run begins.
fn written_file(path: &str) -> Result<Box<dyn Write + Send>> {
    let file = File::create(path).with_context(|| format!("cannot write {path}"))?;
    Ok(Box::new(file))
}

/// What the command line says of the run, beside the jobs.
fn set_up(args: &Args, host: &Host, device: &dyn Model) -> Setup {
    let mut setup = Setup::new(args.scheduler);
    setup.tunables.clone_from(&args.tunables);
    setup.hierarchy = args.hierarchy;
    setup.kernel = args.kernel;
    host.set_up(&mut setup, device);
    setup.hz = args.hz.unwrap_or(setup.hz);
    if args.cores.is_some() && setup.costs.are_none() {
        eprintln!("paternoster: --cores changes nothing: I/O costs nothing on {}", args.host);
    }
    setup.cores = args.cores.unwrap_or(setup.cores);
    setup.nr_requests = Some(args.nr_requests);
    setup.plug = match args.plug {
        Plugging::On => PlugLimits::default(),
        Plugging::Off => PlugLimits::OFF,
    };
    setup
}

fn text(setup: &Setup, jobs: &Jobs, outcome: &Outcome) -> String {
    let (table, device) = (table(jobs, &outcome.results), device_line(&outcome.device));
    let note = drained_note(jobs, &outcome.results).unwrap_or_default();
    format!("{table}\n{device}\n{}{note}", cores_line(setup, outcome))
}

fn seconds(span: Nanos) -> f64 {
    Duration::from_nanos(span.as_nanos()).as_secs_f64()
}

/// Where the device's time went, in percent.
fn device_line(time: &DeviceTime) -> String {
    let all = seconds(time.busy) + seconds(time.withheld) + seconds(time.without_work);
    let percent = |span| if all > 0.0 { 100.0 * seconds(span) / all } else { 0.0 };
    format!(
        "device: {:.1} % busy, {:.1} % idle because the scheduler waited, {:.1} % without work",
        percent(time.busy),
        percent(time.withheld),
        percent(time.without_work)
    )
}

/// What the cores did, in percent; nothing where I/O costs them nothing.
fn cores_line(setup: &Setup, outcome: &Outcome) -> String {
    let all = seconds(outcome.end.since_start());
    if setup.costs.are_none() || all == 0.0 {
        return String::new();
    }
    let percent = |span, of: f64| 100.0 * seconds(span) / of;
    let of_cores = all * f64::from(setup.cores);
    let CpuTime { busy, spinning, held } = outcome.cpu;
    format!(
        "cores: {} at {:.1} % busy, {:.1} % of it spinning; lock: {:.1} % of the time held\n",
        setup.cores,
        percent(busy, of_cores),
        if busy > Nanos::ZERO { percent(spinning, seconds(busy)) } else { 0.0 },
        percent(held, all)
    )
}

fn json(args: &Args, jobs: &Jobs, outcome: &Outcome) -> Result<String> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ms = u64::try_from(unix.as_millis()).map_err(io::Error::other)?;
    let time = &outcome.device;
    let all = seconds(outcome.end.since_start());
    let [read, write, trim] = outcome.served;
    let ticks = |took: Nanos| took.as_nanos() / 1_000_000;
    let disk = DiskUse {
        name: args.device.clone(),
        read_ios: read.requests,
        write_ios: write.requests,
        read_merges: read.merged,
        write_merges: write.merged,
        read_ticks: ticks(read.took),
        write_ticks: ticks(write.took),
        in_queue: ticks(read.took + write.took + trim.took),
        util: if all > 0.0 { 100.0 * seconds(time.busy) / all } else { 0.0 },
    };
    let report = FioReport::new(Header { unix_ms }, jobs, &outcome.results, vec![disk]);
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
