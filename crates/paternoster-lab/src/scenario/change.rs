//! What is changed in the course of a run: weights of groups, and the group or the priority of a
//! task's next requests.
//!
//! ```text
//!   {"at_ns": 5, "group": "/a", "weight": 300, "leaf_weight": 50}    one of the two, or both
//!   {"at_ns": 5, "task": 3, "group": "/b"}
//!   {"at_ns": 5, "task": 3, "ioprio": "be/2"}
//! ```

use std::collections::HashSet;

use paternoster::{IoPrio, ParseIoPrioError, SchedulerKind, Weight};
use serde::Deserialize;

use super::{CFQ_LEAST_WEIGHT, LONGEST_NS, Scenario, ScenarioError};

/// A change of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When, from the begin of the run on; after what arrives at that time.
    pub at_ns: u64,
    /// What is changed.
    pub what: Changed,
}

/// What is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// A group's weights; the one that is absent stays.
    Weights {
        /// The path of the group.
        group: String,
        /// Against its siblings.
        weight: Option<Weight>,
        /// Of its own requests against its child groups.
        leaf: Option<Weight>,
    },
    /// The group of a task's next requests.
    Group {
        /// The task.
        task: u32,
        /// The path of the group.
        group: String,
    },
    /// The I/O priority of a task's next requests.
    IoPrio {
        /// The task.
        task: u32,
        /// The priority.
        io_prio: IoPrio,
    },
}

/// A change as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeFields {
    at_ns: u64,
    task: Option<u32>,
    group: Option<String>,
    ioprio: Option<String>,
    weight: Option<u32>,
    leaf_weight: Option<u32>,
}

/// What a change may be, for somebody who wrote another thing.
const ALLOWED: &str = "\"group\" with \"weight\", \"leaf_weight\" or both, or \"task\" with \
                       \"group\" or with \"ioprio\", is allowed";

impl ChangeFields {
    /// The change, or what is wrong with it.
    pub(super) fn judge(self, scheduler: &str) -> Result<Change, String> {
        if self.at_ns > LONGEST_NS {
            let allowed = format!("0 to {LONGEST_NS} is allowed, 3650 days");
            return Err(format!("at_ns {}: {allowed}", self.at_ns));
        }
        let weight = |weight: Option<u32>| weight.map(|one| checked(one, scheduler)).transpose();
        let what = match (self.task, self.group, self.ioprio, self.weight, self.leaf_weight) {
            (None, Some(_), None, None, None) => return Err(ALLOWED.to_owned()),
            (None, Some(group), None, own, leaf) => {
                Changed::Weights { group, weight: weight(own)?, leaf: weight(leaf)? }
            }
            (Some(task), Some(group), None, None, None) => Changed::Group { task, group },
            (Some(task), None, Some(text), None, None) => {
                let io_prio = text.parse().map_err(|why: ParseIoPrioError| why.to_string())?;
                Changed::IoPrio { task, io_prio }
            }
            _ => return Err(ALLOWED.to_owned()),
        };
        Ok(Change { at_ns: self.at_ns, what })
    }
}

fn checked(weight: u32, scheduler: &str) -> Result<Weight, String> {
    if scheduler == SchedulerKind::Cfq.name() && weight < CFQ_LEAST_WEIGHT {
        return Err(format!("weight {weight}: 10 to 1000 is allowed for cfq"));
    }
    Weight::new(weight).map_err(|why| why.to_string())
}

/// Checks that what the changes name is there.
pub(super) fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    let groups: HashSet<_> = scenario.groups.iter().map(|group| group.path.as_str()).collect();
    let tasks: HashSet<_> = scenario.tasks.iter().map(|task| task.id).collect();
    for (index, change) in scenario.changes.iter().enumerate() {
        let (task, group) = match &change.what {
            Changed::Weights { group, .. } => (None, Some(group)),
            Changed::Group { task, group } => (Some(task), Some(group)),
            Changed::IoPrio { task, .. } => (Some(task), None),
        };
        let problem = |problem| Err(ScenarioError::Change { index, problem });
        if let Some(group) = group.filter(|&path| path != "/" && !groups.contains(path.as_str())) {
            return problem(format!("there is no group {group:?}"));
        }
        if let Some(task) = task.filter(|id| !tasks.contains(id)) {
            return problem(format!("there is no task {task}"));
        }
    }
    Ok(())
}
