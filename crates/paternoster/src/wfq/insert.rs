//! Requests that begin to wait, and what becomes of them when bios or requests merge.

use super::Wfq;
use super::context::{context_of, weight_of};
use super::node::NodeId;
use super::order::{Change, Entered};
use crate::arena::RequestId;
use crate::io_context::IoContext;
use crate::request::Bio;
use crate::scheduler::{Cx, InsertAt};
use crate::time::Instant;
use crate::trace::{Event, HoldReason, MergeKind, Trace, WfqEvent};

impl<T: Trace> Wfq<T> {
    /// Inserts a bound request. Its I/O context, and all above it, become active.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert_request(&mut self, cx: &mut Cx, rq: RequestId, at: InsertAt) {
        let context = context_of(cx, rq);
        let node = &mut self.tree.nodes[context];
        if at == InsertAt::Sorted {
            node.weight = weight_of(cx.requests[rq].io_prio);
        }
        node.context_mut().queue.insert(&mut cx.requests, rq, at);
        node.note_head(&cx.requests, self.tree.limits.by_direction());
        let is_elsewhere = node.waiting != node.active;
        self.queued += 1;
        if is_elsewhere {
            self.follow_node(cx.now, context);
        }
        self.note_arrival(cx.now, cx.in_device);
    }

    /// Puts an I/O context, whose requests have changed, where it is in the order of service.
    #[inline]
    pub(super) fn follow(&mut self, cx: &Cx, context: NodeId) {
        self.tree.nodes[context].note_head(&cx.requests, self.tree.limits.by_direction());
        self.follow_node(cx.now, context);
    }

    /// Puts a node, and those above it, where they are in the order of service.
    pub(super) fn follow_node(&mut self, now: Instant, node: NodeId) {
        let grace = self.tunables.grace();
        let Self { tree, trace, .. } = self;
        tree.follow(node, now, grace, |change| emit(trace, now, change));
    }

    /// Returns a request of the bio's own I/O context, class and group that starts where the bio
    /// ends.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn front_merge(&mut self, cx: &Cx, bio: &Bio) -> Option<RequestId> {
        let &IoContext { io_prio, group, .. } = &cx.contexts[bio.ioc];
        let node = self.known_node(bio.ioc, group, io_prio.class())?;
        self.tree.context_mut(node).queue.find_front(&cx.requests, bio)
    }

    /// A bio merged into `rq`. It is charged with all its sectors when it is dispatched.
    pub(super) fn follow_merge(&mut self, cx: &mut Cx, rq: RequestId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let node = context_of(cx, rq);
            self.tree.context_mut(node).queue.start_moved(&mut cx.requests, rq);
            self.follow(cx, node);
        }
    }

    /// `rq` absorbed a request, which may be of another I/O context of the group.
    pub(super) fn absorb(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        let (node, theirs) = (context_of(cx, rq), context_of(cx, absorbed));
        if cx.requests[absorbed].is_queued() {
            let queue = &mut self.tree.context_mut(theirs).queue;
            if node == theirs {
                queue.absorb(&mut cx.requests, rq, absorbed);
            } else {
                queue.remove(&mut cx.requests, absorbed);
            }
            self.queued -= 1;
            self.follow(cx, theirs);
            self.note_load(cx.now, cx.in_device);
        }
        self.unbind_request(cx, absorbed, |demand| demand.shrink(cx.now));
    }
}

/// Emits what has become of a node.
pub(super) fn emit(trace: &mut impl Trace, now: Instant, change: Change) {
    let event = match change {
        Change::Busy(Entered { whom, start, v, lag }) => {
            Event::Wfq(WfqEvent::Busy { node: whom, start, v, lag: lag.milli_ops() })
        }
        Change::Held(node, until) => {
            Event::Wfq(WfqEvent::Held { node, why: HoldReason::Cap, until: Some(until) })
        }
        Change::Released(node) => Event::Wfq(WfqEvent::Released { node }),
    };
    trace.event(now, event);
}
