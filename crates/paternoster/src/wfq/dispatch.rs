//! Which request is next: from the root down the least tag, while the device has room.
//!
//! ```text
//!   something waits, and fewer than depth are in flight?
//!      │yes
//!      ▼
//!   root ─▶ least start ─▶ least start ─▶ own ─▶ class ─▶ context ─▶ its head
//!   ◀──── each on the way is charged: its start advances by charge / weight
//! ```

use super::Wfq;
use super::node::{Kind, NodeId};
use super::queue::Order;
use super::service::Units;
use crate::arena::RequestId;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::trace::{Event, FairWhy, Trace, WaitReason};

/// The request to dispatch, and where it waits.
#[derive(Clone, Copy, Debug)]
struct Choice {
    context: NodeId,
    rq: RequestId,
}

impl<T: Trace> Wfq<T> {
    /// Takes the next request, if the device may have one more. Something waits.
    #[inline]
    pub(super) fn next_request(&mut self, cx: &mut Cx<'_>) -> Option<RequestId> {
        if cx.in_device >= self.depth_in_force(cx) {
            self.trace.event(cx.now, Event::Waiting { why: WaitReason::DeviceFull });
            return None;
        }
        let choice = self.choose(cx);
        self.take(cx, choice);
        Some(choice.rq)
    }

    /// Returns the request by least tags. Something waits.
    fn choose(&self, cx: &Cx<'_>) -> Choice {
        let root = self.groups[cx.groups.root()].node;
        let mut at = root;
        loop {
            let among = match &self.tree.nodes[at].kind {
                Kind::Group { members, .. } => *members,
                Kind::Own { classes, .. } => {
                    let class_age = self.tunables.class_age();
                    let mut order = classes.in_order(&self.tree.siblings, cx.now, class_age);
                    classes.siblings(order.next().expect("something of an active group waits"))
                }
                Kind::Context(context) => {
                    let rq = context.queue.head(Order::of(cx.device));
                    return Choice { context: at, rq: rq.expect("an active context has requests") };
                }
            };
            at = self.tree.siblings[among].first().expect("something below an active node waits");
        }
    }

    /// Takes out the request and charges all whose share it is of.
    fn take(&mut self, cx: &mut Cx<'_>, Choice { context, rq }: Choice) {
        let charge = self.charge_of(cx, rq);
        self.note_class(cx, context);
        self.tree.context_mut(context).queue.pop(cx.requests, rq);
        self.queued -= 1;
        let start = self.tree.charge_path(context, charge, cx.now, self.tunables.grace());
        self.in_flight.insert(rq, charge);
        let (rq, charge) = (cx.requests[rq].name(), charge.count());
        let why = FairWhy::Weight;
        self.trace.event(cx.now, Event::FairDispatch { rq, start, charge, why });
    }

    /// Returns what the request costs now: nothing if it was charged before, and requeued.
    fn charge_of(&self, cx: &Cx<'_>, rq: RequestId) -> Units {
        match self.in_flight.get(rq) {
            Some(_) => Units::ZERO,
            None => self.prices.charge(&cx.requests[rq]),
        }
    }

    fn note_class(&mut self, cx: &Cx<'_>, context: NodeId) {
        let class: IoClass = self.tree.context(context).class;
        let among = self.tree.nodes[context].among.expect("a context is below a class");
        let own = self.tree.siblings[among].of;
        if let Kind::Own { classes, .. } = &mut self.tree.nodes[own].kind {
            classes.served(class, cx.now, self.tunables.class_age());
        }
    }
}
