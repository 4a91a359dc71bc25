//! Counts of bios and requests by group and operation, as in Linux's `blkio` files.

mod blkio;
mod histogram;
mod shares;
mod slices;

use std::ops::AddAssign;

use crate::arena::{GroupId, Parallel, SideTable};
use crate::request::{Bio, Op, Request};
use crate::time::{Instant, Nanos};

pub(crate) use blkio::files as blkio_files;
pub use blkio::{BlkioFile, BlkioValue};
pub use histogram::Histogram;
pub use shares::{DemandStats, ShareStats, TargetStats};
pub use slices::SliceStats;

/// Counts of one operation of one group. Times are sums over requests, counted as they complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpStats {
    /// Bios that arrived (`io_serviced`, counted at submission).
    pub bios: u64,
    /// Their bytes (`io_service_bytes`), in whole sectors.
    pub bytes: u64,
    /// Bios that merged and requests that were absorbed (`io_merged`).
    pub merged: u64,
    /// Requests dispatched.
    pub dispatched: u64,
    /// Requests completed.
    pub completed: u64,
    /// Requests that wait now (`io_queued`).
    pub queued: u64,
    /// From creation to dispatch; to the last dispatch of a requeued request (`io_wait_time`).
    pub wait: Nanos,
    /// From dispatch to completion (`io_service_time`).
    pub service: Nanos,
}

impl AddAssign<&OpStats> for OpStats {
    fn add_assign(&mut self, other: &OpStats) {
        self.bios += other.bios;
        self.bytes += other.bytes;
        self.merged += other.merged;
        self.dispatched += other.dispatched;
        self.completed += other.completed;
        self.queued += other.queued;
        self.wait += other.wait;
        self.service += other.service;
    }
}

/// How long the requests of one operation of one group took, counted as they complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latencies {
    /// As [`OpStats::wait`].
    pub wait: Histogram,
    /// As [`OpStats::service`].
    pub service: Histogram,
    /// From creation to completion.
    pub total: Histogram,
}

impl AddAssign<&Latencies> for Latencies {
    fn add_assign(&mut self, other: &Latencies) {
        self.wait += &other.wait;
        self.service += &other.service;
        self.total += &other.total;
    }
}

/// The group, operation and synchrony by which a bio or a request is counted.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    group: GroupId,
    op: Op,
    sync: bool,
}

impl Counted {
    #[inline]
    pub(crate) fn bio(bio: &Bio, group: GroupId) -> Self {
        Self { group, op: bio.op, sync: bio.is_sync() }
    }

    #[inline]
    pub(crate) fn request(rq: &Request) -> Self {
        Self { group: rq.group, op: rq.op, sync: rq.is_sync() }
    }
}

/// The counts of one group, or of several together.
#[derive(Clone, Debug, Default)]
pub struct GroupStats {
    /// By operation: first asynchronous, then synchronous.
    ops: [[OpStats; 2]; Op::COUNT],
    latencies: [Latencies; Op::COUNT],
    /// Requests that wait now.
    pub queued: u32,
    /// Requests in flight now.
    pub in_flight: u32,
    /// The time with a request waiting, up to the moment at which `queued` last became 0.
    backlogged: Nanos,
    /// Since when requests wait; none while none does.
    backlogged_since: Option<Instant>,
}

impl GroupStats {
    /// The counts of one operation.
    pub fn op(&self, op: Op) -> OpStats {
        sum(&self.ops[op as usize])
    }

    /// How long the requests of one operation took.
    pub fn latencies(&self, op: Op) -> &Latencies {
        &self.latencies[op as usize]
    }

    /// The counts of synchronous bios and requests.
    pub fn synchronous(&self) -> OpStats {
        sum(self.ops.iter().map(|[_, sync]| sync))
    }

    /// The counts of asynchronous bios and requests.
    pub fn asynchronous(&self) -> OpStats {
        sum(self.ops.iter().map(|[asynchronous, _]| asynchronous))
    }

    /// The time in which at least one request waited for the device, up to `now` on the elevator's
    /// own clock ([`Elevator::clock`](crate::Elevator::clock)).
    pub fn backlogged(&self, now: Instant) -> Nanos {
        let open = self.backlogged_since.map_or(Nanos::ZERO, |since| now.saturating_since(since));
        self.backlogged + open
    }

    /// Adds the counts of another group, but not its time with a request waiting, as several groups
    /// may have requests waiting at once.
    pub(crate) fn add_counts(&mut self, other: &Self) {
        for (own, other) in self.ops.iter_mut().flatten().zip(other.ops.iter().flatten()) {
            *own += other;
        }
        for (own, other) in self.latencies.iter_mut().zip(&other.latencies) {
            *own += other;
        }
        self.queued += other.queued;
        self.in_flight += other.in_flight;
    }

    #[inline]
    fn of(&mut self, op: Op, sync: bool) -> &mut OpStats {
        &mut self.ops[op as usize][usize::from(sync)]
    }

    #[inline]
    fn request_waits(&mut self, now: Instant) -> bool {
        self.queued += 1;
        let is_first = self.queued == 1;
        if is_first {
            self.backlogged_since = Some(now);
        }
        is_first
    }

    #[inline]
    fn request_waits_no_more(&mut self, now: Instant) -> bool {
        self.queued -= 1;
        let was_last = self.queued == 0;
        if was_last {
            self.backlogged = self.backlogged(now);
            self.backlogged_since = None;
        }
        was_last
    }
}

fn sum<'a>(stats: impl IntoIterator<Item = &'a OpStats>) -> OpStats {
    let mut sum = OpStats::default();
    stats.into_iter().for_each(|stats| sum += stats);
    sum
}

/// The counts of removed groups, kept by their parent.
#[derive(Debug, Default)]
pub(crate) struct Departed {
    pub(crate) stats: GroupStats,
    pub(crate) slices: SliceStats,
}

/// The counts of one elevator.
#[derive(Debug, Default)]
pub struct Stats {
    by_group: Parallel<GroupId, GroupStats>,
    /// The counts of removed groups, by parent.
    pub(crate) departed: SideTable<GroupId, Departed>,
    switches: SwitchStats,
}

/// Counts of switches to another scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwitchStats {
    /// Switches.
    pub switches: u64,
    /// Requests that one scheduler held and the next one took over, summed over switches.
    pub moved: u64,
}

impl Stats {
    /// The counts of a group, without the groups below it.
    ///
    /// # Panics
    ///
    /// Where the group is gone.
    pub fn group(&self, group: GroupId) -> &GroupStats {
        assert!(self.by_group.contains_key(group), "the group is gone");
        &self.by_group[group]
    }

    /// The counts of switches to another scheduler.
    pub fn switches(&self) -> SwitchStats {
        self.switches
    }

    pub(crate) fn switched(&mut self, moved: usize) {
        self.switches.switches += 1;
        self.switches.moved += moved as u64;
    }

    pub(crate) fn add_group(&mut self, group: GroupId) {
        self.by_group.add(group, GroupStats::default);
    }

    /// Removes a group; its parent keeps `last`, the counts of the group and of those below it.
    pub(crate) fn remove_group(&mut self, group: GroupId, parent: GroupId, last: &Departed) {
        self.by_group.remove(group);
        self.departed.remove(group);
        if !self.departed.contains_key(parent) {
            self.departed.insert(parent, Departed::default());
        }
        let kept = &mut self.departed[parent];
        kept.stats.add_counts(&last.stats);
        kept.slices.add(&last.slices);
    }

    #[inline]
    pub(crate) fn bio_arrived(&mut self, bio: &Bio, group: GroupId) {
        let stats = self.by_group[group].of(bio.op, bio.is_sync());
        stats.bios += 1;
        stats.bytes += bio.sectors.bytes();
    }

    #[inline]
    pub(crate) fn merged(&mut self, Counted { group, op, sync }: Counted) {
        self.by_group[group].of(op, sync).merged += 1;
    }

    /// Counts a request that waits. Returns whether it is the first one of its group.
    #[inline]
    pub(crate) fn request_waits(&mut self, now: Instant, counted: Counted) -> bool {
        let Counted { group, op, sync } = counted;
        let stats = &mut self.by_group[group];
        stats.of(op, sync).queued += 1;
        stats.request_waits(now)
    }

    /// Counts a request that waits no more. Returns whether it was the last one of its group.
    #[inline]
    pub(crate) fn request_gone(&mut self, now: Instant, counted: Counted) -> bool {
        let Counted { group, op, sync } = counted;
        let stats = &mut self.by_group[group];
        stats.of(op, sync).queued -= 1;
        stats.request_waits_no_more(now)
    }

    /// Counts a dispatched request. Returns whether it was the last one of its group that waited.
    #[inline]
    pub(crate) fn dispatched(&mut self, now: Instant, request: &Request) -> bool {
        let stats = &mut self.by_group[request.group];
        let was_last = stats.request_waits_no_more(now);
        stats.in_flight += 1;
        let op = stats.of(request.op, request.is_sync());
        op.queued -= 1;
        op.dispatched += 1;
        was_last
    }

    pub(crate) fn requeued(&mut self, request: &Request) {
        self.by_group[request.group].in_flight -= 1;
    }

    #[inline]
    pub(crate) fn completed(&mut self, now: Instant, request: &Request) {
        let stats = &mut self.by_group[request.group];
        stats.in_flight -= 1;
        let wait = request.dispatched.saturating_since(request.start);
        let service = now.saturating_since(request.dispatched);
        let op = stats.of(request.op, request.is_sync());
        op.completed += 1;
        op.wait += wait;
        op.service += service;
        let latencies = &mut stats.latencies[request.op as usize];
        latencies.wait.count(wait);
        latencies.service.count(service);
        latencies.total.count(wait + service);
    }
}
