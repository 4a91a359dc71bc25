//! The key of a queue, which requests carry.

use slotmap::new_key_type;

use crate::arena::RequestId;
use crate::requests::Requests;

new_key_type! {
    /// Names a queue for as long as it exists.
    pub(super) struct QueueId;
}

/// The queue of a request; valid from its binding to its end.
#[inline]
pub(super) fn queue_of(requests: &Requests, rq: RequestId) -> QueueId {
    requests[rq].queue.into()
}
