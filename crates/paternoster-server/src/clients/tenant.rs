//! A tenant as one thread serves it: its connections, and the credit that they hold.
//!
//! A group above tenants that has no export itself is a tenant without clients.

use paternoster_nbd::Command;

use super::credit::Amount;
use super::outside::HeldBack;
use super::pool::Lease;

/// Bytes that a command holds beside its data: its pieces, of which there are a few at a time, and
/// its places in the tables.
const COMMAND_COST: usize = 4096;

/// What there has to be room for before a client is listened to: a command without data, or the
/// refusals of a few illegal ones.
pub(super) const LEAST: Amount = Amount::Small(COMMAND_COST);

/// What a command that moves no data of a client's may hold in buffers of its pieces.
const PIECES_COST: usize = 4 * (1280 << 10);

/// A tenant on one disk, as far as one thread serves it.
#[derive(Debug)]
pub(super) struct Tenant {
    /// The number of its connections now.
    pub(super) connections: u32,
    /// Those of them with a send in flight.
    pub(super) sending: u32,
    /// What was told last of what holds its commands back.
    pub(super) told: HeldBack,
    /// Whether something has changed in this round: what it holds, or what holds it back.
    pub(super) has_changed: bool,
    /// What its connections on this thread hold.
    pub(super) credit: Lease,
}

impl Tenant {
    /// One without connections.
    pub(super) fn new(credit: Lease) -> Self {
        Self { connections: 0, sending: 0, told: HeldBack::default(), has_changed: false, credit }
    }
}

/// Returns the credit that a command holds until it is done.
pub(super) fn request_cost(command: &Command) -> Amount {
    let data = match command {
        Command::Read { len, .. } => bytes(*len),
        Command::Write { data, .. } => data.len(),
        Command::Cache { len, .. } | Command::WriteZeroes { len, .. } => {
            bytes(*len).min(PIECES_COST)
        }
        _ => 0,
    };
    Amount::of_data(data, COMMAND_COST)
}

fn bytes(len: u32) -> usize {
    usize::try_from(len).expect("a u32 fits in memory sizes")
}
