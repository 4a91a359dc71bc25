//! Faults of the disk, reported as they happen, beside the outcomes of commands.
//!
//! A command of many pieces fails late and with one error; a fault names the piece.

use std::fmt;

use paternoster::scheduler::Scheduler;
use rustix::io::Errno;

use super::Engine;
use super::command::FrontTag;
use super::kind::Kind;
use super::volumes::VolumeId;

/// The kinds of operation of a disk, as messages name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskOp {
    /// A read, also one that only warms the cache.
    Read,
    /// A write.
    Write,
    /// A trim.
    Trim,
    /// Zeroes.
    Zero,
    /// A sync.
    Sync,
}

impl fmt::Display for DiskOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Zero => "write of zeroes",
            Self::Sync => "sync",
        })
    }
}

impl From<&Kind> for DiskOp {
    fn from(kind: &Kind) -> Self {
        match kind {
            Kind::Read | Kind::ReadInto(_) | Kind::Cache => Self::Read,
            Kind::Write { .. } => Self::Write,
            Kind::Trim => Self::Trim,
            Kind::Zero { .. } => Self::Zero,
        }
    }
}

/// An operation that failed in a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Of which volume.
    pub volume: VolumeId,
    /// What.
    pub op: DiskOp,
    /// Why.
    pub errno: Errno,
    /// Whether nothing of the volume is durable from now on: a sync has failed.
    pub poisons: bool,
    /// Where; none of a sync.
    pub piece: Option<FaultyPiece>,
}

/// The part of a command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultyPiece {
    /// The name of the command.
    pub tag: FrontTag,
    /// First byte on the volume.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Faults that were not taken yet, the first of each volume, operation and errno.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        // What is refused at the end of a server is no fault of the disk.
        let is_refusal = fault.errno == Errno::SHUTDOWN;
        let kind = |fault: &Fault| (fault.volume, fault.op, fault.errno);
        let same = |known: &Fault| kind(known) == kind(&fault);
        if fault.poisons || !is_refusal && !self.0.iter().any(same) {
            self.0.push(fault);
        }
    }
}

impl<S: Scheduler> Engine<S> {
    /// Takes the faults since the last call, the first of each volume, operation and errno. A
    /// command that failed with it has its outcome afterwards, or at the same time.
    pub fn take_faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.pieces.faults.0)
    }
}
