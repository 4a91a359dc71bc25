//! Why a scenario cannot be run.

use std::path::Path;

use paternoster::{UnknownHierarchy, UnknownKernel, UnknownScheduler, WeightError};
use thiserror::Error;

use super::LONGEST_NS;
use crate::group_path::DEEPEST_GROUP;
use crate::sim::SetupError;

/// What is wrong with a file of JSON, with its file, line and column in front.
pub fn told_with_place(path: &Path, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let whole = error.to_string();
    let what = whole.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&whole);
    format!("{}:{line}:{column}: {what}", path.display())
}

/// Why a scenario cannot be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// It is no JSON, or not of the format.
    #[error("not of the scenario format: {0}")]
    Format(#[from] serde_json::Error),
    /// A clock that ticks at no whole number of nanoseconds.
    #[error("hz {0}: 1 to 1000 is allowed, and only divisors of 1000000000")]
    Hz(u32),
    /// A device that could never serve anything.
    #[error("device.{field} is 0: at least 1 is allowed")]
    NoRoom {
        /// The field.
        field: &'static str,
    },
    /// A time of the device that is too long.
    #[error("device.{field} is {ns}: 0 to {LONGEST_NS} is allowed, 3650 days")]
    DeviceTime {
        /// The field.
        field: &'static str,
        /// What it says.
        ns: u64,
    },
    /// A group without a parent, twice, or not a path.
    #[error("group {path:?} {problem}")]
    Group {
        /// The group.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A group that is too deep for the schedulers.
    #[error("a group is {depth} deep: 1 to {DEEPEST_GROUP} is allowed")]
    TooDeep {
        /// How deep it is.
        depth: usize,
    },
    /// A weight that is none.
    #[error("group {path:?}: {why}")]
    Weight {
        /// The group.
        path: String,
        /// What is allowed.
        why: WeightError,
    },
    /// A weight that is none in cgroup v1.
    #[error("group {path:?}: weight {weight}: 10 to 1000 is allowed for cfq")]
    CfqWeight {
        /// The group.
        path: String,
        /// What was asked for.
        weight: u32,
    },
    /// Something wrong with a task.
    #[error("task {id}: {problem}")]
    Task {
        /// The task.
        id: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// The tasks' requests wait for something that never comes.
    #[error("request {rq} waits for {after:?}, which is no request of the scenario")]
    After {
        /// The request that waits.
        rq: String,
        /// What it waits for.
        after: String,
    },
    /// Something wrong with a change.
    #[error("change {index}: {problem}")]
    Change {
        /// Its number in the file, from 0 on.
        index: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A request that cannot be requeued, or not so often.
    #[error("requeued {rq:?}: {problem}")]
    Requeued {
        /// The request.
        rq: String,
        /// What is wrong with it.
        problem: String,
    },
    /// We lack the scheduler.
    #[error(transparent)]
    Scheduler(#[from] UnknownScheduler),
    /// We lack the hierarchy.
    #[error(transparent)]
    Hierarchy(#[from] UnknownHierarchy),
    /// We lack the kernel.
    #[error(transparent)]
    Kernel(#[from] UnknownKernel),
    /// The scheduler does not take what is set of it.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// We lack a tunable of it.
    #[error(transparent)]
    Tunable(#[from] paternoster::TunableError),
}
