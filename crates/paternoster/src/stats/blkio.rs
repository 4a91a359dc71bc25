//! A group's counts as files of Linux's `blkio` controller (cgroup v1).

use crate::request::{Op, SectorCount};
use crate::stats::{GroupStats, OpStats, SliceStats};

/// One file, of one group on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlkioFile {
    /// Its name behind `blkio.`. With the groups below it, `_recursive` is appended.
    pub name: &'static str,
    /// What it holds.
    pub value: BlkioValue,
}

/// What a file holds. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlkioValue {
    /// One number.
    Number(u64),
    /// A number for each operation, and the same number by synchrony. Read, Write and Discard add
    /// up to the total, and so do Sync and Async.
    #[non_exhaustive]
    Split {
        /// Reads and flushes.
        read: u64,
        /// Writes, and zeroes written.
        write: u64,
        /// Discards.
        discard: u64,
        /// Synchronous ones.
        sync: u64,
        /// Asynchronous ones.
        asynchronous: u64,
        /// All.
        total: u64,
    },
}

/// The files of a group; those about slices only if its scheduler gives groups slices.
pub(crate) fn files(stats: &GroupStats, slices: Option<&SliceStats>) -> Vec<BlkioFile> {
    let file = |name, value| BlkioFile { name, value };
    let number = |name, value| file(name, BlkioValue::Number(value));
    let sector_bytes = u64::from(SectorCount::SECTOR_BYTES);
    let bytes: u64 = Op::ALL.iter().map(|&op| stats.op(op).bytes).sum();
    let mut files = vec![
        number("sectors", bytes / sector_bytes),
        file("io_service_bytes", split(stats, |op| op.bytes)),
        file("io_serviced", split(stats, |op| op.bios)),
        file("io_service_time", split(stats, |op| op.service.as_nanos())),
        file("io_wait_time", split(stats, |op| op.wait.as_nanos())),
        file("io_merged", split(stats, |op| op.merged)),
        file("io_queued", split(stats, |op| op.queued)),
    ];
    if let Some(slices) = slices {
        files.extend([
            number("time", slices.time.as_nanos()),
            number("unaccounted_time", slices.unaccounted_time.as_nanos()),
            number("avg_queue_size", slices.avg_queue_size()),
            number("group_wait_time", slices.group_wait_time.as_nanos()),
            number("idle_time", slices.idle_time.as_nanos()),
            number("empty_time", slices.empty_time.as_nanos()),
            number("dequeue", slices.dequeue),
        ]);
    }
    files
}

fn split(stats: &GroupStats, count: fn(&OpStats) -> u64) -> BlkioValue {
    let op = |op| count(&stats.op(op));
    let (sync, asynchronous) = (count(&stats.synchronous()), count(&stats.asynchronous()));
    BlkioValue::Split {
        read: op(Op::Read) + op(Op::Flush),
        write: op(Op::Write) + op(Op::WriteZeroes),
        discard: op(Op::Discard),
        sync,
        asynchronous,
        total: sync + asynchronous,
    }
}
