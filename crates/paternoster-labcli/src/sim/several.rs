//! The same jobs under several schedulers, one after the other, each on a device of its own with
//! the same seed; what they got side by side.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail, ensure};
use paternoster_cli::output;
use paternoster_lab::fio::Jobs;
use paternoster_lab::host::Host;
use paternoster_lab::result::tables_side_by_side;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, Progress, Sinks, check_jobs, run_jobs_into};
use paternoster_model::read_device;
use paternoster_scene::Scheduler;

use super::args::Args;
use super::{exit_code, on_ctrl_c, report, written_file};
use crate::progress::ProgressLine;
use crate::weights_note;

/// A scheduler, and what became of the jobs under it.
struct Run {
    name: String,
    setup: Setup,
    outcome: Outcome,
}

/// Runs the jobs under each, until Ctrl-C ends one.
pub(super) fn run(
    args: &Args,
    schedulers: &[Scheduler],
    jobs: &Jobs,
    host: &Host,
) -> Result<ExitCode> {
    check_one_is_enough(args, jobs)?;
    let line = ProgressLine::new()?;
    let interrupted = on_ctrl_c()?;
    let mut set_ups: Vec<(String, Setup)> = Vec::new();
    for scheduler in schedulers {
        let name = scheduler.to_string();
        ensure!(
            set_ups.iter().all(|(known, _)| *known != name),
            "--scheduler {name} is there twice"
        );
        let (device, _) = read_device(&args.conditions.device, args.conditions.seed)?;
        let setup = args.conditions.set_up(scheduler, host, device.as_ref());
        args.conditions.note_cores(&setup);
        for note in weights_note::notes(jobs, &setup) {
            eprintln!("paternoster-lab: {name}: {note}");
        }
        let checked = check_jobs(jobs, &setup, host.page_cache, &device);
        checked.with_context(|| format!("under {name}"))?;
        set_ups.push((name, setup));
    }
    let mut runs: Vec<Run> = Vec::new();
    for (name, setup) in set_ups {
        let (device, _) = read_device(&args.conditions.device, args.conditions.seed)?;
        let sinks = Sinks::open(jobs, written_file)?;
        let shows = |run: Progress<'_>| {
            line.shows(run);
            if interrupted.load(Ordering::Relaxed) {
                run.end_here();
            }
        };
        let outcome = run_jobs_into(sinks, jobs, &setup, host.page_cache, device, shows);
        let outcome = outcome.with_context(|| format!("under {name}"))?;
        let is_over = outcome.interrupted;
        runs.push(Run { name, setup, outcome });
        if is_over {
            break;
        }
    }
    line.clear();
    let text = if args.json { json(args, jobs, &runs)? } else { text(jobs, &runs) };
    output::print(text.as_bytes())?;
    let worst = runs.iter().find(|run| exit_code(&run.outcome) != ExitCode::SUCCESS);
    Ok(worst.map_or(ExitCode::SUCCESS, |run| exit_code(&run.outcome)))
}

/// Refuses what is of one run: files that the next would empty, and a page.
fn check_one_is_enough(args: &Args, jobs: &Jobs) -> Result<()> {
    let options = [("--html", args.html.is_some()), ("--log", args.log.is_some())];
    if let Some((option, _)) = options.into_iter().find(|(_, is_there)| *is_there) {
        bail!("{option} is of one run: one --scheduler is allowed beside it");
    }
    if let Some(log) = jobs.written_files().first() {
        bail!("a job writes {log}, which each run would empty: one --scheduler is allowed");
    }
    Ok(())
}

fn text(jobs: &Jobs, runs: &[Run]) -> String {
    let results = runs.iter().map(|run| (run.name.clone(), &run.outcome.results[..]));
    let mut text = tables_side_by_side(jobs, &results.collect::<Vec<_>>());
    for Run { name, setup, outcome } in runs {
        let below = report::below(setup, jobs, outcome);
        text.extend(below.lines().map(|line| format!("{name}: {line}\n")));
    }
    text
}

fn json(args: &Args, jobs: &Jobs, runs: &[Run]) -> Result<String> {
    let reports = runs.iter().map(|run| report::json(args, &run.setup, jobs, &run.outcome));
    let reports = reports.collect::<Result<Vec<_>>>()?;
    Ok(format!("[\n{}]\n", reports.join(",\n")))
}
