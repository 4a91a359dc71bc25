//! Weights that change nothing under the scheduler of a run: they are said, and not held.

use paternoster::{Hierarchy, Kernel};
use paternoster_lab::fio::Jobs;
use paternoster_lab::sim::Setup;

/// What is to be noted of the weights that the jobs say.
pub(crate) fn notes(jobs: &Jobs, setup: &Setup) -> Vec<String> {
    let scheduler = setup.scheduler;
    let has_weights = jobs.groups.iter().any(|group| group.weight.is_some());
    let has_leaf_weights = jobs.groups.iter().any(|group| group.leaf_weight.is_some());
    let mut notes = vec![];
    if has_weights && !scheduler.has_weights() {
        notes.push(format!("weights of groups change nothing: {scheduler} knows no groups"));
    }
    let why = if !scheduler.has_leaf_weights() {
        format!("{scheduler} has none")
    } else if let Some(other) = setup.hierarchy.filter(|&its| its != Hierarchy::LeafWeight) {
        format!("the hierarchy {other} has none")
    } else if let Some(other) = setup.kernel.filter(|&its| its != Kernel::V4_20) {
        format!("cfq of {other} has none")
    } else {
        return notes;
    };
    if has_leaf_weights {
        notes.push(format!("leaf weights of groups change nothing: {why}"));
    }
    notes
}
