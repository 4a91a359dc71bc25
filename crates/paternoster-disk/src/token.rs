//! Names of the operations on an owner's ring: whose completion it is.

use crate::engine::{TransferId, VolumeId};

/// The name of an operation on an owner's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A back end's, for a transfer.
    Transfer(TransferId),
    /// That of the volume's back end, for something else.
    Backend(VolumeId, BackendToken),
    /// The owner's own: another thread wants its attention.
    Wake,
    /// The front's.
    Front(FrontToken),
}

/// The name of an operation of a back end that is no transfer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendToken {
    /// What of the back end's it belongs to.
    pub key: u64,
    /// Which of that thing's operations it is.
    pub operation: u8,
}

/// The name of an operation of the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontToken {
    /// What of the front's it belongs to.
    pub key: u64,
    /// Which of that thing's operations it is.
    pub operation: u8,
}
