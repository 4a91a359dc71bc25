//! The key of a queue, as a request has it.

pub(super) use crate::bfq::wf2q::QueueId;

use crate::arena::RequestId;
use crate::requests::Requests;

/// The queue of a request, from its making to its end.
#[inline]
pub(super) fn queue_of(requests: &Requests, rq: RequestId) -> QueueId {
    requests[rq].queue.into()
}
