//! Requests that leave the device, and work that was no request.

use super::context::context_of;
use super::service::Units;
use super::window::Done;
use super::{InFlight, Wfq};
use crate::arena::{GroupId, RequestId};
use crate::scheduler::{Cx, InsertAt, Work};
use crate::trace::Trace;

impl<T: Trace> Wfq<T> {
    /// A request has completed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn complete_request(&mut self, cx: &Cx, rq: RequestId) {
        let gone = *self.in_flight.remove(rq).expect("it was dispatched");
        self.in_device -= 1;
        let latency = cx.now.saturating_since(cx.requests[rq].start);
        if !self.targets.is_empty() {
            let group = cx.requests[rq].group;
            self.targets.leave(self.groups[group].within);
            self.judge_targets(cx, group, latency);
        }
        self.unbind_request(cx, rq, |demand| demand.complete(cx.now));
        let InFlight { charge, window, sectors, class, .. } = gone;
        self.learn(cx, Done { charge, class, sectors, window, latency });
    }

    /// The device could not take a request: it is the first of its context again. It stays charged.
    pub(super) fn requeue_request(&mut self, cx: &mut Cx, rq: RequestId) {
        let before = self.in_flight.get_mut(rq).expect("it was dispatched");
        before.in_device = false;
        self.windows.count_out(before.window);
        self.in_device -= 1;
        let top = self.tree.context(context_of(cx, rq)).top;
        self.kept.change_outstanding(&mut self.tree, top, |demand| demand.leave(cx.now));
        if !self.targets.is_empty() {
            self.targets.leave(self.groups[cx.requests[rq].group].within);
        }
        self.insert_request(cx, rq, InsertAt::Head);
    }

    /// Charges a group for work that was no request.
    pub(super) fn charge_group(&mut self, cx: &Cx, group: GroupId, work: Work) {
        let charge = match work {
            Work::Ops(ops) => Units::ops(ops),
            Work::Sync { took, waiters } => self.charge_of_sync(took, waiters),
        };
        let own = self.group_nodes(cx, group).own;
        self.tree.charge_work(own, charge, cx.now, self.tunables.grace());
    }

    /// Takes out all that waits.
    pub(super) fn drain_all(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        let waiting = |node| self.tree.context(node).queue.iter(&cx.requests).collect::<Vec<_>>();
        let contexts: Vec<_> = self.tree.contexts().collect();
        let all: Vec<RequestId> = contexts.into_iter().flat_map(waiting).collect();
        for rq in all {
            let node = context_of(cx, rq);
            self.tree.context_mut(node).queue.remove(&mut cx.requests, rq);
            self.follow(cx, node);
            self.in_flight.remove(rq);
            self.unbind_request(cx, rq, |demand| demand.shrink(cx.now));
            out.push(rq);
        }
        self.queued = 0;
        self.note_load(cx.now, cx.in_device);
    }
}
