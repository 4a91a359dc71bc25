//! Completion: a request has its latencies counted, and gives its token back.

use super::domain::domain_of;
use super::latency::Bucket;
use super::{DomainState, Kyber};
use crate::arena::RequestId;
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Kyber<T> {
    /// Counts the latencies of a request that completes now, if those of its domain are measured.
    /// It is one sample, however many bios it has.
    #[inline]
    pub(super) fn count_latencies(&mut self, cx: &Cx, rq: RequestId) {
        let request = &cx.requests[rq];
        let domain = domain_of(request.op);
        let Some(target) = self.tunables.target(domain) else { return };
        let total = cx.now.saturating_since(request.start);
        let device = cx.now.saturating_since(request.dispatched);
        self.latencies[domain as usize].add(Bucket::of(total, target), Bucket::of(device, target));
        self.arm_timer(cx);
    }

    /// Gives back the token of a request that completes or is requeued.
    #[inline]
    pub(super) fn give_back_token(&mut self, cx: &Cx, rq: RequestId) {
        let request = &cx.requests[rq];
        let DomainState { tokens, throttled, .. } =
            &mut self.domains[domain_of(request.op) as usize];
        tokens.give_back(request.token);
        *throttled = false;
    }
}
