//! The queues of a disk's scheduler, in [`DiskStat::queues`](super::DiskStat::queues).

use paternoster::{
    BudgetDump, Hz, Instant, Nanos, QueueDump, QueueName, SectorCount, SliceDump, TurnDump,
};
use serde::{Deserialize, Serialize};

/// One queue, as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub struct QueueStat {
    /// The path of the group in which it competes.
    pub group: String,
    /// Its export and the number of its connection there, such as `vm1#3`; of one that is not sync,
    /// which all connections of the group share that have its priority, the one that made it.
    /// `gone` after that has ended.
    pub connection: String,
    /// Whether it holds what somebody waits for.
    pub sync: bool,
    /// The class and level by which it is served, as `ionice` has them.
    pub io_prio: String,
    /// It is the one whose turn it is.
    pub in_service: bool,
    /// It wants turns.
    pub busy: bool,
    /// The disk is kept free for its next request.
    pub waited_for: bool,
    /// Several connections use it, as they work on the same part of the disk.
    pub shared: bool,
    /// Its requests are mostly far from each other.
    pub seeky: bool,
    /// Requests that wait in it.
    pub queued: u32,
    /// Requests of it in the device.
    pub in_device: u32,
    /// Its turns, where the scheduler measures them in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<SliceStat>,
    /// Its turns, where the scheduler measures them in sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStat>,
}

/// What CFQ knows of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SliceStat {
    /// It is worth waiting for.
    pub idle_window: bool,
    /// The length of its slice, of this turn or of its last, in nanoseconds; none if that has not
    /// begun.
    pub slice_ns: Option<u64>,
    /// Requests sent in that turn.
    pub sent: u32,
}

/// What BFQ knows of a queue. Sizes are bytes, times nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub struct BudgetStat {
    /// Its weight against its siblings, raised or not.
    pub weight: u32,
    /// By how much that is raised; 1 if it is not.
    pub raising: u32,
    /// Whether it is raised as soft real time, or was last, and not as interactive.
    pub soft_rt: bool,
    /// How long it has been raised; 0 if it is not.
    pub raised_ns: u64,
    /// How long it is to be raised; it stays so until a request of it is sent after that.
    pub raised_span_ns: u64,
    /// What it may have served in its turn.
    pub budget_bytes: u64,
    /// What it has had served of that.
    pub service_bytes: u64,
    /// What it is granted for its next turn.
    pub max_budget_bytes: u64,
    /// How many requests of others may be in the device while it is waited for.
    pub injection_limit: u32,
    /// What a first request takes without those; none while that is not known.
    pub injection_base_ns: Option<u64>,
    /// The connection whose completions its requests follow.
    pub waker: Option<String>,
    /// Its mean think time; none while that is not known.
    pub think_time_ns: Option<u64>,
    /// Its users come back soon, for all that is known.
    pub thinks_briefly: bool,
    /// They mostly wait for I/O.
    pub io_bound: bool,
    /// It became busy with many others, and so is not raised.
    pub in_large_burst: bool,
}

/// By what a queue is told.
pub(crate) struct Telling<'a> {
    pub(crate) now: Instant,
    pub(crate) hz: Hz,
    /// The path of a group.
    pub(crate) path: &'a dyn Fn(&QueueDump) -> String,
    /// Who made a queue.
    pub(crate) connection: &'a dyn Fn(QueueName) -> String,
}

impl Telling<'_> {
    /// The queue in the words of `stat`.
    pub(crate) fn queue(&self, queue: &QueueDump) -> QueueStat {
        let (slice, budget) = match &queue.turn {
            TurnDump::Slice(slice) => (Some(slice_stat(slice)), None),
            TurnDump::Budget(budget) => (None, Some(self.budget(budget))),
            _ => (None, None),
        };
        QueueStat {
            group: (self.path)(queue),
            connection: (self.connection)(queue.name),
            sync: queue.name.sync,
            io_prio: queue.io_prio.to_string(),
            in_service: queue.in_service,
            busy: queue.busy,
            waited_for: queue.waited_for,
            shared: queue.shared,
            seeky: queue.seeky,
            queued: queue.queued,
            in_device: queue.in_flight,
            slice,
            budget,
        }
    }

    fn budget(&self, told: &BudgetDump) -> BudgetStat {
        let nanos = |ticks| Nanos::from_millis(self.hz.millis(ticks)).as_nanos();
        let is_raised = told.raising > 1;
        let raised = self.hz.jiffies(self.now) - told.raised_since;
        BudgetStat {
            weight: told.weight,
            raising: told.raising,
            soft_rt: told.soft_rt,
            raised_ns: if is_raised { nanos(raised) } else { 0 },
            raised_span_ns: if is_raised { nanos(told.raised_for) } else { 0 },
            budget_bytes: bytes(told.budget),
            service_bytes: bytes(told.service),
            max_budget_bytes: bytes(told.max_budget),
            injection_limit: told.injection_limit,
            injection_base_ns: told.injection_base.map(Nanos::as_nanos),
            waker: told.waker.map(self.connection),
            think_time_ns: told.think_time.map(Nanos::as_nanos),
            thinks_briefly: told.thinks_briefly,
            io_bound: told.io_bound,
            in_large_burst: told.in_large_burst,
        }
    }
}

fn slice_stat(told: &SliceDump) -> SliceStat {
    let SliceDump { idle_window, slice, sent, .. } = *told;
    SliceStat { idle_window, slice_ns: slice.map(Nanos::as_nanos), sent }
}

fn bytes(sectors: SectorCount) -> u64 {
    u64::from(sectors.0) * u64::from(SectorCount::SECTOR_BYTES)
}
