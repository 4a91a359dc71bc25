//! What a run starts from: the scheduler and the groups, and which requests wait for which.

use std::collections::HashMap;

use paternoster::{AnyScheduler, Driver, Limits, NoMerges, Recorder, Weights};

use super::{DeviceModel, Scenario, ScenarioError};
use crate::sim::{GroupSetup, Setup, SetupError};

/// For each request, those that wait for its completion.
pub(super) fn followers(
    scenario: &Scenario,
    names: &[String],
    indices: &HashMap<String, usize>,
) -> Result<Vec<Vec<usize>>, ScenarioError> {
    let mut followers = vec![Vec::new(); names.len()];
    let mut first = 0;
    for task in &scenario.tasks {
        for (i, rq) in task.requests.iter().enumerate() {
            let awaited = match &rq.after {
                Some(after) => Some(*indices.get(after).ok_or_else(|| ScenarioError::After {
                    rq: names[first + i].clone(),
                    after: after.clone(),
                })?),
                None => i.checked_sub(task.depth).map(|earlier| first + earlier),
            };
            if let Some(awaited) = awaited {
                followers[awaited].push(first + i);
            }
        }
        first += task.requests.len();
    }
    Ok(followers)
}

/// What a simulation is set up with, too: the scheduler with its settings, and the groups.
pub(super) fn setup(scenario: &Scenario) -> Result<Setup, ScenarioError> {
    let groups = scenario.groups.iter().map(|group| {
        let (weight, leaf) = group.weights(&scenario.scheduler)?;
        Ok(GroupSetup { path: group.path.clone(), weights: Weights { weight, leaf } })
    });
    let tunables = scenario.tunables.iter().map(|(name, &value)| (name.clone(), value));
    Ok(Setup {
        kernel: scenario.kernel,
        tunables: tunables.collect(),
        hierarchy: scenario.hierarchy,
        hz: scenario.clock()?,
        nr_requests: None,
        groups: groups.collect::<Result<_, ScenarioError>>()?,
        ..Setup::new(scenario.scheduler.parse()?)
    })
}

/// The scheduler in front of the scenario's device.
pub(super) fn driver(
    scenario: &Scenario,
    setup: &Setup,
) -> Result<Driver<AnyScheduler<Recorder>>, SetupError> {
    let DeviceModel { rotational, queue_depth, .. } = scenario.device;
    let scheduler = setup.scheduler(Recorder::default())?;
    let mut elevator = setup.elevator(rotational, queue_depth, scheduler)?;
    elevator.set_limits(Limits::default().with_max_segments(u16::MAX));
    elevator.set_nomerges(if scenario.merges { NoMerges::Off } else { NoMerges::All });
    Ok(Driver::new(elevator))
}
