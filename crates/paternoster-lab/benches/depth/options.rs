//! What is to be run: scenes, schedulers, seeds.

use anyhow::{Context as _, Result, bail};
use paternoster::Nanos;
use paternoster_lab::closed_loop::{Entry, Owner, Set, scenes};
use paternoster_scene::Scheduler;

/// The schedulers that run unless told. The first is what others are compared with, the last what
/// the table is about.
const SCHEDULERS: [&str; 4] = ["none", "cfq", "wfq:depth=32", "wfq"];
const SEEDS: u64 = 4;

/// What is to be run.
pub(crate) struct Options {
    pub(crate) scenes: Vec<&'static Entry>,
    pub(crate) schedulers: Vec<Scheduler>,
    pub(crate) seeds: u64,
    pub(crate) owner: Owner,
    /// A row for each run, instead of one for each scene.
    pub(crate) runs: bool,
    /// What happens in each such step of a run, instead of a table.
    pub(crate) timeline: Option<Nanos>,
}

impl Options {
    /// Reads a command line.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let (seeds, owner, runs, timeline) = (SEEDS, Owner::Prompt, false, None);
        let (chosen, schedulers) = (vec![], vec![]);
        let mut options = Self { scenes: chosen, schedulers, seeds, owner, runs, timeline };
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--noisy" => options.owner = Owner::Noisy,
                "--busy" => options.owner = Owner::Busy,
                "--runs" => options.runs = true,
                "--scheduler" => options.schedulers.push(value(&arg, &mut args)?.parse()?),
                "--seeds" => options.seeds = number(&arg, &mut args, 1..=1000)?,
                "--timeline" => {
                    let step = number(&arg, &mut args, 10..=60_000)?;
                    options.timeline = Some(Nanos::from_millis(step));
                }
                name => options.scenes.append(&mut named(name)?),
            }
        }
        if options.scenes.is_empty() {
            options.scenes = scenes().iter().collect();
        }
        if options.schedulers.is_empty() {
            let parse = |word: &&str| word.parse::<Scheduler>();
            options.schedulers = SCHEDULERS.iter().map(parse).collect::<Result<_, _>>()?;
        }
        Ok(options)
    }
}

fn value(option: &str, args: &mut impl Iterator<Item = String>) -> Result<String> {
    args.next().with_context(|| format!("{option} wants a value"))
}

fn number(
    option: &str,
    args: &mut impl Iterator<Item = String>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64> {
    let value = value(option, args)?;
    match value.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => bail!("{option} {value}: {} to {} is allowed", range.start(), range.end()),
    }
}

/// The scenes of a set, or the scene of that name.
fn named(name: &str) -> Result<Vec<&'static Entry>> {
    let is_named = |entry: &&Entry| entry.set.name() == name || entry.scene.name == name;
    let found: Vec<_> = scenes().iter().filter(is_named).collect();
    if found.is_empty() {
        let sets = Set::ALL.map(Set::name).join(", ");
        let names: Vec<_> = scenes().iter().map(|entry| entry.scene.name.as_str()).collect();
        let options = "--noisy, --busy, --runs, --scheduler, --seeds, --timeline";
        bail!(
            "{name:?} is no scene; sets are: {sets}; scenes: {}; options: {options}",
            names.join(", ")
        );
    }
    Ok(found)
}
