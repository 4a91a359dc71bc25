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

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, ensure};
use paternoster::Instant;
use paternoster_lab::fio::Jobs;
use paternoster_lab::host::{Host, host_names, host_text};
use paternoster_lab::report::{Watch, Window, observe_jobs};
use paternoster_lab::threads::{Outcome, Progress, Sinks, check_jobs, run_jobs_into};
use paternoster_model::read_input;
use paternoster_model::{device_names, read_device};
use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::conditions::say_notes;
use crate::inputs::{Inputs, is_same_file};
use crate::out_file::OutFile;
use crate::progress::ProgressLine;
use crate::weights_note;
pub(crate) use args::Args;
use decision_log::DecisionLog;
use page::{Files, Seen};
use paternoster_cli::output;

/// The exit status of a run that Ctrl-C has ended: fio's.
const INTERRUPTED: u8 = 128;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    args.conditions.check_tunables(&args.schedulers)?;
    let (device, device_texts) = read_device(&args.conditions.device, args.conditions.seed)?;
    let read = |path: &PathBuf| {
        read_input(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let job = args.conditions.job.as_ref().map(read).transpose()?;
    let inputs = Inputs::default();
    let jobs =
        args.conditions.parse(job.as_deref(), device.as_ref(), &inputs, args.conditions.seed)?;
    check_written(args, &jobs, &inputs)?;
    say_notes(&jobs);
    let files = Files { job, device: device_texts, host: host_text(&args.conditions.host)? };
    let host = Host::from_toml(Path::new(&args.conditions.host), &files.host)?;
    let first = match &args.schedulers[..] {
        [one] => one,
        several => return several::run(args, several, &jobs, &host),
    };
    let setup = args.conditions.set_up(first, &host, device.as_ref());
    args.conditions.note_cores(&setup);
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

/// What is written takes the place of no file that the run reads or writes.
fn check_written(args: &Args, jobs: &Jobs, inputs: &Inputs) -> Result<()> {
    if let Some(job) = &args.conditions.job {
        inputs.add(job);
    }
    // A name that comes with the laboratory is no file.
    if !device_names().contains(&args.conditions.device.as_str()) {
        inputs.add(Path::new(&args.conditions.device));
    }
    if !host_names().contains(&args.conditions.host.as_str()) {
        inputs.add(Path::new(&args.conditions.host));
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

/// A file that jobs write: as under fio, what it had is gone when the run begins.
fn written_file(path: &str) -> Result<Box<dyn Write + Send>> {
    let file = File::create(path).with_context(|| format!("cannot write {path}"))?;
    Ok(Box::new(file))
}
