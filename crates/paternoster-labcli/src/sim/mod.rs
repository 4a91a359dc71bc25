//! `paternoster-lab sim`: a job file of fio, or job options as on fio's command line, over a
//! modelled device, in virtual time.
//!
//! ```text
//!   args.rs     the command line
//!   mod.rs      files in, the run, files out
//!   several.rs  the same under several schedulers
//!   report.rs   what is printed: a table, or fio's JSON
//!   page.rs     what stands on the page
//! ```

mod args;
mod decision_log;
mod page;
mod report;
mod several;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};
use paternoster::{Instant, PlugLimits};
use paternoster_lab::fio::{FileKey, Jobs, ReadAt, Surroundings};
use paternoster_lab::host::{Host, host_names, host_text};
use paternoster_lab::report::{Watch, Window, observe_jobs};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, Progress, Sinks, check_jobs, run_jobs_into};
use paternoster_model::read_input;
use paternoster_model::{Model, device_names, read_device};
use paternoster_scene::Scheduler;
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::inputs::{Inputs, is_same_file};
use crate::out_file::OutFile;
use crate::progress::ProgressLine;
use crate::{tunable, weights_note};
pub(crate) use args::Args;
use args::Plugging;
use decision_log::DecisionLog;
use page::{Files, Seen};
use paternoster_cli::output;

/// The exit status of a run that Ctrl-C has ended: fio's.
const INTERRUPTED: u8 = 128;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check_tunables(args)?;
    let (device, device_texts) = read_device(&args.device, args.seed)?;
    let read = |path: &PathBuf| {
        read_input(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let job = args.job.as_ref().map(read).transpose()?;
    let inputs = Inputs::default();
    let jobs = parse(args, job.as_deref(), device.as_ref(), &inputs)?;
    check_written(args, &jobs, &inputs)?;
    say_notes(&jobs);
    let files = Files { job, device: device_texts, host: host_text(&args.host)? };
    let host = Host::from_toml(Path::new(&args.host), &files.host)?;
    let first = match &args.schedulers[..] {
        [one] => one,
        several => return several::run(args, several, &jobs, &host),
    };
    let setup = set_up(args, first, &host, device.as_ref());
    for note in weights_note::notes(&jobs, &setup) {
        eprintln!("paternoster-lab: {note}");
    }
    let out = args.html.as_deref().map(OutFile::open).transpose()?;
    let line = ProgressLine::new()?;
    let interrupted = on_ctrl_c()?;
    // What a run cannot begin with is found before any file is emptied for it.
    check_jobs(&jobs, &setup, host.page_cache, &device)?;
    let mut log = args.log.as_deref().map(DecisionLog::create).transpose()?;
    let sinks = Sinks::open(&jobs, written_file)?;
    let shows = |run: Progress<'_>| {
        line.shows(run);
        if interrupted.load(Ordering::Relaxed) {
            run.end_here();
        }
    };
    let (outcome, page) = if out.is_none() && log.is_none() {
        (run_jobs_into(sinks, &jobs, &setup, host.page_cache, device, shows)?, None)
    } else {
        let mut push = |line: &str| log.iter_mut().for_each(|log| log.push(line));
        let lines: Option<&mut dyn FnMut(&str)> = args.log.is_some().then_some(&mut push as _);
        let watch = Watch { window: args.window, lines };
        let (outcome, observed) =
            observe_jobs(sinks, &jobs, &setup, host.page_cache, device, watch, shows)?;
        let page = out.map(|out| {
            let window = args.window.unwrap_or_else(|| Window::default_for(&jobs));
            note_empty_window(window, outcome.end);
            let outcome = &outcome;
            let seen =
                Seen { jobs: &jobs, setup: &setup, host: &host, outcome, observed: &observed };
            (out, page::page(args, files, &seen))
        });
        (outcome, page)
    };
    let logged = log.map_or(Ok(()), DecisionLog::close);
    line.clear();
    if let Some(note) = report::interrupted_note(&outcome) {
        eprintln!("paternoster-lab: {note}");
    }
    let text = if args.json {
        report::json(args, &setup, &jobs, &outcome)?
    } else {
        report::text(&setup, &jobs, &outcome)
    };
    output::print(text.as_bytes())?;
    if let Some((out, page)) = page {
        out.write(page.as_bytes())?;
    }
    logged?;
    Ok(exit_code(&outcome))
}

/// Each is set once, of a scheduler that has it.
fn check_tunables(args: &Args) -> Result<()> {
    let kernel = args.kernel.unwrap_or_default();
    for Scheduler { kind, tunables } in &args.schedulers {
        tunable::check_once(&[&tunables[..], &args.tunables].concat())?;
        for (name, value) in &args.tunables {
            kind.tunable_of(kernel, name)?.accepts(*value)?;
        }
    }
    Ok(())
}

/// Says what of the jobs changes nothing, or means something else than it may seem to.
fn say_notes(jobs: &Jobs) {
    for note in &jobs.notes {
        eprintln!("paternoster-lab: {}: {} changes nothing: {}", note.place, note.option, note.why);
    }
    let waits = jobs.jobs.iter().filter_map(|job| job.replay.as_ref()?.first_wait());
    for place in waits.collect::<BTreeSet<_>>() {
        eprintln!(
            "paternoster-lab: {place}: a wait is in ms since the start of the job, as in fio \
             3.33; its HOWTO says us since the wait before"
        );
    }
}

/// As fio's: 1 where a job ended with an error.
fn exit_code(outcome: &Outcome) -> ExitCode {
    let has_failed = outcome.results.iter().any(|result| result.error.is_some());
    match outcome.interrupted {
        true => ExitCode::from(INTERRUPTED),
        false if has_failed => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Becomes true with the first Ctrl-C; a second one ends the process.
fn on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // In this order, so that the first one does not end it.
    flag::register_conditional_default(SIGINT, Arc::clone(&interrupted))?;
    flag::register(SIGINT, Arc::clone(&interrupted))?;
    Ok(interrupted)
}

fn parse(args: &Args, job: Option<&[u8]>, device: &dyn Model, inputs: &Inputs) -> Result<Jobs> {
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
    let name = args.job_name();
    let file = job.map(|job| (name.as_str(), job));
    Ok(Jobs::parse_with_arguments(&args.job_options, file, &surroundings)?)
}

/// What is written takes the place of no file that the run reads or writes.
fn check_written(args: &Args, jobs: &Jobs, inputs: &Inputs) -> Result<()> {
    if let Some(job) = &args.job {
        inputs.add(job);
    }
    // A name that comes with the laboratory is no file.
    if !device_names().contains(&args.device.as_str()) {
        inputs.add(Path::new(&args.device));
    }
    if !host_names().contains(&args.host.as_str()) {
        inputs.add(Path::new(&args.host));
    }
    let options = [("--html", &args.html), ("--log", &args.log)];
    for (option, path) in options {
        let Some(path) = path else { continue };
        inputs.check(option, path)?;
        let written = jobs.written_files();
        let log = written.into_iter().find(|log| is_same_file(Path::new(log), path));
        ensure!(log.is_none(), "{option} {}: that file is a log of a job", path.display());
    }
    if let (Some(html), Some(log)) = (&args.html, &args.log) {
        let log_name = log.display();
        ensure!(!is_same_file(log, html), "--log {log_name}: that file is the page of --html");
    }
    Ok(())
}

/// Says so where the page shows no decision: its window lies behind the run.
fn note_empty_window(window: Window, end: Instant) {
    let Window { from, to } = window;
    if from >= end.since_start() {
        eprintln!(
            "paternoster-lab: --window {}:{} shows nothing: the run ends at {} s",
            report::seconds(from),
            report::seconds(to),
            report::seconds(end.since_start())
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
fn set_up(args: &Args, scheduler: &Scheduler, host: &Host, device: &dyn Model) -> Setup {
    let mut setup = Setup::new(scheduler.kind);
    setup.tunables = [&scheduler.tunables[..], &args.tunables].concat();
    setup.hierarchy = args.hierarchy;
    setup.kernel = args.kernel;
    host.set_up(&mut setup, device);
    setup.hz = args.hz.unwrap_or(setup.hz);
    if args.cores.is_some() && setup.costs.are_none() {
        eprintln!("paternoster-lab: --cores changes nothing: I/O costs nothing on {}", args.host);
    }
    setup.cores = args.cores.unwrap_or(setup.cores);
    setup.nr_requests = Some(args.nr_requests);
    setup.plug = match args.plug {
        Plugging::On => PlugLimits::default(),
        Plugging::Off => PlugLimits::OFF,
    };
    setup
}
