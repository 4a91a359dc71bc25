//! What is simulated beside the workload and the device: the scheduler with its settings, and the
//! groups.

use std::borrow::Cow;
use std::collections::HashMap;

use paternoster::scheduler::Scheduler;
use paternoster::{
    Administration, AnyScheduler, Bfq, Device, Driver, Elevator, GroupId, Hierarchy, Hz, Instant,
    Kernel, Medium, Nanos, NoHierarchy, NoKernel, NoTrace, PlugLimits, SchedulerKind, Trace,
    TunableError, Weights, fitted_tunables,
};
use thiserror::Error;

use super::costs::Costs;
use crate::group_path::{DEEPEST_GROUP, depth, parent_path};
use paternoster_model::{Model, Pauses};

/// A group of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSetup {
    /// Its path, as `/a/b`. Its parent is there too.
    pub path: String,
    /// Its weights.
    pub weights: Weights,
}

/// What is simulated beside the workload and the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The scheduler.
    pub scheduler: SchedulerKind,
    /// As which kernel it decides, where it has a choice; none is the last one that had it.
    pub kernel: Option<Kernel>,
    /// Its tunables that are set, by their names in sysfs, in the order in which they are set.
    pub tunables: Vec<(String, i64)>,
    /// Whether BFQ finds wakers, as it does since Linux 5.3.
    pub finds_wakers: bool,
    /// In what way groups share the device, where the scheduler has a choice.
    pub hierarchy: Option<Hierarchy>,
    /// Ticks a second of the kernel's clock.
    pub hz: Hz,
    /// Whether the device queues requests itself; none has the scheduler find out, as Linux does.
    pub native_queueing: Option<bool>,
    /// Whether the scheduler takes the device for one that rotates; none is as the device is.
    pub rotational: Option<bool>,
    /// How many requests may wait or be in flight; none is without a bound.
    pub nr_requests: Option<u32>,
    /// How many requests may be in the device; none is as many as it takes.
    pub depth: Option<u32>,
    /// The groups, parents before their children.
    pub groups: Vec<GroupSetup>,
    /// How much is held back of what a task submits with one call; [`PlugLimits::OFF`] is nothing.
    pub plug: PlugLimits,
    /// How the scheduler is driven.
    pub driven: Driven,
    /// How long an I/O is on its way from its task to the scheduler, as that of a server's client
    /// is; no processor is busy meanwhile.
    pub way: Nanos,
    /// What I/O costs the processors.
    pub costs: Costs,
    /// How many processors there are.
    pub cores: u32,
}

/// How the scheduler is driven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Driven {
    /// By whoever has something for it, at once: each bio is followed by dispatch, as in Linux.
    #[default]
    AtOnce,
    /// In turns, by a thread of its own, as the server's owner of a disk does: all that has come
    /// enters before one dispatch.
    InTurns {
        /// When that thread is stalled.
        stalls: Option<Pauses>,
    },
}

/// The error of a setup that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The scheduler has no such tunable, or it does not take the value.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// The scheduler has no hierarchy to choose.
    #[error(transparent)]
    Hierarchy(#[from] NoHierarchy),
    /// The scheduler has no kernel to choose.
    #[error(transparent)]
    Kernel(#[from] NoKernel),
    /// A group is too deep for the schedulers.
    #[error("a group is {depth} deep: 1 to {DEEPEST_GROUP} is allowed")]
    TooDeep {
        /// How deep it is.
        depth: usize,
    },
    /// A group comes before its parent.
    #[error("group {path}: its parent {parent} has to be named before it")]
    NoParent {
        /// The group.
        path: String,
        /// Its parent.
        parent: String,
    },
}

impl Default for Setup {
    /// No scheduler, or one that is given beside it.
    fn default() -> Self {
        Self::new(SchedulerKind::None)
    }
}

impl Setup {
    /// A scheduler with Linux's settings, without groups, where I/O costs
    /// the processors nothing.
    pub fn new(scheduler: SchedulerKind) -> Self {
        Self {
            scheduler,
            kernel: None,
            tunables: Vec::new(),
            finds_wakers: true,
            hierarchy: None,
            hz: Hz::MILLI,
            native_queueing: None,
            rotational: None,
            nr_requests: Some(256),
            depth: None,
            groups: Vec::new(),
            plug: PlugLimits::default(),
            driven: Driven::AtOnce,
            way: Nanos::ZERO,
            costs: Costs::default(),
            cores: 1,
        }
    }

    /// The same as the server has it: with the tunables that fit the device, driven in turns, and
    /// without a bound on requests.
    pub fn as_served(self, rotational: bool) -> Self {
        let medium = if rotational { Medium::Rotational } else { Medium::NotRotational };
        let fitted = fitted_tunables(self.scheduler, medium).iter();
        let fitted = fitted.map(|&(name, value)| (name.to_owned(), value));
        Self {
            tunables: fitted.chain(self.tunables).collect(),
            // What does not seek has always something to do at once.
            native_queueing: (!rotational).then_some(true),
            nr_requests: None,
            driven: Driven::InTurns { stalls: None },
            ..self
        }
    }

    /// The word to which a tunable of the scheduler is set, if it is.
    pub(crate) fn set_word(&self, name: &str) -> Option<Cow<'static, str>> {
        let (_, value) = self.tunables.iter().rev().find(|(set, _)| set == name)?;
        Some(self.scheduler.tunable(name).ok()?.shown(*value))
    }

    /// Checks that the scheduler can be set up in front of the device.
    pub(crate) fn check(&self, model: &impl Model) -> Result<(), SetupError> {
        let mut driver = Driver::new(self.elevator(
            model.rotational(),
            model.depth(),
            self.scheduler(NoTrace)?,
        )?);
        driver.administer(|elevator| self.add_groups(Instant::START, elevator)).map(drop)
    }

    /// Makes the scheduler, whose events go to `trace`.
    pub(crate) fn scheduler<T: Trace>(&self, trace: T) -> Result<AnyScheduler<T>, SetupError> {
        match (self.kernel, self.scheduler) {
            (Some(kernel), scheduler) => Ok(AnyScheduler::with_kernel(scheduler, trace, kernel)?),
            (None, SchedulerKind::Bfq) => {
                let bfq = Bfq::new(trace);
                let bfq = if self.finds_wakers { bfq } else { bfq.without_wakers() };
                Ok(AnyScheduler::Bfq(Box::new(bfq)))
            }
            (None, scheduler) => Ok(AnyScheduler::new(scheduler, trace)),
        }
    }

    /// Makes the elevator in front of a device of that depth.
    pub(crate) fn elevator<S: Scheduler>(
        &self,
        rotational: bool,
        depth: u32,
        scheduler: S,
    ) -> Result<Elevator<S>, SetupError> {
        let now = Instant::START;
        let rotational = self.rotational.unwrap_or(rotational);
        let depth = self.depth.map_or(depth, |most| depth.min(most));
        let device = if rotational { Device::disk(depth) } else { Device::solid_state(depth) };
        let device = device.with_hz(self.hz).with_native_queueing(self.native_queueing);
        let mut elevator = Elevator::new(scheduler, device, now);
        elevator.set_nr_requests(self.nr_requests);
        for (name, value) in &self.tunables {
            elevator.set_tunable(now, name, *value)?;
        }
        if let Some(hierarchy) = self.hierarchy {
            elevator.set_hierarchy(now, hierarchy)?;
        }
        Ok(elevator)
    }

    /// Adds the groups to the elevator. Returns the root, then each in its order.
    pub(crate) fn add_groups<S: Scheduler>(
        &self,
        now: Instant,
        elevator: &mut Administration<'_, S>,
    ) -> Result<Vec<GroupId>, SetupError> {
        let root = elevator.groups().root();
        let mut by_path = HashMap::from([("/", root)]);
        let mut ids = vec![root];
        for GroupSetup { path, weights } in &self.groups {
            let depth = depth(path);
            if depth > DEEPEST_GROUP {
                return Err(SetupError::TooDeep { depth });
            }
            let parent = parent_path(path);
            let &parent = by_path.get(parent).ok_or_else(|| SetupError::NoParent {
                path: path.clone(),
                parent: parent.to_owned(),
            })?;
            let id = elevator.add_group(now, parent, weights.weight);
            elevator.set_weight(now, id, *weights);
            by_path.insert(path, id);
            ids.push(id);
        }
        Ok(ids)
    }
}
