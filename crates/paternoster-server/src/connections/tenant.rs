//! A tenant on one disk: its group, and how much memory its clients may hold.
//!
//! A group above tenants that has no export itself is a tenant without clients.

use paternoster::GroupId;
use paternoster_disk::CommandOp;

use super::connection::ConnectionId;

/// Bytes that a tenant's commands and unsent replies may hold before its clients are not read
/// from: two of the largest writes.
const CREDIT: usize = 64 << 20;

/// What a command holds at least, so that the number of commands is bounded too.
const COMMAND_COST: usize = 4096;

/// A tenant on one disk.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) path: String,
    pub(crate) group: GroupId,
    /// Its connections now.
    pub(super) connections: u32,
    /// Bytes that it holds.
    held: usize,
    /// Connections that wait for credit.
    pub(super) paused: Vec<ConnectionId>,
}

impl Tenant {
    pub(crate) fn new(path: String, group: GroupId) -> Self {
        Self { path, group, connections: 0, held: 0, paused: Vec::new() }
    }

    /// Whether its clients have to wait until something is sent.
    pub(super) fn is_out_of_credit(&self) -> bool {
        self.held >= CREDIT
    }

    /// Whether there is credit for a payload that is yet to be received. Alone, it may be larger
    /// than the credit.
    pub(super) fn may_land(&self, bytes: usize) -> bool {
        self.held == 0 || self.held + bytes <= CREDIT
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.held += bytes;
    }

    pub(super) fn give_back(&mut self, bytes: usize) {
        self.held -= bytes;
    }
}

/// Bytes of credit that a command holds until it is done: its data, and its place in the tables.
pub(super) fn request_cost(op: &CommandOp) -> usize {
    let data = match op {
        CommandOp::Read { len, .. } => usize::try_from(*len).unwrap_or(usize::MAX),
        CommandOp::Write { data, .. } => data.len(),
        _ => 0,
    };
    data.saturating_add(COMMAND_COST)
}
