//! The queues of a disk's scheduler, in [`DiskStat::queues`](super::DiskStat::queues).

use paternoster::scheduler::{BudgetDump, QueueDump, ServiceDump, SliceDump};
use paternoster::{Hz, Instant, Nanos, QueueName, SectorCount};

use super::figures::figures;

figures! {
    /// A queue of a disk's scheduler, as it is now.
    pub struct QueueStat, of (queue: &QueueDump, names: &QueueFormatter<'_>);
    /// The path of the group in which it competes.
    group: String, Text = (names.path)(queue);
    /// Its export and the number of its connection there, such as `vm1#3`. All connections of a
    /// group that have one priority share a queue that is not sync: it has the name of the one that
    /// made it. `gone` after that has ended.
    connection: String, Text = (names.connection)(queue.name);
    /// Whether its requests are synchronous.
    sync: bool, Flag = queue.name.sync;
    /// The class and level by which it is served, as `ionice` has them.
    io_prio: String, Text = queue.io_prio.to_string();
    /// Whether it is in service: under CFQ the active queue.
    in_service: bool, Flag = queue.in_service;
    /// Whether it is busy: it has requests that wait, or the disk idles for it.
    busy: bool, Flag = queue.busy;
    /// Whether the disk idles for its next request.
    waited_for: bool, Flag = queue.idling;
    /// Whether several connections use it, as they work on the same part of the disk.
    shared: bool, Flag = queue.shared;
    /// Whether its requests are mostly far from each other.
    seeky: bool, Flag = queue.seeky;
    /// Requests that wait in it.
    queued: u32, Gauge = queue.queued;
    /// Requests of it in the device.
    in_device: u32, Gauge = queue.in_flight;
    /// Its slice, if the scheduler gives slices of time.
    slice: Option<SliceStat>, Figures unless none = match &queue.service {
        ServiceDump::Slice(slice) => Some(SliceStat::of(slice)),
        _ => None,
    };
    /// Its budget, if the scheduler gives budgets of sectors.
    budget: Option<BudgetStat>, Figures unless none = match &queue.service {
        ServiceDump::Budget(budget) => Some(BudgetStat::of(budget, names)),
        _ => None,
    };
}

figures! {
    /// What CFQ knows of a queue.
    pub struct SliceStat, of (dump: &SliceDump);
    /// Whether it has an idle window: idling for it pays.
    idle_window: bool, Flag = dump.idle_window;
    /// The length of its slice, the current or the last one; none if that has not begun.
    slice_ns: Option<u64>, Gauge = dump.slice.map(Nanos::as_nanos);
    /// Requests dispatched in that slice.
    sent: u32, Gauge = dump.dispatched;
}

figures! {
    /// What BFQ knows of a queue.
    pub struct BudgetStat, of (dump: &BudgetDump, names: &QueueFormatter<'_>);
    /// Its weight against its siblings, raised or not.
    weight: u32, Gauge = dump.weight;
    /// The factor by which its weight is raised; 1 if it is not.
    raising: u32, Gauge = dump.raising;
    /// Whether it is raised as soft real time, or was last, and not as interactive.
    soft_rt: bool, Flag = dump.soft_rt;
    /// How long it has been raised; 0 if it is not.
    raised_ns: u64, Gauge = names.raised(dump).0;
    /// How long it is to be raised; it stays so until a request of it is dispatched after that.
    raised_span_ns: u64, Gauge = names.raised(dump).1;
    /// Its budget: the service that it may receive before it expires.
    budget_bytes: u64, Gauge = bytes(dump.budget);
    /// The service that it has received of its budget.
    service_bytes: u64, Gauge = bytes(dump.service);
    /// The budget that it gets next, as far as it stays backlogged.
    max_budget_bytes: u64, Gauge = bytes(dump.max_budget);
    /// How many requests of other queues may be in the device while the disk idles for it.
    injection_limit: u32, Gauge = dump.injection_limit;
    /// The time that a first request takes without those; none while that is not known.
    injection_base_ns: Option<u64>, Gauge = dump.injection_base.map(Nanos::as_nanos);
    /// The connection whose completions its requests follow.
    waker: Option<String>, Text = dump.waker.map(names.connection);
    /// Its mean think time; none while that is not known.
    think_time_ns: Option<u64>, Gauge = dump.think_time.map(Nanos::as_nanos);
    /// Whether its think time is short, as far as that is known.
    thinks_briefly: bool, Flag = dump.short_think_time;
    /// Whether it is I/O-bound: it mostly waits for its I/O.
    io_bound: bool, Flag = dump.io_bound;
    /// Whether it became busy with many others, and so is not raised.
    in_large_burst: bool, Flag = dump.in_large_burst;
}

/// What names the groups and connections of a disk's queues, and reads the clock of its scheduler.
pub(crate) struct QueueFormatter<'a> {
    pub(crate) now: Instant,
    pub(crate) hz: Hz,
    /// The path of a group.
    pub(crate) path: &'a dyn Fn(&QueueDump) -> String,
    /// Who made a queue.
    pub(crate) connection: &'a dyn Fn(QueueName) -> String,
}

impl QueueFormatter<'_> {
    /// For how many nanoseconds the weight of a queue has been raised, and is to be.
    fn raised(&self, dump: &BudgetDump) -> (u64, u64) {
        if dump.raising <= 1 {
            return (0, 0);
        }
        let nanos = |ticks| Nanos::from_millis(self.hz.millis(ticks)).as_nanos();
        (nanos(self.hz.jiffies(self.now) - dump.raised_since), nanos(dump.raised_for))
    }
}

fn bytes(sectors: SectorCount) -> u64 {
    u64::from(sectors.0) * u64::from(SectorCount::SECTOR_BYTES)
}
