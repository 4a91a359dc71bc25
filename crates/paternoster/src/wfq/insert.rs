//! Requests that begin to wait, and what becomes of them when bios or requests merge.

use super::Wfq;
use super::context::{context_of, weight_of};
use crate::arena::RequestId;
use crate::request::Bio;
use crate::scheduler::{Cx, InsertAt};
use crate::trace::{Event, MergeKind, Trace};

impl<T: Trace> Wfq<T> {
    /// Inserts a bound request. Its I/O context, and all above it, become active.
    #[inline]
    pub(super) fn insert_request(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        let node = context_of(cx, rq);
        if at == InsertAt::Sorted {
            self.tree.nodes[node].weight = weight_of(cx.requests[rq].io_prio);
        }
        self.tree.context_mut(node).queue.insert(cx.requests, rq, at);
        self.queued += 1;
        let (now, grace) = (cx.now, self.tunables.grace());
        let Self { tree, trace, .. } = self;
        tree.activate(node, now, grace, |entered| {
            let (node, start, v, lag) =
                (entered.whom, entered.start, entered.v, entered.lag.milli_ops());
            trace.event(now, Event::FairBusy { node, start, v, lag });
        });
    }

    /// Returns a request of the bio's own I/O context that starts where the bio ends.
    pub(super) fn front_merge(&self, cx: &Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let mut nodes = self.contexts.get(bio.ioc)?.iter();
        nodes.find_map(|&node| self.tree.context(node).queue.find_start(cx.requests, bio.end()))
    }

    /// A bio merged into `rq`. It is charged with all its sectors when it is dispatched.
    pub(super) fn follow_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let node = context_of(cx, rq);
            self.tree.context_mut(node).queue.start_moved(cx.requests, rq);
        }
    }

    /// `rq` absorbed a request, which may be of another I/O context of the group.
    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        let (node, theirs) = (context_of(cx, rq), context_of(cx, absorbed));
        if cx.requests[absorbed].is_queued() {
            let queue = &mut self.tree.context_mut(theirs).queue;
            if node == theirs {
                queue.absorb(cx.requests, rq, absorbed);
            } else {
                queue.remove(cx.requests, absorbed);
            }
            self.queued -= 1;
            self.tree.deactivate_if_empty(theirs, cx.now);
        }
        self.unbind_request(cx, absorbed);
    }
}
