//! Weights that change nothing under the scheduler of a run, or not for all queues of their group.

use paternoster::{Hierarchy, Kernel};
use paternoster_lab::fio::Jobs;
use paternoster_lab::sim::Setup;

/// What is to be noted of groups and their weights.
pub(crate) fn notes(jobs: &Jobs, setup: &Setup) -> Vec<String> {
    let mut notes = without_effect(jobs, setup);
    notes.extend(without_isolation(setup));
    notes
}

/// A kernel that has `group_isolation` has it off unless told otherwise.
fn without_isolation(setup: &Setup) -> Option<String> {
    const NAME: &str = "group_isolation";
    let kernel = setup.kernel.filter(|&kernel| setup.scheduler.tunable_of(kernel, NAME).is_ok())?;
    let is_set = setup.tunables.iter().any(|(name, _)| name == NAME);
    (!is_set).then(|| {
        format!(
            "cfq of {kernel} has {NAME}=0: a queue for which the device does not idle competes in \
             the root, whatever its group weighs; with --set {NAME}=1 it stays in its group"
        )
    })
}

/// Weights that the jobs say and the scheduler does not have.
fn without_effect(jobs: &Jobs, setup: &Setup) -> Vec<String> {
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
