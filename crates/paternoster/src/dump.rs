//! What a scheduler tells of its inside, for whoever looks: numbers by name, and its queues.
//!
//! All of it is plain values in their own types. To make text of them, or spans of ticks, is for
//! whoever asked.

use crate::arena::GroupId;
use crate::io_context::IoPrio;
use crate::request::SectorCount;
use crate::time::{Jiffies, Nanos, Ticks};
use crate::trace::{QueueName, Workload};

/// Takes a scheduler's internal state, piece by piece.
pub trait Dump {
    /// One number under its name, Linux's where it has one in debugfs.
    fn number(&mut self, name: &'static str, value: i64);

    /// One queue, of a scheduler that has queues; they come in no particular order.
    fn queue(&mut self, _queue: &QueueDump) {}
}

/// One queue, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
pub struct QueueDump {
    /// Who made it, and whether it is sync.
    pub name: QueueName,
    /// The group in which it competes.
    pub group: GroupId,
    /// The class and level by which it is served, before any raising.
    pub io_prio: IoPrio,
    /// It is the one whose turn it is.
    pub in_service: bool,
    /// It wants turns.
    pub busy: bool,
    /// The device is kept free for its next request.
    pub waited_for: bool,
    /// Several I/O contexts use it.
    pub shared: bool,
    /// Its requests are mostly far from each other.
    pub seeky: bool,
    /// Requests that wait in it.
    pub queued: u32,
    /// Requests of it in the device.
    pub in_flight: u32,
    /// What its turns are made of.
    pub turn: TurnDump,
}

/// What a scheduler measures turns by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnDump {
    /// Time.
    Slice(SliceDump),
    /// Sectors.
    Budget(BudgetDump),
}

/// What CFQ knows of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceDump {
    /// The kind of work that it is.
    pub workload: Workload,
    /// It is worth waiting for.
    pub idle_window: bool,
    /// The length of its slice, of this turn or of its last; none if that has not begun.
    pub slice: Option<Nanos>,
    /// Requests sent in that turn.
    pub sent: u32,
}

/// What BFQ knows of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
pub struct BudgetDump {
    /// Its weight against its siblings, raised or not.
    pub weight: u32,
    /// By how much that is raised; 1 if it is not. A change may still have to be applied.
    pub raising: u32,
    /// Since when it is raised, or is not any more.
    pub raised_since: Jiffies,
    /// For how long it is raised; it stays so until a request of it is sent after that.
    pub raised_for: Ticks,
    /// What it may have served in its turn.
    pub budget: SectorCount,
    /// What it has had served of that.
    pub service: SectorCount,
    /// What it is granted for its next turn.
    pub max_budget: SectorCount,
    /// How many requests of others may be in the device while it is waited for.
    pub injection_limit: u32,
    /// What a first request takes without those; none while that is not known.
    pub injection_base: Option<Nanos>,
    /// The queue whose completions its requests follow.
    pub waker: Option<QueueName>,
    /// Its mean think time; none while that is not known.
    pub think_time: Option<Nanos>,
    /// Its users come back soon, for all that is known.
    pub thinks_briefly: bool,
    /// They mostly wait for I/O.
    pub io_bound: bool,
    /// It is raised, or was last, as soft real time.
    pub soft_rt: bool,
    /// It became busy with many others, and so is not raised.
    pub in_large_burst: bool,
}
