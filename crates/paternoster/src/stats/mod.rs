//! What went through, by group and operation: the counts of Linux's `blkio` files.

mod turns;

use crate::arena::{GroupId, SideTable};
use crate::request::{Bio, Op, Request};
use crate::time::{Instant, Nanos};

pub use turns::TurnStats;

/// Counts of one operation of one group. Times are sums over requests, counted as they complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpStats {
    /// Bios that arrived (`io_serviced`, counted at submission).
    pub bios: u64,
    /// Their bytes (`io_service_bytes`), in whole sectors.
    pub bytes: u64,
    /// Bios and requests that became part of another request (`io_merged`).
    pub merged: u64,
    /// Requests given to the device.
    pub dispatched: u64,
    /// Requests done.
    pub completed: u64,
    /// From creation to the device, the last time where it handed one back (`io_wait_time`).
    pub wait: Nanos,
    /// From the device to completion (`io_service_time`).
    pub service: Nanos,
}

/// What went through of one group.
#[derive(Clone, Debug, Default)]
pub struct GroupStats {
    ops: [OpStats; Op::COUNT],
    /// Requests that wait now (`io_queued`).
    pub queued: u32,
    /// Requests in the device now.
    pub in_device: u32,
    /// Time with a request waiting, up to when `queued` last became 0.
    backlogged: Nanos,
    /// Since when requests wait; meaningful while any does.
    backlogged_since: Option<Instant>,
}

impl GroupStats {
    /// The counts of one operation.
    pub fn op(&self, op: Op) -> &OpStats {
        &self.ops[op as usize]
    }

    /// The time in which at least one request waited for the device.
    pub fn backlogged(&self, now: Instant) -> Nanos {
        let open = self.backlogged_since.map_or(Nanos::ZERO, |since| now.saturating_since(since));
        self.backlogged + open
    }

    #[inline]
    fn request_waits(&mut self, now: Instant) {
        self.queued += 1;
        if self.queued == 1 {
            self.backlogged_since = Some(now);
        }
    }

    #[inline]
    fn request_waits_no_more(&mut self, now: Instant) {
        self.queued -= 1;
        if self.queued == 0 {
            self.backlogged = self.backlogged(now);
            self.backlogged_since = None;
        }
    }
}

/// What went through one elevator.
#[derive(Debug, Default)]
pub struct Stats {
    by_group: SideTable<GroupId, GroupStats>,
}

impl Stats {
    /// The counts of a group, without those below it.
    pub fn group(&self, group: GroupId) -> &GroupStats {
        &self.by_group[group]
    }

    pub(crate) fn add_group(&mut self, group: GroupId) {
        self.by_group.insert(group, GroupStats::default());
    }

    pub(crate) fn remove_group(&mut self, group: GroupId) {
        self.by_group.remove(group);
    }

    #[inline]
    pub(crate) fn bio_arrived(&mut self, bio: &Bio, group: GroupId) {
        let stats = &mut self.by_group[group].ops[bio.op as usize];
        stats.bios += 1;
        stats.bytes += bio.sectors.bytes();
    }

    #[inline]
    pub(crate) fn merged(&mut self, op: Op, group: GroupId) {
        self.by_group[group].ops[op as usize].merged += 1;
    }

    #[inline]
    pub(crate) fn request_waits(&mut self, now: Instant, group: GroupId) {
        self.by_group[group].request_waits(now);
    }

    #[inline]
    pub(crate) fn request_gone(&mut self, now: Instant, group: GroupId) {
        self.by_group[group].request_waits_no_more(now);
    }

    #[inline]
    pub(crate) fn dispatched(&mut self, now: Instant, request: &Request) {
        let stats = &mut self.by_group[request.group];
        stats.request_waits_no_more(now);
        stats.in_device += 1;
        stats.ops[request.op as usize].dispatched += 1;
    }

    pub(crate) fn requeued(&mut self, now: Instant, request: &Request) {
        let stats = &mut self.by_group[request.group];
        stats.in_device -= 1;
        stats.request_waits(now);
    }

    #[inline]
    pub(crate) fn completed(&mut self, now: Instant, request: &Request) {
        let stats = &mut self.by_group[request.group];
        stats.in_device -= 1;
        let op = &mut stats.ops[request.op as usize];
        op.completed += 1;
        op.wait += request.dispatched.saturating_since(request.start);
        op.service += now.saturating_since(request.dispatched);
    }
}
