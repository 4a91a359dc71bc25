//! All runs, on as many threads as the machine has.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result};
use paternoster_lab::closed_loop::{Outcome, Scene, Scheduler, run_closed_loop};

use crate::options::Options;

/// What came of a scene.
pub(crate) struct SceneResults<'a> {
    pub(crate) scene: &'static Scene,
    /// By scheduler, then by seed.
    pub(crate) schedulers: Vec<(&'a Scheduler, Vec<Outcome>)>,
}

/// Runs every scene under every scheduler with every seed.
pub(crate) fn run_all(options: &Options) -> Result<Vec<SceneResults<'_>>> {
    let mut jobs = vec![];
    for &scene in &options.scenes {
        for scheduler in &options.schedulers {
            jobs.extend((1..=options.seeds).map(|seed| (scene, scheduler, seed)));
        }
    }
    let next = AtomicUsize::new(0);
    let outcomes: Vec<_> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(scene, scheduler, seed)) = jobs.get(index) else { return };
            let outcome = run_closed_loop(scene, scheduler, options.owner, seed);
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
    let scenes = options.scenes.iter().map(|&scene| {
        let schedulers = options.schedulers.iter().map(|scheduler| {
            let seeds = (1..=options.seeds).map(|_| outcomes.next().expect("as many as jobs"));
            Ok((scheduler, seeds.collect::<Result<_>>()?))
        });
        Ok(SceneResults { scene, schedulers: schedulers.collect::<Result<_>>()? })
    });
    scenes.collect()
}
