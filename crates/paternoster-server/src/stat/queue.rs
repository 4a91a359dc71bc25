//! The queues of a disk's scheduler, in [`DiskStat::queues`](super::DiskStat::queues).

use paternoster::scheduler::{BudgetDump, QueueDump, ServiceDump, SliceDump};
use paternoster::{Hz, Instant, Nanos, QueueName, SectorCount};
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
    /// Whether its requests are synchronous.
    pub sync: bool,
    /// The class and level by which it is served, as `ionice` has them.
    pub io_prio: String,
    /// It is in service: under CFQ the active queue.
    pub in_service: bool,
    /// It is busy: it has requests that wait, or the disk idles for it.
    pub busy: bool,
    /// The disk idles for its next request.
    pub waited_for: bool,
    /// Several connections use it, as they work on the same part of the disk.
    pub shared: bool,
    /// Its requests are mostly far from each other.
    pub seeky: bool,
    /// Requests that wait in it.
    pub queued: u32,
    /// Requests of it in the device.
    pub in_device: u32,
    /// Its slice, where the scheduler gives slices of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<SliceStat>,
    /// Its budget, where the scheduler gives budgets of sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetStat>,
}

/// What CFQ knows of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SliceStat {
    /// It has an idle window: idling for it pays.
    pub idle_window: bool,
    /// The length of its slice, the current or the last one, in nanoseconds; none if that has not
    /// begun.
    pub slice_ns: Option<u64>,
    /// Requests dispatched in that slice.
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
    /// How long it is to be raised; it stays so until a request of it is dispatched after that.
    pub raised_span_ns: u64,
    /// Its budget: the service that it may receive before it expires.
    pub budget_bytes: u64,
    /// The service that it has received of that.
    pub service_bytes: u64,
    /// The budget that it gets next, as far as it stays backlogged.
    pub max_budget_bytes: u64,
    /// How many requests of other queues may be in the device while the disk idles for it.
    pub injection_limit: u32,
    /// What a first request takes without those; none while that is not known.
    pub injection_base_ns: Option<u64>,
    /// The connection whose completions its requests follow.
    pub waker: Option<String>,
    /// Its mean think time; none while that is not known.
    pub think_time_ns: Option<u64>,
    /// Its think time is short, for all that is known.
    pub thinks_briefly: bool,
    /// It is I/O-bound: it mostly waits for its I/O.
    pub io_bound: bool,
    /// It became busy with many others, and so is not raised.
    pub in_large_burst: bool,
}

/// Formats the queues of a disk for `stat`.
pub(crate) struct QueueFormatter<'a> {
    pub(crate) now: Instant,
    pub(crate) hz: Hz,
    /// The path of a group.
    pub(crate) path: &'a dyn Fn(&QueueDump) -> String,
    /// Who made a queue.
    pub(crate) connection: &'a dyn Fn(QueueName) -> String,
}

impl QueueFormatter<'_> {
    /// Formats one queue.
    pub(crate) fn queue(&self, queue: &QueueDump) -> QueueStat {
        let (slice, budget) = match &queue.service {
            ServiceDump::Slice(slice) => (Some(slice_stat(slice)), None),
            ServiceDump::Budget(budget) => (None, Some(self.budget(budget))),
            _ => (None, None),
        };
        QueueStat {
            group: (self.path)(queue),
            connection: (self.connection)(queue.name),
            sync: queue.name.sync,
            io_prio: queue.io_prio.to_string(),
            in_service: queue.in_service,
            busy: queue.busy,
            waited_for: queue.idling,
            shared: queue.shared,
            seeky: queue.seeky,
            queued: queue.queued,
            in_device: queue.in_flight,
            slice,
            budget,
        }
    }

    fn budget(&self, dump: &BudgetDump) -> BudgetStat {
        let nanos = |ticks| Nanos::from_millis(self.hz.millis(ticks)).as_nanos();
        let is_raised = dump.raising > 1;
        let raised = self.hz.jiffies(self.now) - dump.raised_since;
        BudgetStat {
            weight: dump.weight,
            raising: dump.raising,
            soft_rt: dump.soft_rt,
            raised_ns: if is_raised { nanos(raised) } else { 0 },
            raised_span_ns: if is_raised { nanos(dump.raised_for) } else { 0 },
            budget_bytes: bytes(dump.budget),
            service_bytes: bytes(dump.service),
            max_budget_bytes: bytes(dump.max_budget),
            injection_limit: dump.injection_limit,
            injection_base_ns: dump.injection_base.map(Nanos::as_nanos),
            waker: dump.waker.map(self.connection),
            think_time_ns: dump.think_time.map(Nanos::as_nanos),
            thinks_briefly: dump.short_think_time,
            io_bound: dump.io_bound,
            in_large_burst: dump.in_large_burst,
        }
    }
}

fn slice_stat(dump: &SliceDump) -> SliceStat {
    let SliceDump { idle_window, slice, dispatched, .. } = *dump;
    SliceStat { idle_window, slice_ns: slice.map(Nanos::as_nanos), sent: dispatched }
}

fn bytes(sectors: SectorCount) -> u64 {
    u64::from(sectors.0) * u64::from(SectorCount::SECTOR_BYTES)
}
