//! `paternoster-lab replay`: a trace over a modelled device under another scheduler.
//!
//! ```text
//!   mod.rs      the command line, and the replays
//!   report.rs   what is printed: a table with notes, or JSON
//! ```

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use paternoster::SchedulerKind;
use paternoster_intake::{Recorded, Warning};
use paternoster_lab::replay::{
    Arrivals, Dependency, GroupFile, Options, Prediction, Predictor, Recording, as_recorded,
};
use paternoster_lab::sim::Setup;
use paternoster_model::{describe_device, read_input_text};
use paternoster_scene::Scheduler;
use report::{Report, Row};

use crate::device;
use crate::trace::Input;

/// Replay a trace over a modelled device under other schedulers, in virtual time.
///
/// A request is due as long behind a reply to its context as it was recorded: who waits for a
/// faster answer asks sooner. With each prediction stands how wrong it may be: how far the replay
/// under the trace's own scheduler is from what was recorded, and how far replays by other rules
/// are from this one (docs/laboratory.md, "Replays").
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    /// Read the requests of this device, instead of the one with most requests.
    #[arg(long, value_name = "MAJOR,MINOR")]
    traced_device: Option<String>,
    // Its help names all devices.
    #[arg(long, value_name = "NAME|FILE", help = device::help())]
    device: String,
    /// Replay it under this scheduler, with its tunables, such as `cfq:slice_idle=0`. May be
    /// repeated.
    #[arg(long = "scheduler", value_name = "NAME[:TUNABLE=VALUE,…]", required = true)]
    schedulers: Vec<Scheduler>,
    /// The scheduler that ran when the trace was recorded; if missing, the one that a recording of
    /// the server names, else none.
    #[arg(long, value_name = "NAME[:TUNABLE=VALUE,…]")]
    recorded_under: Option<Scheduler>,
    /// Which contexts wait for replies: closed all, open none, both has both printed. The default
    /// finds out for each.
    #[arg(long = "as", value_name = "closed|open|both", default_value = "found")]
    #[arg(hide_default_value = true)]
    as_: As,
    /// Whose replies a context waits for: its own, those of its group, or none.
    #[arg(long, value_name = "connection|export|none", default_value = "connection")]
    dependency: WaitsFor,
    /// A file that gives contexts their groups: lines of CONTEXT GROUP [WEIGHT], where a * in
    /// CONTEXT stands for any characters.
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// Have contexts begin again that have no request left, until as much time has passed as was
    /// recorded.
    #[arg(long = "loop")]
    loop_: bool,
    /// Replay without dependencies what has whole seconds for times, spread evenly in each.
    #[arg(long)]
    spread: bool,
    /// End a replay where so many requests wait of those who ask by the clock.
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    backlog: u32,
    /// How many requests may wait or be in flight: `nr_requests` of sysfs; if missing, 256, or
    /// without a bound for a recording of the server.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    nr_requests: Option<u32>,
    /// The seed of the device's random numbers.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Write a JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum As {
    Found,
    Closed,
    Open,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum WaitsFor {
    Connection,
    Export,
    None,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let device = describe_device(&args.device)?;
    let model = device.open(args.seed).with_context(|| args.device.clone())?;
    let (end, rotational) = (model.end().0, model.rotational());
    let trace = args.input.open_of(args.traced_device.clone(), Some(end.saturating_mul(512)))?;
    let read = Recording::read(trace);
    let (mut recording, findings) = read.with_context(|| args.input.name())?;
    for warning in findings.warnings() {
        eprintln!("warning: {warning}");
    }
    if let Some(path) = &args.groups {
        group(&mut recording, path)?;
    }
    let served = findings.recorded();
    let own_scheduler = args.recorded_under(served)?;
    let options = |scheduler: &Scheduler| args.options(scheduler, served, rotational);
    let own = options(&own_scheduler)?;
    args.check(&recording, findings.warnings(), &own)?;
    let predictor = Predictor::new(recording, &device, &own)?;
    let prediction = predictor.itself(&own)?;
    let open_self = match args.as_ {
        As::Both => Some(predictor.itself(&Args::open(own.clone()))?),
        _ => None,
    };
    let mut rows = Vec::new();
    for scheduler in &args.schedulers {
        let options = options(scheduler)?;
        let mut predict = |name: String, of: &Prediction, options: &Options| -> Result<()> {
            let predicted = predictor.predict(options).with_context(|| format!("under {name}"))?;
            let plus_minus = of.plus_minus(&predicted);
            rows.push(Row { name, predicted, plus_minus });
            Ok(())
        };
        predict(scheduler.to_string(), &prediction, &options)?;
        if let Some(open_self) = &open_self {
            predict(format!("{scheduler}, open"), open_self, &Args::open(options))?;
        }
    }
    let (own_name, as_said) = (own_scheduler.to_string(), args.as_said());
    let report = Report::new(predictor.recording(), own_name, as_said, prediction, rows);
    report.print(args.json)?;
    Ok(args.input.exit_status(findings.warnings().len()))
}

/// Gives the contexts the groups that the file says.
fn group(recording: &mut Recording, path: &Path) -> Result<()> {
    let name = || path.display().to_string();
    let text = read_input_text(path).with_context(name)?;
    let file = GroupFile::parse(&text).with_context(name)?;
    for pattern in file.apply(recording) {
        eprintln!("warning: {}: no context is called {pattern}", path.display());
    }
    Ok(())
}

impl Args {
    /// Refuses what the trace does not allow.
    fn check(&self, recording: &Recording, warnings: &[Warning], own: &Options) -> Result<()> {
        let is_spread = warnings.contains(&Warning::SpreadInSeconds);
        ensure!(
            !is_spread || own.arrivals != Arrivals::Open || self.spread,
            "arrivals within a second are not known: --spread has an open replay spread them evenly"
        );
        let is_export = self.dependency == WaitsFor::Export;
        ensure!(
            !is_export || !recording.groups.is_empty(),
            "--dependency export: no context has a group; --groups gives them some"
        );
        Ok(())
    }

    /// The same where all ask by the clock.
    fn open(options: Options) -> Options {
        Options { arrivals: Arrivals::Open, ..options }
    }

    /// What the contexts do, where the command line says it.
    fn as_said(&self) -> Option<&'static str> {
        match (self.as_, self.dependency) {
            (As::Open, _) | (_, WaitsFor::None) => Some("none waits for replies, as is said"),
            (As::Closed, _) => Some("all wait for replies, as is said"),
            (As::Both, _) => Some("all wait for replies, and in rows \"open\" none, as is said"),
            (As::Found, _) => None,
        }
    }

    /// The scheduler under which it was recorded.
    fn recorded_under(&self, served: Option<&Recorded>) -> Result<Scheduler> {
        match (&self.recorded_under, served) {
            (Some(scheduler), _) => Ok(scheduler.clone()),
            (None, Some(Recorded { meta, .. })) if !meta.scheduler.is_empty() => {
                meta.scheduler.parse().context("the sidecar")
            }
            _ => Ok(SchedulerKind::None.into()),
        }
    }

    /// How it is replayed; as the server drives its schedulers, where that has recorded it.
    fn options(
        &self,
        scheduler: &Scheduler,
        served: Option<&Recorded>,
        rotational: bool,
    ) -> Result<Options> {
        let arrivals = match (self.dependency, self.as_) {
            (WaitsFor::None, As::Found | As::Open) | (_, As::Open) => Arrivals::Open,
            (WaitsFor::None, As::Closed | As::Both) => {
                ensure!(false, "--dependency none has no context wait: --as open is allowed");
                Arrivals::Open
            }
            (_, As::Found) => Arrivals::Found,
            (_, As::Closed | As::Both) => Arrivals::Closed,
        };
        let dependency = match self.dependency {
            WaitsFor::Export => Dependency::Export,
            WaitsFor::Connection | WaitsFor::None => Dependency::Connection,
        };
        let mut setup = if let Some(Recorded { meta, .. }) = served {
            as_recorded(scheduler, meta, rotational)
        } else {
            let tunables = scheduler.tunables.clone();
            Setup { tunables, ..Setup::new(scheduler.kind) }
        };
        setup.nr_requests = self.nr_requests.or(setup.nr_requests);
        let (seed, repeats) = (self.seed, self.loop_);
        let backlog = usize::try_from(self.backlog).expect("32 bits fit");
        Ok(Options { seed, arrivals, dependency, repeats, backlog, ..Options::new(setup) })
    }
}
