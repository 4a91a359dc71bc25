//! The page of `paternoster-lab sim --html`: what the command says of the run.

use paternoster_lab::fio::Jobs;
use paternoster_lab::host::Host;
use paternoster_lab::report::{JobFile, ModelFile, Observed, Run};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::Outcome;
use paternoster_model::DeviceTexts;

use super::args::Args;
use super::report;
use crate::command_line;

/// A run that was observed.
pub(super) struct Seen<'a> {
    pub(super) jobs: &'a Jobs,
    pub(super) setup: &'a Setup,
    pub(super) host: &'a Host,
    pub(super) outcome: &'a Outcome,
    pub(super) observed: &'a Observed,
}

/// The files of a run, as they were read.
pub(super) struct Files {
    /// The job file; none where the jobs are on the command line alone.
    pub(super) job: Option<Vec<u8>>,
    pub(super) device: DeviceTexts,
    pub(super) host: String,
}

/// The page of the run.
pub(super) fn page(args: &Args, files: Files, seen: &Seen<'_>) -> String {
    let Files { job, device, host } = files;
    let device = device.into_iter();
    let run = Run {
        command: command_line::given(),
        job: JobFile { path: args.conditions.job_name(), text: job_text(args, job.as_deref()) },
        device: device.map(|(name, text)| ModelFile { name, text }).collect(),
        host: ModelFile { name: args.conditions.host.clone(), text: Some(host) },
        settings: settings(args, seen),
        seed: args.conditions.seed,
        jobs: seen.jobs,
        setup: seen.setup,
        outcome: seen.outcome,
        observed: seen.observed,
    };
    run.page()
}

/// The options of jobs on the command line, a line each, and then the job file.
fn job_text(args: &Args, file: Option<&[u8]>) -> String {
    let options = args.conditions.job_options.iter().map(|option| option.clone() + "\n");
    let file = file.map(|text| String::from_utf8_lossy(text).into_owned());
    options.chain(file).collect()
}

/// What was set, or left as it is, beside the tunables.
fn settings(args: &Args, seen: &Seen<'_>) -> Vec<(String, String)> {
    let Seen { setup, host, outcome, .. } = seen;
    let default = || "the scheduler's own".to_owned();
    let pairs = [
        ("Scheduler", setup.scheduler.name().to_owned()),
        ("Kernel that it decides as", setup.kernel.map_or_else(default, |its| its.to_string())),
        ("Hierarchy of groups", setup.hierarchy.map_or_else(default, |its| its.to_string())),
        ("Device", args.conditions.device.clone()),
        ("Host", args.conditions.host.clone()),
        ("Cores", setup.cores.to_string()),
        ("HZ, ticks a second", setup.hz.ticks_per_s().to_string()),
        ("nr_requests", args.conditions.nr_requests.to_string()),
        ("Plug of a call with several I/Os", args.conditions.plug.name().to_owned()),
        ("Seed of all that is drawn", args.conditions.seed.to_string()),
        ("Readahead window, pages of 4 KiB", host.page_cache.read_ahead_pages.to_string()),
    ];
    let ended = report::interrupted_note(outcome).map(|note| ("Ctrl-C", note));
    pairs.into_iter().chain(ended).map(|(name, value)| (name.to_owned(), value)).collect()
}
