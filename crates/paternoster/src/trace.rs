//! What happened and why, one event for every decision.
//!
//! A scheduler owns its sink and is generic over it: [`NoTrace`] costs nothing, [`Recorder`]
//! serves tests and the laboratory. A request is named by the bio that it was made of.

use crate::arena::GroupId;
use crate::io_context::IoClass;
use crate::request::{Direction, Op, Sector, SectorCount};
use crate::time::{Instant, Nanos};

/// Takes the events of one elevator and its scheduler.
pub trait Trace {
    /// Takes one event, which happened at `now`.
    fn event(&mut self, now: Instant, event: Event);
}

/// Where two pieces of I/O met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeSite {
    /// The request of the last merge.
    Cache,
    /// The table of ends.
    Hash,
    /// The scheduler's sort list.
    Tree,
    /// A scan of the newest requests of a list.
    Scan,
    /// A whole request as it was inserted.
    Insert,
    /// The neighbour that a grown request came to touch.
    Neighbour,
}

/// At which end of a request another piece was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Behind it.
    Back,
    /// Before it.
    Front,
}

/// Why mq-deadline began a batch where it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchReason {
    /// There was no request to go on from.
    Start,
    /// The oldest request of the direction had expired.
    Expired,
    /// Onward from where the direction stopped.
    Onward,
}

/// Why CFQ ended a queue's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpireReason {
    /// It ran out of requests.
    Empty,
    /// It sent its share of requests while others waited.
    SliceUsed,
    /// Its I/O context has gone.
    Exit,
    /// The scheduler is switched.
    Drain,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A bio arrived.
    Queued {
        /// The bio.
        bio: u64,
        /// Its operation.
        op: Op,
        /// Where it starts.
        sector: Sector,
        /// How long it is.
        sectors: SectorCount,
    },
    /// A bio became part of a request.
    Merged {
        /// The bio.
        bio: u64,
        /// The request.
        into: u64,
        /// At which of its ends.
        kind: MergeKind,
        /// How they met.
        site: MergeSite,
    },
    /// A request became part of the one before it.
    Joined {
        /// The one that is gone.
        gone: u64,
        /// The one that it is part of now.
        into: u64,
        /// How they met.
        site: MergeSite,
    },
    /// A request went to the device.
    Dispatched {
        /// The request.
        rq: u64,
    },
    /// The device handed a request back unserved.
    Requeued {
        /// The request.
        rq: u64,
    },
    /// A request was done.
    Completed {
        /// The request.
        rq: u64,
    },
    /// mq-deadline: a batch begins.
    Batch {
        /// In this direction.
        direction: Direction,
        /// Of this class.
        class: IoClass,
        /// How often reads were preferred over waiting writes.
        starved: u32,
        /// Why with this request.
        reason: BatchReason,
    },
    /// mq-deadline: a lower class was served for the age of its request.
    Aged {
        /// The class.
        class: IoClass,
    },
    /// CFQ: a queue's turn begins.
    Active {
        /// Its group.
        group: GroupId,
        /// Its class.
        class: IoClass,
        /// The group's vdisktime.
        vdisktime: u64,
        /// The least vdisktime so far.
        min_vdisktime: u64,
    },
    /// CFQ: a queue's turn ends.
    Expired {
        /// Its group.
        group: GroupId,
        /// Why.
        why: ExpireReason,
        /// Requests sent in the turn, which is what its group is charged.
        sent: u32,
        /// How long the turn took.
        used: Nanos,
        /// The group's vdisktime after the charge.
        vdisktime: u64,
    },
}

/// A sink that costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    #[inline(always)]
    fn event(&mut self, _now: Instant, _event: Event) {}
}

/// A sink that keeps everything, until it is taken.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    events: Vec<(Instant, Event)>,
}

impl Recorder {
    /// What was recorded since the last call.
    pub fn take(&mut self) -> Vec<(Instant, Event)> {
        std::mem::take(&mut self.events)
    }
}

impl Trace for Recorder {
    fn event(&mut self, now: Instant, event: Event) {
        self.events.push((now, event));
    }
}
