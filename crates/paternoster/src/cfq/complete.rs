//! What a completion changes.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::trace::Trace;

impl<T: Trace> Cfq<T> {
    pub(super) fn complete_request(&mut self, rq: RequestId) {
        self.unbind(rq);
    }
}
