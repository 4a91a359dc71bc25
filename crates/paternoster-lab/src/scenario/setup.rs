//! What a run starts from: the elevator, and which requests wait for which.

use std::collections::HashMap;

use paternoster::{
    AnyScheduler, Device as BlockDevice, Elevator, Instant, Limits, NoMerges, Recorder,
};

use super::{Scenario, ScenarioError};

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

/// The elevator as the scenario has it: without admission, and with its settings.
pub(super) fn elevator(
    scenario: &Scenario,
    scheduler: AnyScheduler<Recorder>,
) -> Result<Elevator<AnyScheduler<Recorder>>, ScenarioError> {
    let depth = scenario.device.queue_depth;
    let device = if scenario.device.rotational {
        BlockDevice::disk(depth)
    } else {
        BlockDevice::solid_state(depth)
    };
    let device = device.with_hz(scenario.clock()?);
    let mut elevator = Elevator::new(scheduler, device, Instant::START);
    elevator.set_nr_requests(None);
    elevator.set_limits(Limits::default().with_max_segments(u16::MAX));
    elevator.set_nomerges(if scenario.merges { NoMerges::Off } else { NoMerges::All });
    for (name, &value) in &scenario.tunables {
        elevator.set_tunable(Instant::START, name, value)?;
    }
    if let Some(hierarchy) = scenario.hierarchy {
        elevator.set_hierarchy(Instant::START, hierarchy)?;
    }
    Ok(elevator)
}
