//! Scenarios: one scheduler, one device, and every request that every task makes.
//!
//! ```text
//!   decide.rs          files of scenarios in, their logs out
//!   mod.rs, fields.rs  a scenario, and how its file says it
//!     change.rs        … what is changed in the course of its run
//!   run.rs, setup.rs   its run in virtual time, and what that starts from
//!   plugs.rs           the plugs of the tasks that have one
//!   log.rs             what was decided, line by line
//!     names.rs           … and what they call requests, groups and queues
//!   measured.rs        what the run measured of each task
//! ```
//!
//! The scheduler over the device, and what happens next, are those of the simulation that jobs of
//! fio run over (`sim`); `run.rs` says why a scenario is no workload of it.

mod change;
mod decide;
mod error;
mod fields;
mod log;
mod measured;
mod names;
mod plugs;
mod run;
mod setup;

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use indexmap::IndexMap;
use paternoster::{
    Hierarchy, Hz, IoPrio, Kernel, Nanos, ParseIoPrioError, SchedulerKind, Sector, Weight,
};
use paternoster_model::{LinearSeek, Servers, ServersParameters, Service};
use serde::Deserialize;

use crate::group_path::{DEEPEST_GROUP, depth, parent_path};
use fields::ScenarioFields;

pub use change::{Change, Changed};
pub use decide::{DecideError, Decided, Outcome, Plan, decide, decide_all};
pub use error::{ScenarioError, told_with_place};
pub use log::Log;
pub use run::{RunError, run};

/// The weight of a CFQ group that names none (cgroup v1); the others' is [`Weight::default`].
pub(crate) const CFQ_DEFAULT_WEIGHT: u32 = 500;

/// The least weight of a CFQ group (cgroup v1).
const CFQ_LEAST_WEIGHT: u32 = 10;

/// How often one request may be requeued.
const MOST_REQUEUES: u32 = 1000;

/// The longest time of a scenario, in ns: 3650 days. No sum of two is beyond the clock, and no run
/// goes on for longer.
pub(crate) const LONGEST_NS: u64 = 3650 * 86_400_000_000_000;

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's own name.
    pub name: String,
    /// What it exercises, in a line.
    pub about: String,
    /// The scheduler's name.
    pub scheduler: String,
    /// In what way groups share the device; the scheduler's own way where absent.
    pub hierarchy: Option<Hierarchy>,
    /// The kernel whose scheduler decides; the one of the recordings where absent.
    pub kernel: Option<Kernel>,
    /// Tunables by sysfs name, set in this order; the others keep Linux's defaults.
    pub tunables: IndexMap<String, i64>,
    /// Ticks a second of the jiffies clock.
    pub hz: u32,
    /// Whether the elevator merges.
    pub merges: bool,
    /// The device.
    pub device: DeviceModel,
    /// Groups, parents before children; the root always exists.
    pub groups: Vec<Group>,
    /// Who makes requests.
    pub tasks: Vec<Task>,
    /// What is changed in the course of the run.
    pub changes: Vec<Change>,
    /// How often a request is requeued instead of completed, by its name in the log.
    pub requeued: IndexMap<String, u32>,
}

/// The device of a scenario.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceModel {
    /// What `queue/rotational` says.
    pub rotational: bool,
    /// Requests that it holds at once.
    pub queue_depth: u32,
    /// Requests that it serves in parallel.
    pub channels: u32,
    /// Service time of any request.
    pub base_ns: u64,
    /// Service time of a sector.
    pub per_sector_ns: u64,
    /// Time of any seek.
    pub seek_base_ns: u64,
    /// Time of a seek for each 2²⁰ sectors of distance.
    pub seek_ns_per_mi_sector: u64,
}

impl DeviceModel {
    /// Makes the device: servers with heads of their own, to which all operations are alike.
    fn open(self) -> Servers {
        let service = Service {
            // A sector is half a KiB.
            per_kib: Nanos::new(self.per_sector_ns.saturating_mul(2)),
            ..Service::constant(Nanos::new(self.base_ns))
        };
        let end = Sector(u64::MAX);
        let (base, ns_per_mi_sector) = (Nanos::new(self.seek_base_ns), self.seek_ns_per_mi_sector);
        let seek = Some(LinearSeek { base, ns_per_mi_sector });
        let servers =
            ServersParameters::new(self.channels, service).with_room(self.queue_depth, end);
        // Nothing of it is drawn.
        Servers::new(ServersParameters { seek, ..servers }, 0)
    }
}

/// A group of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// From the root: `/a/b`.
    pub path: String,
    /// Against its siblings; the scheduler's default where absent.
    pub weight: Option<u32>,
    /// Of its own requests against its child groups (CFQ); the default where absent.
    pub leaf_weight: Option<u32>,
}

/// One process with one I/O context.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name in the log.
    pub id: u32,
    /// The path of its group.
    pub group: String,
    /// `rt/0..7`, `be/0..7`, `idle` or `none`.
    pub ioprio: String,
    /// When it begins.
    pub start_ns: u64,
    /// Requests that it makes without waiting for an earlier one.
    pub depth: usize,
    /// Whether it holds requests of one moment back in a plug, and hands them over together.
    pub plug: bool,
    /// Its requests in order.
    pub requests: Vec<Request>,
}

/// One request of a task, in the file a list of four or five.
#[derive(Clone, Debug)]
pub struct Request {
    /// Time between what it waits for and its arrival.
    pub think_ns: u64,
    /// What is to be done.
    pub op: Op,
    /// Where it starts.
    pub sector: u64,
    /// How long it is.
    pub sectors: u32,
    /// The request whose completion it waits for, whatever its index.
    pub after: Option<String>,
}

/// An operation of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A read.
    Read,
    /// A buffered, asynchronous write.
    Write,
    /// A synchronous write.
    WriteSync,
    /// A flush; it has no sectors.
    Flush,
    /// A discard.
    Discard,
    /// A synchronous write with FUA.
    WriteFua,
    /// Write zeroes.
    WriteZeroes,
}

impl Op {
    /// All operations.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::WriteSync,
        Self::Flush,
        Self::Discard,
        Self::WriteFua,
        Self::WriteZeroes,
    ];

    /// Returns its name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "R",
            Self::Write => "W",
            Self::WriteSync => "WS",
            Self::Flush => "F",
            Self::Discard => "D",
            Self::WriteFua => "WF",
            Self::WriteZeroes => "Z",
        }
    }
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    /// Reads and checks a scenario.
    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let fields: ScenarioFields = serde_json::from_str(text)?;
        let scenario = Self::try_from(fields)?;
        scenario.check()?;
        Ok(scenario)
    }
}

impl Scenario {
    fn check(&self) -> Result<(), ScenarioError> {
        self.clock()?;
        for (field, value) in
            [("queue_depth", self.device.queue_depth), ("channels", self.device.channels)]
        {
            if value == 0 {
                return Err(ScenarioError::NoRoom { field });
            }
        }
        let DeviceModel { base_ns, per_sector_ns, seek_base_ns, seek_ns_per_mi_sector, .. } =
            self.device;
        for (field, ns) in [
            ("base_ns", base_ns),
            ("per_sector_ns", per_sector_ns),
            ("seek_base_ns", seek_base_ns),
            ("seek_ns_per_mi_sector", seek_ns_per_mi_sector),
        ] {
            if ns > LONGEST_NS {
                return Err(ScenarioError::DeviceTime { field, ns });
            }
        }
        self.check_groups()?;
        self.check_tasks()?;
        change::check(self)?;
        self.check_requeued()
    }

    /// The same under that scheduler. What is set of another one does not go with it.
    pub fn under(self, kind: SchedulerKind) -> Self {
        if self.scheduler == kind.name() {
            return self;
        }
        let (scheduler, tunables) = (kind.name().to_owned(), IndexMap::new());
        Self { scheduler, hierarchy: None, kernel: None, tunables, ..self }
    }

    /// Returns the jiffies clock.
    pub fn clock(&self) -> Result<Hz, ScenarioError> {
        Hz::new(self.hz).ok_or(ScenarioError::Hz(self.hz))
    }

    fn check_groups(&self) -> Result<(), ScenarioError> {
        let mut known = HashSet::from(["/"]);
        for group in &self.groups {
            let path = &group.path;
            let problem = |problem| ScenarioError::Group { path: path.clone(), problem };
            if !path.starts_with('/') || path.ends_with('/') {
                return Err(problem("is no path from the root, such as /a"));
            }
            if depth(path) > DEEPEST_GROUP {
                return Err(ScenarioError::TooDeep { depth: depth(path) });
            }
            if !known.contains(parent_path(path)) {
                return Err(problem("comes before its parent"));
            }
            if !known.insert(path) {
                return Err(problem("is there twice"));
            }
            group.weights(&self.scheduler)?;
        }
        Ok(())
    }

    fn check_tasks(&self) -> Result<(), ScenarioError> {
        let mut ids = HashSet::new();
        for task in &self.tasks {
            let problem = |problem: String| ScenarioError::Task { id: task.id, problem };
            if !ids.insert(task.id) {
                return Err(problem("is there twice".to_owned()));
            }
            if task.group != "/" && !self.groups.iter().any(|group| group.path == task.group) {
                return Err(problem(format!("there is no group {:?}", task.group)));
            }
            if task.start_ns > LONGEST_NS {
                let allowed = format!("0 to {LONGEST_NS} is allowed, 3650 days");
                return Err(problem(format!("start_ns {}: {allowed}", task.start_ns)));
            }
            if task.depth == 0 && !task.requests.is_empty() {
                return Err(problem("depth 0: at least 1 is allowed".to_owned()));
            }
            task.io_prio().map_err(|error| problem(error.to_string()))?;
            for (index, rq) in task.requests.iter().enumerate() {
                if (rq.op == Op::Flush) != (rq.sectors == 0) {
                    let what = "a flush has 0 sectors, and nothing else has";
                    return Err(problem(format!("request {index}: {what}")));
                }
                if rq.sector.checked_add(u64::from(rq.sectors)).is_none() {
                    return Err(problem(format!("request {index} ends beyond sector 2⁶⁴")));
                }
            }
        }
        Ok(())
    }

    fn check_requeued(&self) -> Result<(), ScenarioError> {
        let (_, indices) = self.names();
        for (rq, &times) in &self.requeued {
            let problem = |problem| Err(ScenarioError::Requeued { rq: rq.clone(), problem });
            if !indices.contains_key(rq) {
                return problem("there is no such request".to_owned());
            }
            if times > MOST_REQUEUES {
                return problem(format!("{times} times: 0 to {MOST_REQUEUES} is allowed"));
            }
        }
        Ok(())
    }

    /// The index of every request by its name in the log, in the order of the file.
    pub(crate) fn names(&self) -> (Vec<String>, HashMap<String, usize>) {
        let names: Vec<String> = self
            .tasks
            .iter()
            .flat_map(|task| (0..task.requests.len()).map(move |i| format!("{}.{i}", task.id)))
            .collect();
        let indices = names.iter().cloned().enumerate().map(|(index, name)| (name, index));
        let indices = indices.collect();
        (names, indices)
    }
}

impl Group {
    /// Its weight and leaf weight; each the scheduler's default where the file has none.
    pub(crate) fn weights(&self, scheduler: &str) -> Result<(Weight, Weight), ScenarioError> {
        let is_cfq = scheduler == SchedulerKind::Cfq.name();
        let default = if is_cfq { CFQ_DEFAULT_WEIGHT } else { Weight::default().value() };
        let checked = |weight: Option<u32>| {
            let weight = weight.unwrap_or(default);
            let path = || self.path.clone();
            if is_cfq && weight < CFQ_LEAST_WEIGHT {
                return Err(ScenarioError::CfqWeight { path: path(), weight });
            }
            Weight::new(weight).map_err(|why| ScenarioError::Weight { path: path(), why })
        };
        Ok((checked(self.weight)?, checked(self.leaf_weight)?))
    }
}

impl Task {
    /// Returns its I/O priority.
    pub fn io_prio(&self) -> Result<IoPrio, ParseIoPrioError> {
        self.ioprio.parse()
    }
}
