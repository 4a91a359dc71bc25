//! All runs, on as many threads as the machine has.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result};
use paternoster_lab::closed_loop::{Entry, Set, Virtual, Watched};
use paternoster_scene::Scheduler;

use crate::options::Options;

/// What came of a scene.
pub(crate) struct SceneResults<'a> {
    pub(crate) entry: &'static Entry,
    /// By scheduler, then by seed.
    pub(crate) schedulers: Vec<(&'a Scheduler, Vec<Watched>)>,
    /// What each tenant gets alone under the last scheduler, by tenant, then by seed; none but of
    /// scenes of prices, for their table.
    pub(crate) alone: Vec<Vec<Watched>>,
}

/// Runs every scene under every scheduler with every seed.
pub(crate) fn run_all(options: &Options) -> Result<Vec<SceneResults<'_>>> {
    let mut jobs = vec![];
    let last = options.schedulers.last().expect("there is one");
    let chosen = options.scenes()?;
    for &entry in &chosen {
        for scheduler in &options.schedulers {
            jobs.extend((1..=options.seeds).map(|seed| (entry.scene.clone(), scheduler, seed)));
        }
        for tenant in tenants_alone(entry, options) {
            jobs.extend((1..=options.seeds).map(|seed| (entry.scene.alone(tenant), last, seed)));
        }
    }
    let next = AtomicUsize::new(0);
    let outcomes: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let world = Virtual { owner: options.owner(), ..Virtual::default() };
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((scene, scheduler, seed)) = jobs.get(index) else { return };
            let outcome = world.watch(scene, scheduler, *seed);
            let outcome =
                outcome.with_context(|| format!("{} under {scheduler}, seed {seed}", scene.name));
            *outcomes[index].lock().expect("no thread panics") = Some(outcome);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| {
            scope.spawn(work);
        });
    });
    let mut outcomes = outcomes
        .into_iter()
        .map(|outcome| outcome.into_inner().expect("no thread panics").expect("all jobs are done"));
    let mut seeds = || -> Result<Vec<Watched>> {
        (1..=options.seeds).map(|_| outcomes.next().expect("as many as jobs")).collect()
    };
    let scenes = chosen.into_iter().map(|entry| {
        let schedulers = options.schedulers.iter().map(|scheduler| Ok((scheduler, seeds()?)));
        let schedulers = schedulers.collect::<Result<_>>()?;
        let alone = tenants_alone(entry, options).map(|_| seeds()).collect::<Result<_>>()?;
        Ok(SceneResults { entry, schedulers, alone })
    });
    scenes.collect()
}

/// The tenants of a scene that are run alone too: the table of prices is about that.
fn tenants_alone(entry: &Entry, options: &Options) -> Range<usize> {
    let has_table = !options.runs && options.timeline().is_none();
    if has_table && entry.set == Set::Prices { 0..entry.scene.tenants.len() } else { 0..0 }
}
