//! One ring of a device, as the owner of its disk works on it.

use std::sync::Arc;

use paternoster::Instant;
use paternoster_disk::{Fd, FrontToken, LastingId};
use paternoster_vhost::blk::Request;
use paternoster_vhost::{Memory, SplitRing};
use slotmap::{Key, KeyData, new_key_type};

use super::SessionId;

new_key_type! {
    /// Names a ring for as long as it runs.
    pub(super) struct QueueId;
}

/// The operations of a ring on the owner's. The first numbers are those of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    /// The driver has kicked.
    Kick = FIRST,
    /// The driver is called.
    Call,
    /// The front-end is told that the ring is broken.
    Err,
}

/// The least number of an operation of a ring.
const FIRST: u8 = 16;

impl Operation {
    /// Returns whether the operation is one of a device.
    pub(super) fn is_that(token: FrontToken) -> bool {
        token.operation >= FIRST
    }

    /// The name of the operation on the owner's ring.
    pub(super) fn token(self, id: QueueId) -> FrontToken {
        FrontToken { key: id.data().as_ffi(), operation: self as u8 }
    }

    pub(super) fn from_token(token: FrontToken) -> (QueueId, Self) {
        let id = QueueId::from(KeyData::from_ffi(token.key));
        let operation = match token.operation {
            FIRST => Self::Kick,
            op if op == Self::Call as u8 => Self::Call,
            _ => Self::Err,
        };
        (id, operation)
    }
}

/// A request that was taken from a ring and has to be given back.
#[derive(Debug)]
pub(super) struct Taken {
    /// The name of its chain.
    pub(super) head: u16,
    pub(super) request: Request,
    /// The memory that it is in.
    pub(super) memory: Arc<Memory>,
}

/// A ring that runs.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub(super) struct Queue {
    pub(super) session: SessionId,
    /// Its number in the device.
    pub(super) number: u16,
    pub(super) ring: SplitRing,
    /// Whether the front-end lets it be read.
    pub(super) enabled: bool,
    /// What tells of kicks.
    pub(super) kick: LastingId,
    pub(super) call: Option<Fd>,
    pub(super) err: Option<Fd>,
    /// A request that waits until its device holds less.
    pub(super) pending: Option<Taken>,
    /// Whether it is queued in the rotation.
    pub(super) is_queued: bool,
    /// Whether it is looked at in every round, and its kicks are held.
    pub(super) is_looked_at: bool,
    /// When it last had something.
    pub(super) had_some: Instant,
    /// Whether something has been given back in this round, or a call is owed.
    pub(super) has_changed: bool,
    /// A call that is in flight, and whether there has to be another.
    pub(super) calling: Option<LastingId>,
    pub(super) calls_again: bool,
}

impl Queue {
    /// Returns whether a visit would do something: it has a chain, or is broken.
    pub(super) fn has_work(&self) -> bool {
        self.is_read() && self.pending.is_none() && self.ring.peek() != Ok(false)
    }

    /// Returns whether chains are taken of it. One that stops finishes what a server before this
    /// one has taken, disabled or not: front-ends disable rings before they stop them.
    pub(super) fn is_read(&self) -> bool {
        self.enabled || self.ring.stops()
    }

    /// Returns whether it may be visited: what it has taken it does, whatever happens.
    pub(super) fn may_be_visited(&self) -> bool {
        self.is_read() || self.pending.is_some()
    }

    /// Returns whether all that was taken of it has been given back.
    pub(super) fn is_idle(&self) -> bool {
        self.ring.in_flight() == 0
    }
}
