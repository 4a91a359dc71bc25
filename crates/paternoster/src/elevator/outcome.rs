//! What comes of the submission of a bio, and of the completion of a request.

use crate::arena::RequestId;
use crate::request::{Bio, UserDataList};
use crate::trace::MergeKind;

/// What became of a submitted bio.
#[must_use = "a bio that got `Later` has to be submitted again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Submitted {
    /// It became this request.
    Queued(RequestId),
    /// It merged into a request.
    Merged {
        /// The request.
        into: RequestId,
        /// At which end of the request.
        kind: MergeKind,
    },
    /// It may not enter now. The caller keeps this bio, which has
    /// [`BioFlags::RETRIED`](crate::BioFlags::RETRIED), and submits it again when a completion says
    /// so ([`Completed::wake_waiters`]).
    Later(Bio),
}

/// What follows from the completion of a request.
#[must_use = "bios that got `Later` may have to be submitted again"]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completed {
    /// The submitters' names of its bios, in the order in which they were merged.
    pub user_data: UserDataList,
    /// Whether bios that got `Later` should be submitted again, in order of arrival.
    pub wake_waiters: bool,
}
