//! The internal state that a scheduler reports: numbers by name, and its queues.
//!
//! All values are plain and have their own types. The caller formats them, and converts ticks.

use crate::arena::GroupId;
use crate::io_context::IoPrio;
use crate::request::SectorCount;
use crate::time::{Jiffies, Nanos, Ticks};
use crate::trace::{QueueName, Workload};

/// Takes a scheduler's internal state, piece by piece.
pub trait Dump {
    /// One number under its name, Linux's where it has one in debugfs.
    fn number(&mut self, name: &'static str, value: i64);

    /// One queue, if the scheduler has queues. They come in no particular order.
    fn queue(&mut self, _queue: &QueueDump) {}
}

/// One queue, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
#[non_exhaustive]
pub struct QueueDump {
    /// Its name: who created it, and whether it is synchronous.
    pub name: QueueName,
    /// The group in which it competes.
    pub group: GroupId,
    /// Its class and level, without weight raising.
    pub io_prio: IoPrio,
    /// It is in service; in CFQ it is the active queue.
    pub in_service: bool,
    /// It is busy.
    pub busy: bool,
    /// The device idles for it.
    pub idling: bool,
    /// Several I/O contexts use it.
    pub shared: bool,
    /// It is seeky: most of its requests are far from the ones before.
    pub seeky: bool,
    /// Requests that wait in it.
    pub queued: u32,
    /// Its requests in flight.
    pub in_flight: u32,
    /// What it gets when it is served.
    pub service: ServiceDump,
}

/// What a scheduler measures the service of a queue by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceDump {
    /// Time: a slice.
    Slice(SliceDump),
    /// Sectors: a budget.
    Budget(BudgetDump),
}

/// The state of a queue in CFQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SliceDump {
    /// Its workload.
    pub workload: Workload,
    /// It has an idle window.
    pub idle_window: bool,
    /// The length of its current slice, or of its last; none if that has not begun.
    pub slice: Option<Nanos>,
    /// Requests dispatched in that slice.
    pub dispatched: u32,
}

/// The state of a queue in BFQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
#[non_exhaustive]
pub struct BudgetDump {
    /// Its weight against its siblings, raised or not.
    pub weight: u32,
    /// Its raising factor; 1 if it is not raised. A change may still have to take effect.
    pub raising: u32,
    /// When weight raising began, or ended.
    pub raised_since: Jiffies,
    /// For how long it is raised. It stays so until it dispatches a request after that.
    pub raised_for: Ticks,
    /// How many sectors it may have served in this service.
    pub budget: SectorCount,
    /// How many of them were served.
    pub service: SectorCount,
    /// Its budget for the next service.
    pub max_budget: SectorCount,
    /// How many requests of other queues may be in flight while the device idles for it.
    pub injection_limit: u32,
    /// How long its first request takes without injection; none while that is unknown.
    pub injection_base: Option<Nanos>,
    /// The queue whose completions make it busy.
    pub waker: Option<QueueName>,
    /// Its mean think time; none while that is unknown.
    pub think_time: Option<Nanos>,
    /// Its think time is short, or unknown.
    pub short_think_time: bool,
    /// Its users mostly wait for I/O.
    pub io_bound: bool,
    /// It is raised as soft real time, or was when it was last raised.
    pub soft_rt: bool,
    /// It became busy in a large burst, and is therefore not raised.
    pub in_large_burst: bool,
}
