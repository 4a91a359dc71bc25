//! Measures a set-up: its contenders in turn, a window at a time, and what became of the aims.

use std::time::Duration;

use anyhow::Result;
use paternoster::SchedulerKind;
use paternoster_scene::Scheduler;

use crate::contender::{Running, Sample, contenders, is_aimed_at};
use crate::figures::{Figures, all_done, throughput_of};
use crate::hogs::Hogs;
use crate::row::{Aim, Row};
use crate::verdict::Verdict;

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(1);

/// What one contender made of a set-up.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) contender: Scheduler,
    pub(crate) figures: Figures,
    pub(crate) verdict: Verdict,
}

/// Has each contender serve the set-up, so many windows each. The first of the schedulers is the
/// one that the others are compared with.
pub(crate) fn measure(
    row: &Row,
    schedulers: &[SchedulerKind],
    windows: u32,
) -> Result<Vec<Measured>> {
    // They are there while a scheduler learns, too.
    let _hogs = row.hogs.then(Hogs::start).transpose()?;
    let running =
        contenders(row, schedulers).into_iter().map(|contender| Running::start(row, contender));
    let mut running = running.collect::<Result<Vec<_>>>()?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); running.len()];
    for _ in 0..windows {
        for (running, samples) in running.iter_mut().zip(&mut samples) {
            samples.push(running.window(WINDOW)?);
        }
    }

    let none = Figures::new(row, &samples[0], None);
    let best_fixed = best_fixed(row, &running, &samples);
    let mut outcomes = Vec::new();
    for (index, running) in running.into_iter().enumerate() {
        let reference = (index > 0).then_some(&samples[0][..]);
        let mut figures = Figures::new(row, &samples[index], reference);
        if is_aimed_at(running.contender(), row) {
            let best = best_fixed.map(|best| throughput_of(row, &samples[index], best));
            figures.of_best_fixed = best;
        }
        let verdict = Verdict::new(row, &figures, &none);
        let contender = running.end()?;
        outcomes.push(Measured { contender, figures, verdict });
    }
    Ok(outcomes)
}

/// What the variant of the row showed that did most, where a learned depth is compared with fixed
/// ones.
fn best_fixed<'a>(
    row: &Row,
    running: &[Running],
    samples: &'a [Vec<Sample>],
) -> Option<&'a [Sample]> {
    let all = running.iter().zip(samples).filter(|_| row.aim == Aim::Depth);
    let fixed = all.filter(|(running, _)| !running.contender().tunables.is_empty());
    let of_each = fixed.map(|(_, samples)| &samples[..]);
    of_each.max_by(|one, other| all_done(row, one).total_cmp(&all_done(row, other)))
}
