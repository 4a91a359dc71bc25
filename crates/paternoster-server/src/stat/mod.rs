//! What `GET /v1/stat` answers: the state of every disk and group, for people and programs; with
//! `?verbose=true` also that of every queue.
//!
//! Within a [`Stat::VERSION`] fields are only added. Counts are since start-up, times are sums in
//! nanoseconds over requests, sizes are bytes. A field that an older server did not send is read
//! as its default.

mod depth;
mod far;
mod figures;
mod histogram;
mod poll;
mod queue;
mod share;
mod time;
mod volume;
mod waits;
mod why;

use std::collections::{BTreeMap, BTreeSet};

use paternoster::scheduler::{Dump, QueueDump};
use paternoster::{
    BlkioFile, BlkioValue, DemandStats, Group, GroupStats, Instant, Latencies, Op, OpStats,
    ShareStats, TargetStats, Weight,
};
use serde::{Deserialize, Serialize};

use self::figures::How;

pub use self::depth::{DepthChange, LearnedDepth};
pub use self::far::FarStat;
pub use self::figures::{Figure, Kind};
pub(crate) use self::figures::{Number, Value, figures};
pub use self::histogram::Times;
pub use self::poll::{OvershootStat, PollClassStat, PollStat};
pub(crate) use self::queue::QueueFormatter;
pub use self::queue::{BudgetStat, QueueStat, SliceStat};
pub(crate) use self::share::per_second;
pub use self::share::{Share, ratio};
pub use self::time::TimeStat;
pub use self::volume::VolumeStat;
pub use self::why::{Behind, Served, Why, WhyAnswer};

figures! {
    /// The whole answer.
    pub struct Stat;
    /// The version of this format: 1.
    version: u32, Gauge;
    /// The disks, in the order of the configuration.
    disks: Vec<DiskStat>, Figures;
}

impl Stat {
    /// The version of this format.
    pub const VERSION: u32 = 1;
    /// What there is to know of all figures.
    pub const FIGURES: &Figure = &Figure {
        name: "",
        kind: Kind::Figures,
        doc: "All figures.",
        metric: "",
        label: "",
        parts: Self::PARTS,
    };

    /// Makes the answer about these disks.
    pub fn new(disks: Vec<DiskStat>) -> Self {
        Self { version: Self::VERSION, disks }
    }

    /// Returns the same with what was counted since an `earlier` reading in place of what was
    /// counted since start-up. What is a state stays as it is. A disk whose server was started
    /// since is counted from then, and what a scheduler counts from when it was switched to.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        self.combined(earlier, How::Since)
    }
}

/// How much `stat` reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Disks and groups.
    #[default]
    Groups,
    /// The queues of schedulers too: one or two for each connection.
    Queues,
}

figures! {
    /// One disk.
    pub struct DiskStat, "disk" by name, anew if elapsed_ns falls;
    /// Its name in the configuration.
    name: String, Text;
    /// Its kind: `file`, `memory`, `modelled` or `nbd`.
    backend: String, Text;
    /// What carries out its operations: `io_uring` or `threads`.
    engine: String, Text unless empty;
    /// Size of the disk.
    size_bytes: u64, Gauge, metric "disk_size_bytes";
    /// Time since its server started, on the clock of all times here; 0 of an older server.
    elapsed_ns: u64, Counter;
    /// Whether it seeks, as its device says or as was set.
    rotational: bool, Flag;
    /// How its file goes past the page cache, if it has one.
    cache: Option<CacheStat>, Figures unless none;
    /// The whole devices that its file is on, such as `sda`, if it has a file; empty if that is not
    /// known.
    devices: Option<BTreeSet<String>>, Text unless none;
    /// The bytes that its device forgets at once: trims of less do nothing. Of a block device that
    /// says so.
    discard_granularity_bytes: Option<u32>, Gauge unless none;
    /// Its scheduler.
    scheduler: String, Text;
    /// Whether `auto` has chosen the scheduler.
    scheduler_auto: bool, Flag;
    /// In what way groups share the disk, if the scheduler has several.
    hierarchy: Option<String>, Text unless none;
    /// The most requests in the disk at once; if the depth is learned, the most that it may be.
    depth: u32, Gauge, metric "disk_depth_requests";
    /// The depth that the scheduler has learned, if it learns one.
    learned_depth: Option<LearnedDepth>, Figures unless none;
    /// Requests in the disk now.
    in_device: u32, Gauge, metric "disk_in_flight_requests";
    /// Requests that the scheduler holds now.
    queued: u32, Gauge, metric "disk_queued_requests";
    /// Syncs of the disk that succeeded.
    syncs: u64, Counter, metric "disk_syncs_total";
    /// Whether a sync has failed: flushes and FUA writes get errors until the restart, or until its
    /// volume is reopened.
    sync_failed: bool, Flag, metric "disk_sync_failed";
    /// Whether weights have an effect under `scheduler`.
    weights_apply: bool, Flag;
    /// Whether limits of groups have an effect under `scheduler`.
    limits_apply: bool, Flag;
    /// What should be known of what is set, a sentence each.
    warnings: Vec<String>, Text unless empty;
    /// Switches to another scheduler.
    switches: u64, Counter, metric "disk_scheduler_switches_total";
    /// Requests that one scheduler held and the next one took over, summed over switches.
    moved: u64, Counter;
    /// The scheduler's tunables, each in its own unit.
    tunables: BTreeMap<String, i64>, Gauge;
    /// The scheduler's internal state, a number each, named as in Linux's debugfs.
    internals: BTreeMap<String, i64>, Gauge;
    /// The server behind it, if `backend` is `nbd`.
    far: Option<FarStat>, Figures unless none;
    /// The model, if `backend` is `modelled`.
    modelled: Option<ModelledStat>, Figures;
    /// Sleeps of its thread: an interrupt, another thread or a timer ended each.
    waits: u64, Counter;
    /// How its thread has waited.
    poll: PollStat, Figures;
    /// What has crossed between its thread and connection threads, if there are such threads.
    threads: Option<ThreadsStat>, Figures unless none;
    /// Client connections to the disk now.
    connections: u32, Gauge, metric "disk_connections";
    /// How many of these are virtual machines that are attached by shared memory.
    machines: u32, Gauge unless zero, metric "disk_machines";
    /// The root group: its weights, its caps and how long they held, and its `blkio` files.
    root: GroupStat, Untold;
    /// The groups that have an export here or below them, in the order of the configuration: each
    /// behind its parent. On a page, in the order of their paths.
    groups: Vec<GroupStat>, Figures;
    /// The volumes of a pool, if they were asked for.
    volumes: Vec<VolumeStat>, Figures unless empty;
    /// The scheduler's queues, if they were asked for.
    queues: Option<Vec<QueueStat>>, Figures unless none;
}

/// Collects what a scheduler dumps, for [`DiskStat::internals`] and [`DiskStat::queues`].
#[derive(Clone, Debug, Default)]
pub struct Internals {
    /// Numbers by name.
    pub numbers: BTreeMap<String, i64>,
    /// Queues.
    pub queues: Vec<QueueDump>,
}

impl Dump for Internals {
    fn number(&mut self, name: &'static str, value: i64) {
        self.numbers.insert(name.to_owned(), value);
    }

    fn queue(&mut self, queue: &QueueDump) {
        self.queues.push(*queue);
    }
}

figures! {
    /// How the file of a disk goes past the page cache, or through it.
    pub struct CacheStat;
    /// `direct` or `page`.
    mode: String, Text;
    /// How that is known, as a sentence.
    because: String, Text;
    /// The size of the blocks in which it is read and written; 1 if any byte can be.
    block_bytes: u32, Gauge;
}

figures! {
    /// A modelled disk.
    pub struct ModelledStat;
    /// The device of the laboratory that it is, by its name or file; null if it is made of servers,
    /// which the next three describe.
    model: Option<String>, Text;
    /// Requests that it serves at once.
    servers: Option<u32>, Gauge;
    /// Fixed time of a request.
    service_ns: Option<u64>, Gauge;
    /// Further time for each KiB of a request, in nanoseconds.
    ns_per_kib: Option<u64>, Gauge;
    /// Time that its servers were idle, summed over them; of a device of the laboratory, the time
    /// in which it had nothing to do.
    idle_ns: u64, Counter;
}

figures! {
    /// What has crossed between the thread of a disk and connection threads.
    #[derive(Copy)]
    pub struct ThreadsStat;
    /// Connection threads of the server.
    threads: u32, Gauge;
    /// Commands of clients that have crossed.
    commands: u64, Counter;
    /// Batches in which they have crossed; a command that may not wait in a plug is one alone.
    batches: u64, Counter;
    /// Wake-ups of the disk's thread, which slept, by a connection thread.
    owner_woken: u64, Counter;
    /// Wake-ups of a connection thread by the disk's thread.
    threads_woken: u64, Counter;
}

figures! {
    /// One group on one disk: what is counted is its own, without that of the groups below it.
    pub struct GroupStat, "tenant" by path;
    /// The path of the group.
    path: String, Text;
    /// Weight of the group against its siblings, 1 to 1000.
    weight: u32, Gauge, metric "tenant_weight";
    /// Weight of the group's own requests against the groups below it, 1 to 1000.
    leaf_weight: u32, Gauge, metric "tenant_leaf_weight";
    /// Its caps and its reservation, those that there are, a second, by their keys in the file;
    /// and its `latency_target` in microseconds.
    limits: BTreeMap<String, u64>, Gauge unless empty;
    /// Time for which what waited was held back, by the reason: `cap` is its own cap.
    throttled_ns: BTreeMap<String, u64>, Counter unless empty;
    /// Requests, of groups below it too, that its reservation brought forward.
    reserved: u64, Counter unless zero;
    /// What has become of its latency target, if it has one.
    target: Option<TargetStat>, Figures unless none;
    /// The names of its exports of this disk.
    exports: Vec<String>, Text;
    /// Client connections to the exports of the group on this disk now.
    connections: u32, Gauge, metric "tenant_connections";
    /// How many of these are virtual machines that are attached by shared memory.
    machines: u32, Gauge unless zero, metric "tenant_machines";
    /// Requests of the group that the scheduler holds now.
    queued: u32, Gauge, metric "tenant_queued_requests";
    /// Requests of the group in the disk now.
    in_device: u32, Gauge, metric "tenant_in_flight_requests";
    /// Time for which requests of the group were outstanding, from arrival to completion, summed
    /// over requests: its rate is their mean number. Under `wfq`.
    outstanding_ns: Option<u64>, Counter unless none,
        metric "tenant_outstanding_seconds_total";
    /// How many requests the group has to keep outstanding for its weight to hold, among the groups
    /// that asked for something a moment ago. Under `wfq`, and if the group asked.
    needs_outstanding: Option<u32>, Gauge unless none,
        metric "tenant_needs_outstanding_requests";
    /// Time in which at least one request of the group waited for the disk: its rate is DEMAND.
    backlogged_ns: u64, Counter, metric "tenant_backlogged_seconds_total";
    /// Time for which its requests that are done kept servers of a modelled disk, summed over
    /// servers.
    device_ns: Option<u64>, Counter unless none;
    /// Its time by cause.
    time: TimeStat, Figures;
    /// What the disk served of each other group while a request of this one waited for its turn
    /// (`turn_ns`), by path: of a modelled disk nanoseconds, summed over its servers, else bytes,
    /// where a request counts as 16 KiB more than it has.
    behind: BTreeMap<String, u64>, Counter unless empty;
    /// Counts by operation: `read`, `write`, `discard`, `write_zeroes` and `flush`.
    ops: BTreeMap<String, OpStat>, Figures by "op";
    /// Its weights where the disk has none of its own for it, and those of the disk.
    weights: WeightsStat, Figures;
    /// Its files of Linux's `blkio` controller, named without the `blkio.`. `time` and what belongs
    /// to it are there under a scheduler that charges groups for time.
    blkio: BTreeMap<String, BlkioStat>, Counter;
    /// The same of all that is below it as well: the files whose names end in `_recursive`, named
    /// without that.
    blkio_recursive: BTreeMap<String, BlkioStat>, Counter;
}

figures! {
    /// The weights of a group as the files of Linux's `blkio` controller have them.
    #[derive(Copy)]
    pub struct WeightsStat, of (group: &Group);
    /// Of the group on every disk.
    weight: u32, Gauge = group.configured().weight.value();
    /// Of its own requests against those of the groups below it, on every disk.
    leaf_weight: u32, Gauge = group.configured().leaf.value();
    /// Of the group on this disk alone, if it has one.
    weight_device: Option<u32>, Gauge unless none = group.on_device().weight.map(Weight::value);
    /// Of its own requests on this disk alone, if it has one.
    leaf_weight_device: Option<u32>, Gauge unless none = group.on_device().leaf.map(Weight::value);
}

figures! {
    /// What has become of the latency target of a group, since it was set.
    #[derive(Copy)]
    pub struct TargetStat, anew if requests falls, of (stats: &TargetStats);
    /// Requests that were served of a group with a latency target and of groups below it.
    requests: u64, Counter, metric "tenant_target_requests_total" = stats.requests;
    /// Requests of these that took longer than the target from arrival to completion.
    late: u64, Counter, metric "tenant_late_requests_total" = stats.late;
    /// How many requests groups with a later target or none may have in the disk now, while they
    /// are held.
    held: Option<u32>, Gauge unless none = stats.held;
    /// Periods of 100 ms or more in which it was missed though others were held to a quarter of the
    /// depth.
    unmet: u64, Counter = stats.unmet;
    /// Whether the target is not enforced, as it cannot be met; it is tried again after five
    /// seconds.
    given_up: bool, Flag, metric "tenant_target_given_up" = stats.given_up;
}

impl GroupStat {
    /// Returns what all operations counted together.
    pub fn all_ops(&self) -> OpStat {
        self.ops.values().fold(OpStat::default(), |all, op| all.combined(op, How::Plus))
    }

    /// Returns this group with what another has.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.combined(other, How::Plus)
    }

    /// Copies what the scheduler counted of the group's share.
    pub(crate) fn count_share(&mut self, stats: &ShareStats, now: Instant) {
        let capped = stats.capped(now).as_nanos();
        self.throttled_ns = [("cap", capped)].map(|(why, nanos)| (why.to_owned(), nanos)).into();
        self.throttled_ns.retain(|_, nanos| *nanos > 0);
        self.reserved = stats.reserved;
        self.target =
            self.limits.contains_key("latency_target").then(|| TargetStat::of(&stats.target));
    }

    /// Copies what the scheduler measured of what the group asks for.
    pub(crate) fn count_demand(&mut self, stats: DemandStats) {
        self.outstanding_ns = Some(stats.outstanding.as_nanos());
        self.needs_outstanding = stats.needs;
    }

    /// Copies the counts of the group from the elevator.
    pub fn count(&mut self, stats: &GroupStats, now: Instant) {
        self.queued = stats.queued;
        self.in_device = stats.in_flight;
        self.backlogged_ns = stats.backlogged(now).as_nanos();
        let counted = |op| OpStat::of(stats.op(op), stats.latencies(op));
        self.ops = Op::ALL.map(|op| (op_name(op).to_owned(), counted(op))).into();
    }
}

/// What a `blkio` file holds. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BlkioStat {
    /// One number.
    Number(u64),
    /// A number for each operation, and the same for synchronous and for asynchronous requests.
    Split(BlkioSplit),
}

/// The numbers of a `blkio` file: `read`, `write` and `discard` add up to `total`, and so do
/// `sync` and `async`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BlkioSplit {
    /// Reads and flushes.
    pub read: u64,
    /// Writes, and zeroes written.
    pub write: u64,
    /// Discards.
    pub discard: u64,
    /// Synchronous requests.
    pub sync: u64,
    /// Asynchronous requests.
    #[serde(rename = "async")]
    pub asynchronous: u64,
    /// All.
    pub total: u64,
}

impl BlkioSplit {
    /// Returns each number by its name in Linux's files, in their order.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        let Self { read, write, discard, sync, asynchronous, total } = *self;
        [
            ("Read", read),
            ("Write", write),
            ("Discard", discard),
            ("Sync", sync),
            ("Async", asynchronous),
            ("Total", total),
        ]
    }
}

impl BlkioStat {
    /// Returns what is shown of a value; none of one of a kind that is not shown yet.
    fn of(value: BlkioValue) -> Option<Self> {
        match value {
            BlkioValue::Number(number) => Some(Self::Number(number)),
            BlkioValue::Split { read, write, discard, sync, asynchronous, total, .. } => {
                Some(Self::Split(BlkioSplit { read, write, discard, sync, asynchronous, total }))
            }
            _ => None,
        }
    }
}

/// Returns the files by name, for [`GroupStat::blkio`].
pub fn blkio_files(files: &[BlkioFile]) -> BTreeMap<String, BlkioStat> {
    let shown = |file: &BlkioFile| Some((file.name.to_owned(), BlkioStat::of(file.value)?));
    files.iter().filter_map(shown).collect()
}

/// How the counters of `blkio` files are combined: only `time` is told for spans.
impl Value for BTreeMap<String, BlkioStat> {
    fn combined(&self, other: &Self, how: How) -> Self {
        const TIME: &str = "time";
        let mut files = self.clone();
        if let (Some(BlkioStat::Number(own)), Some(BlkioStat::Number(other))) =
            (files.get_mut(TIME), other.get(TIME))
        {
            *own = own.combined(other, how);
        }
        files
    }
}

figures! {
    /// One operation of one group on one disk.
    #[derive(Copy)]
    pub struct OpStat, of (stats: OpStats, latencies: &Latencies);
    /// Operations of clients that arrived, in pieces as large as the disk takes them.
    bios: u64, Counter, metric "tenant_operations_total" = stats.bios;
    /// Bytes of the operations that arrived, in whole sectors.
    bytes: u64, Counter, metric "tenant_bytes_total" = stats.bytes;
    /// Operations that became part of another request.
    merged: u64, Counter, metric "tenant_merges_total" = stats.merged;
    /// Requests given to the disk.
    dispatched: u64, Counter = stats.dispatched;
    /// Requests that the disk has done, after merging.
    completed: u64, Counter, metric "tenant_requests_total" = stats.completed;
    /// Requests of the operation that the scheduler holds now.
    queued: u64, Gauge, metric "tenant_operation_queued_requests" = stats.queued;
    /// Time from the making of a request to its dispatch, summed over the completed ones.
    wait_ns: u64, Counter = stats.wait.as_nanos();
    /// Time from the dispatch of a request to its completion, summed over the completed ones.
    service_ns: u64, Counter = stats.service.as_nanos();
    /// From the arrival of a request to its dispatch.
    wait: Times, Histogram of wait_ns unless empty,
        metric "tenant_wait_seconds" = Times::of(&latencies.wait);
    /// From the dispatch of a request to its completion.
    service: Times, Histogram of service_ns unless empty,
        metric "tenant_service_seconds" = Times::of(&latencies.service);
    /// From the arrival of a request to its completion.
    total: Times, Histogram unless empty = Times::of(&latencies.total);
}

/// Returns the key of an operation in [`GroupStat::ops`].
pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
        Op::WriteZeroes => "write_zeroes",
        Op::Flush => "flush",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use paternoster::{
        AnyScheduler, Bio, Device, Driver, Elevator, IoPrio, Nanos, NoTrace, SchedulerKind, Sector,
        SectorCount,
    };

    use super::*;

    #[test]
    fn requests_that_wait_are_told_by_operation() {
        let now = Instant::START;
        let scheduler = AnyScheduler::new(SchedulerKind::Wfq, NoTrace);
        let mut elevator = Elevator::new(scheduler, Device::solid_state(1), now);
        let root = elevator.groups().root();
        let client = elevator.add_io_context(now, IoPrio::default(), root);
        let mut driver = Driver::new(elevator);
        let far_apart = |n: u64| (Sector(n * 10_000), SectorCount(8));
        let reads = (0..3).map(far_apart).map(|(at, length)| Bio::read(client, at, length));
        let writes = (3..8).map(far_apart).map(|(at, length)| Bio::write(client, at, length));
        for bio in reads.chain(writes) {
            driver.submit(now, bio);
        }
        let mut in_device = vec![];
        driver.dispatch(now, |_, rq| in_device.push(rq));
        assert_eq!(in_device.len(), 1, "the device has one at a time");
        let mut group = GroupStat::default();
        group.count(driver.elevator().stats().group(root), now + Nanos::from_millis(1));
        let queued = |op: &str| group.ops[op].queued;
        assert_eq!([queued("read"), queued("write"), queued("flush")], [2, 5, 0]);
        assert_eq!(group.queued, 7);
    }
}
