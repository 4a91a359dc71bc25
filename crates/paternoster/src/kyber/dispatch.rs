//! Which request is next: batches of the domains in turn, as far as each has tokens.
//!
//! ```text
//!   the turn of   READ ──▶ WRITE ──▶ DISCARD ──▶ OTHER ─┐
//!                  16        8          1          1    │   requests at most
//!                  ▲────────────────────────────────────┘
//! ```
//!
//! A domain that has no request, or no token for one, loses its turn; the next one begins a batch.

use super::domain::{after, batch_size};
use super::{DomainState, Kyber};
use crate::arena::RequestId;
use crate::scheduler::Cx;
use crate::trace::{Domain, ElevatorEvent, Event, KyberEvent, Trace, WaitReason};

impl<T: Trace> Kyber<T> {
    /// Takes the next request of the current domain, or of the next one that has one to dispatch.
    /// Requests wait.
    #[inline]
    pub(super) fn next_request(&mut self, cx: &mut Cx) -> Option<RequestId> {
        if self.batching < batch_size(self.current)
            && let Some(rq) = self.take(cx, self.current)
        {
            return Some(rq);
        }
        self.batching = 0;
        for _ in Domain::ALL {
            self.current = after(self.current);
            if let Some(rq) = self.take(cx, self.current) {
                return Some(rq);
            }
        }
        self.trace
            .event(cx.now, Event::Elevator(ElevatorEvent::Waiting { why: WaitReason::NoToken }));
        None
    }

    /// Takes a request of `domain`, if it has one and a token for it.
    #[inline]
    fn take(&mut self, cx: &mut Cx, domain: Domain) -> Option<RequestId> {
        let DomainState { queue, tokens, throttled } = &mut self.domains[domain as usize];
        if queue.is_empty() {
            return None;
        }
        let token = tokens.take();
        *throttled = token.is_none();
        let Some(token) = token else {
            self.trace.event(cx.now, Event::Kyber(KyberEvent::Throttled { domain }));
            return None;
        };
        let rq = queue.pop(&mut cx.requests).expect("the domain has a request");
        cx.requests.get_mut(rq).token = token;
        self.batching += 1;
        Some(rq)
    }
}
