//! What always holds, asserted by walking everything.

use super::Wfq;
use super::context::{Known, context_of};
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Wfq<T> {
    pub(super) fn check_all(&self, cx: &Cx) {
        self.tree.check();
        let mut waiting = 0;
        for node in self.tree.contexts() {
            let context = self.tree.context(node);
            context.queue.check(&cx.requests);
            let mut requests = context.queue.iter(&cx.requests);
            assert!(requests.all(|rq| context_of(cx, rq) == node), "each holds its own");
            let bound =
                cx.requests.iter().filter(|(_, rq)| rq.bound && rq.queue == node_data(node));
            assert_eq!(context.bound as usize, bound.count(), "requests bound to a context");
            let of_it = Known { group: context.group, class: context.class, node };
            let known = self.contexts.get(context.ioc).is_some_and(|nodes| nodes.contains(&of_it));
            assert_eq!(known, !context.exited, "an I/O context knows its nodes until it exits");
            waiting += context.queue.iter(&cx.requests).count();
        }
        assert_eq!(self.queued as usize, waiting, "requests that wait");
        let in_flight = cx.requests.iter().filter(|(_, rq)| rq.bound && rq.is_in_flight());
        let known = |rq| self.in_flight.get(rq).is_some_and(|entry| entry.in_device);
        let charged = in_flight.filter(|&(rq, _)| known(rq)).count();
        let in_flight = cx.requests.iter().filter(|(_, rq)| rq.bound && rq.is_in_flight()).count();
        assert_eq!(charged, in_flight, "what is in flight is charged");
        assert_eq!(self.in_device as usize, in_flight, "requests in the device");
        let in_device = self.in_flight.iter().filter(|(_, entry)| entry.in_device);
        let within = in_device.map(|(rq, _)| self.groups[cx.requests[rq].group].within);
        self.targets.check(&within.collect::<Vec<_>>());
    }
}

fn node_data(node: super::node::NodeId) -> slotmap::KeyData {
    slotmap::Key::data(&node)
}
