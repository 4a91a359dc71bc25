//! What `GET /v1/stat` answers: the state of every disk and group, for people and programs; with
//! `?verbose=true` also that of every queue.
//!
//! Within a [`Stat::VERSION`] fields are only added. Counts are since start-up, times are sums in
//! nanoseconds over requests, sizes are bytes. A field that an older server did not send is read
//! as its default.

mod depth;
mod far;
mod histogram;
mod poll;
mod queue;
mod share;
mod since;
mod time;
mod why;

use std::collections::{BTreeMap, BTreeSet};

use paternoster::scheduler::{Dump, QueueDump};
use paternoster::{
    BlkioFile, BlkioValue, DemandStats, Group, GroupStats, Instant, Op, ShareStats, TargetStats,
    Weight,
};
use serde::{Deserialize, Serialize};

pub use self::depth::{DepthChange, LearnedDepth};
pub use self::far::FarStat;
pub use self::histogram::Times;
pub use self::poll::{OvershootStat, PollClassStat, PollStat};
pub(crate) use self::queue::QueueFormatter;
pub use self::queue::{BudgetStat, QueueStat, SliceStat};
pub use self::share::Share;
pub use self::time::TimeStat;
pub use self::why::{Behind, Served, Why, WhyAnswer};

/// The whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stat {
    /// [`Stat::VERSION`].
    pub version: u32,
    /// The disks, in the order of the configuration.
    pub disks: Vec<DiskStat>,
}

impl Stat {
    /// The version of this format.
    pub const VERSION: u32 = 1;

    /// Makes the answer about these disks.
    pub fn new(disks: Vec<DiskStat>) -> Self {
        Self { version: Self::VERSION, disks }
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

/// One disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub struct DiskStat {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind: `file`, `memory`, `modelled` or `nbd`.
    pub backend: String,
    /// By what its operations are carried out: `io_uring` or `threads`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Time since its server started, in nanoseconds, on the clock of all times here; 0 of an older
    /// server.
    pub elapsed_ns: u64,
    /// Whether it seeks, as its device says or as was set.
    pub rotational: bool,
    /// How its file goes past the page cache; there if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheStat>,
    /// The whole devices that its file is on, such as `sda`, and none if that is not known; there
    /// if it has a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<BTreeSet<String>>,
    /// Bytes of what its device forgets at once: trims of less do nothing; there if it is a block
    /// device that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard_granularity_bytes: Option<u32>,
    /// Its scheduler.
    pub scheduler: String,
    /// Whether `auto` has chosen it.
    pub scheduler_auto: bool,
    /// In what way groups share the disk; there if the scheduler has such ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<String>,
    /// The most requests in the device at once.
    pub depth: u32,
    /// The depth that the scheduler has learned; there if it learns one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_depth: Option<LearnedDepth>,
    /// Requests in the device now.
    pub in_device: u32,
    /// Requests that the scheduler holds now.
    pub queued: u32,
    /// Syncs of the disk that ended well.
    pub syncs: u64,
    /// Whether a sync failed: since then every flush and FUA command gets an error.
    pub sync_failed: bool,
    /// Whether weights have an effect under `scheduler`.
    pub weights_apply: bool,
    /// Whether limits of groups have an effect under `scheduler`.
    pub limits_apply: bool,
    /// What should be known of what is set, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Switches to another scheduler.
    pub switches: u64,
    /// Requests that one scheduler held and the next one took over, summed over switches.
    pub moved: u64,
    /// The scheduler's tunables, each in its own unit.
    pub tunables: BTreeMap<String, i64>,
    /// The scheduler's internal state, a number each, named as in Linux's debugfs.
    pub internals: BTreeMap<String, i64>,
    /// The server behind it; there if `backend` is `nbd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far: Option<FarStat>,
    /// The model; there if `backend` is `modelled`.
    pub modelled: Option<ModelledStat>,
    /// How often the thread of its owner has slept: each time, an interrupt or another thread
    /// ended that, or a moment had come.
    pub waits: u64,
    /// How the thread has waited.
    pub poll: PollStat,
    /// What has crossed between its owner and connection threads; there if there are such threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadsStat>,
    /// Client connections now.
    pub connections: u32,
    /// The root group: its weights and its `blkio` files alone.
    pub root: GroupStat,
    /// The groups that have an export here or below them, in the order of the configuration: each
    /// behind its parent.
    pub groups: Vec<GroupStat>,
    /// The scheduler's queues, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<QueueStat>>,
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

/// How the file of a disk goes past the page cache, or through it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheStat {
    /// `direct` or `page`.
    pub mode: String,
    /// How that is known, as a sentence.
    pub because: String,
    /// Bytes of the blocks in which it is read and written; 1 where any byte can be.
    pub block_bytes: u32,
}

/// A modelled disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelledStat {
    /// The device of the laboratory that it is, by its name or file; null where it is made of
    /// servers, which the following three describe.
    pub model: Option<String>,
    /// Requests that it serves at once.
    pub servers: Option<u32>,
    /// Fixed time of a request, in nanoseconds.
    pub service_ns: Option<u64>,
    /// Further time for each KiB of a request, in nanoseconds.
    pub ns_per_kib: Option<u64>,
    /// Time that its servers stood idle, in nanoseconds, as a sum over them; of a device of the
    /// laboratory that in which it had nothing to do.
    pub idle_ns: u64,
}

/// What has crossed between the owner of a disk and connection threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadsStat {
    /// Connection threads of the server.
    pub threads: u32,
    /// Commands of clients that have crossed.
    pub commands: u64,
    /// Batches in which they have crossed; a command that may not wait in a plug is one alone.
    pub batches: u64,
    /// How often a thread has woken the owner, which slept.
    pub owner_woken: u64,
    /// How often the owner has woken a thread.
    pub threads_woken: u64,
}

/// One group on one disk: what is counted is its own, without that of the groups below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupStat {
    /// The group's path.
    pub path: String,
    /// Its weight against its siblings, 1 to 1000.
    pub weight: u32,
    /// The weight of its own requests against the groups below it, 1 to 1000.
    pub leaf_weight: u32,
    /// Its caps and its reservation, those that there are, a second: `riops`, `wiops`, `rbps`,
    /// `wbps`, `min_iops`, `min_bps`; and its `latency_target` in microseconds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// Time for which what waited was held back, in nanoseconds, by the reason: `cap` is its own
    /// cap.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub throttled_ns: BTreeMap<String, u64>,
    /// Requests, of groups below it too, that its reservation brought forward.
    #[serde(skip_serializing_if = "is_zero")]
    pub reserved: u64,
    /// What has become of its latency target, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetStat>,
    /// The names of its exports of this disk.
    pub exports: Vec<String>,
    /// Client connections to these exports now.
    pub connections: u32,
    /// Its requests that the scheduler holds now.
    pub queued: u32,
    /// Its requests in the device now.
    pub in_device: u32,
    /// Time for which its requests were outstanding, from their arrival to their completion, in
    /// nanoseconds, summed over requests: in a span it grows by their mean number times the span.
    /// There if the scheduler measures it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding_ns: Option<u64>,
    /// How many requests it has to keep outstanding for its weight to hold, among the groups that
    /// asked for something a moment ago; there if the scheduler knows, and it asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_outstanding: Option<u32>,
    /// Time in which at least one of its requests waited for the device, in nanoseconds.
    pub backlogged_ns: u64,
    /// Time for which its requests that are done kept servers of a modelled device, in nanoseconds,
    /// summed over servers; there if the disk is modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
    /// Its time by cause.
    pub time: TimeStat,
    /// What the disk served of each other group while a request of this one waited for its turn
    /// (`turn_ns`), by path: of a modelled disk nanoseconds, summed over its servers, else bytes,
    /// where a request counts as 16 KiB more than it has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub behind: BTreeMap<String, u64>,
    /// Counts by operation: `read`, `write`, `discard`, `write_zeroes` and `flush`.
    pub ops: BTreeMap<String, OpStat>,
    /// Its weights where the disk has none of its own for it, and those of the disk.
    pub weights: WeightsStat,
    /// Its files of Linux's `blkio` controller, named without the `blkio.`. `time` and what belongs
    /// to it are there under a scheduler that charges groups for time.
    pub blkio: BTreeMap<String, BlkioStat>,
    /// The same of all that is below it as well: the files whose names end in `_recursive`, named
    /// without that.
    pub blkio_recursive: BTreeMap<String, BlkioStat>,
}

/// The weights of a group as the files of Linux's `blkio` controller have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WeightsStat {
    /// Of the group on every disk,
    pub weight: u32,
    /// and of its own requests against those of the groups below it.
    pub leaf_weight: u32,
    /// The same on this disk alone, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_device: Option<u32>,
    /// See above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_weight_device: Option<u32>,
}

impl From<&Group> for WeightsStat {
    fn from(group: &Group) -> Self {
        let (everywhere, here) = (group.configured(), group.on_device());
        Self {
            weight: everywhere.weight.value(),
            leaf_weight: everywhere.leaf.value(),
            weight_device: here.weight.map(Weight::value),
            leaf_weight_device: here.leaf.map(Weight::value),
        }
    }
}

/// What has become of the latency target of a group, since it was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetStat {
    /// Requests that were served, of groups below it too,
    pub requests: u64,
    /// and those of them that took longer than the target, from arrival to completion.
    pub late: u64,
    /// How many requests groups with a later target or none may have in the disk now; missing where
    /// they are not held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<u32>,
    /// Periods of 100 ms or more in which it was missed though others were held to a quarter of the
    /// depth.
    pub unmet: u64,
    /// It cannot be met: nobody is held for it for five seconds, until it is tried again.
    pub given_up: bool,
}

impl From<TargetStats> for TargetStat {
    fn from(TargetStats { requests, late, held, unmet, given_up, .. }: TargetStats) -> Self {
        Self { requests, late, held, unmet, given_up }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl GroupStat {
    /// Copies what the scheduler counted of the group's share.
    pub(crate) fn count_share(&mut self, stats: &ShareStats, now: Instant) {
        let capped = stats.capped(now).as_nanos();
        self.throttled_ns = [("cap", capped)].map(|(why, nanos)| (why.to_owned(), nanos)).into();
        self.throttled_ns.retain(|_, nanos| *nanos > 0);
        self.reserved = stats.reserved;
        self.target = self.limits.contains_key("latency_target").then(|| stats.target.into());
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
        self.ops = Op::ALL.map(|op| (op_name(op).to_owned(), OpStat::of(stats, op))).into();
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

/// One operation of one group on one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpStat {
    /// Pieces of I/O that arrived.
    pub bios: u64,
    /// Their bytes, in whole sectors.
    pub bytes: u64,
    /// Those that became part of another request.
    pub merged: u64,
    /// Requests given to the device.
    pub dispatched: u64,
    /// Requests done.
    pub completed: u64,
    /// From a request's making to the device, in nanoseconds, over all `completed`.
    pub wait_ns: u64,
    /// From the device to its completion, in nanoseconds, over all `completed`.
    pub service_ns: u64,
    /// How many of the `completed` waited how long.
    #[serde(skip_serializing_if = "Times::is_empty")]
    pub wait: Times,
    /// How many of them were how long in the device.
    #[serde(skip_serializing_if = "Times::is_empty")]
    pub service: Times,
    /// How many of them took how long with both.
    #[serde(skip_serializing_if = "Times::is_empty")]
    pub total: Times,
}

impl OpStat {
    fn of(stats: &GroupStats, op: Op) -> Self {
        let latencies = stats.latencies(op);
        let stats = stats.op(op);
        Self {
            bios: stats.bios,
            bytes: stats.bytes,
            merged: stats.merged,
            dispatched: stats.dispatched,
            completed: stats.completed,
            wait_ns: stats.wait.as_nanos(),
            service_ns: stats.service.as_nanos(),
            wait: Times::of(&latencies.wait),
            service: Times::of(&latencies.service),
            total: Times::of(&latencies.total),
        }
    }
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
