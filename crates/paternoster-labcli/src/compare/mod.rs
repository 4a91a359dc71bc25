//! `paternoster-lab compare`: the same jobs under several schedulers, in pairs of runs, until it is
//! known how far apart they are.
//!
//! ```text
//!   mod.rs      the command line, and the runs
//!   report.rs   what is printed: a table, or JSON
//! ```

mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use paternoster_cli::output;
use paternoster_lab::compare::{Comparison, Plan};
use paternoster_lab::fio::Jobs;
use paternoster_lab::host::{Host, host_text};
use paternoster_lab::threads::{check_jobs, run_jobs};
use paternoster_model::{Model, read_device, read_input};
use paternoster_scene::Scheduler;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

use crate::conditions::{Conditions, say_notes};
use crate::inputs::Inputs;
use crate::weights_note;

/// Compare schedulers on the jobs of a job file of fio over a modelled device, in virtual time.
///
/// The jobs run under each scheduler with the same seed, then with the next seed, and so on: a
/// pair of runs shares all chance, and differs by what the schedulers decide. Each scheduler is
/// compared with the first one: how much more or less a group gets, between which bounds that lies
/// (95 %), and whether it is told apart from chance, with all figures judged together (Holm, 5 %).
///
/// There are 10 pairs, and more until half of each interval is at most 2 % of its figure, or
/// --pairs are there.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    conditions: Conditions,
    /// A scheduler, with its tunables, such as `cfq:slice_idle=0`. Two or more; the others are
    /// compared with the first.
    #[arg(long = "scheduler", value_name = "NAME[:TUNABLE=VALUE,…]", required = true)]
    schedulers: Vec<Scheduler>,
    /// The most pairs of runs.
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pairs: u64,
    /// Print a JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check_schedulers(&args.schedulers)?;
    args.conditions.check_tunables(&args.schedulers)?;
    let runs = Runs::new(args)?;
    let plan = Plan::of(&runs.check()?);
    let mut comparison = Comparison::new(plan.clone(), args.schedulers.len(), args.pairs);
    eprintln!(
        "paternoster-lab: {} figures are compared, judged together at 5 %",
        comparison.planned()
    );
    loop {
        let wanted = comparison.wanted();
        if wanted.is_empty() {
            break;
        }
        let pairs: Result<Vec<_>> =
            wanted.into_par_iter().map(|pair| runs.pair(&plan, pair)).collect();
        pairs?.into_iter().for_each(|pair| comparison.add(pair));
    }
    let names: Vec<String> = args.schedulers.iter().map(ToString::to_string).collect();
    let text = if args.json {
        report::json(&names, &comparison)?
    } else {
        report::text(&names, &comparison)
    };
    output::print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn check_schedulers(schedulers: &[Scheduler]) -> Result<()> {
    let [first, others @ ..] = schedulers else { bail!("no --scheduler") };
    ensure!(
        !others.is_empty(),
        "--scheduler {first} alone: two or more are allowed, which are compared"
    );
    for (index, scheduler) in schedulers.iter().enumerate() {
        let name = scheduler.to_string();
        let is_new = schedulers[..index].iter().all(|known| known.to_string() != name);
        ensure!(is_new, "--scheduler {name} is there twice");
    }
    Ok(())
}

/// What all runs have in common.
struct Runs<'a> {
    args: &'a Args,
    job: Option<Vec<u8>>,
    host: Host,
}

impl<'a> Runs<'a> {
    fn new(args: &'a Args) -> Result<Self> {
        let read = |path: &PathBuf| {
            read_input(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let job = args.conditions.job.as_ref().map(read).transpose()?;
        let name = &args.conditions.host;
        let host = Host::from_toml(Path::new(name), &host_text(name)?)?;
        Ok(Self { args, job, host })
    }

    /// The jobs of the first pair, once it is known that they can run under each scheduler.
    fn check(&self) -> Result<Jobs> {
        let conditions = &self.args.conditions;
        let (device, _) = read_device(&conditions.device, conditions.seed)?;
        let jobs = self.jobs(&*device, conditions.seed)?;
        say_notes(&jobs);
        if let Some(log) = jobs.written_files().first() {
            bail!("a job writes {log}, which each run would empty: that is for sim");
        }
        for scheduler in &self.args.schedulers {
            let setup = conditions.set_up(scheduler, &self.host, &*device);
            conditions.note_cores(&setup);
            for note in weights_note::notes(&jobs, &setup) {
                eprintln!("paternoster-lab: {scheduler}: {note}");
            }
            let checked = check_jobs(&jobs, &setup, self.host.page_cache, &device);
            checked.with_context(|| format!("under {scheduler}"))?;
        }
        Ok(jobs)
    }

    /// Runs the jobs under each scheduler with the seed of that pair: their figures.
    fn pair(&self, plan: &Plan, pair: u64) -> Result<Vec<Vec<Option<f64>>>> {
        let conditions = &self.args.conditions;
        let seed = conditions.seed.wrapping_add(pair);
        let mut values = Vec::new();
        for scheduler in &self.args.schedulers {
            let (device, _) = read_device(&conditions.device, seed)?;
            let jobs = self.jobs(&*device, seed)?;
            let setup = conditions.set_up(scheduler, &self.host, &*device);
            let outcome = run_jobs(&jobs, &setup, self.host.page_cache, device, |_| {});
            let outcome = outcome.with_context(|| format!("under {scheduler}, seed {seed}"))?;
            let failed = outcome.results.iter().find_map(|result| result.error);
            if let Some(error) = failed {
                bail!("under {scheduler}, seed {seed}: a job ends with an error: {error}");
            }
            values.push(plan.values(&jobs, &outcome, setup.hierarchy));
        }
        Ok(values)
    }

    fn jobs(&self, device: &dyn Model, seed: u64) -> Result<Jobs> {
        let inputs = Inputs::default();
        self.args.conditions.parse(self.job.as_deref(), device, &inputs, seed)
    }
}
