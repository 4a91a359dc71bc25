//! Splits a shared queue that turns out to be seeky: each user leaves it at its next request.
//!
//! BFQ restores for such a user what its own queue had learned before the merge. Here its new queue
//! has learned nothing.

use crate::arena::IocId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::trace::{Event, QueueEvent, Trace};

impl<T: Trace> Cfq<T> {
    /// Plans to split the queue, whose slice ends, if it is shared and seeky.
    pub(super) fn plan_split_of_seeky(&mut self, cx: &Cx, queue: QueueId) {
        let state = &mut self.queues[queue];
        if state.shared && state.is_seeky() && !std::mem::replace(&mut state.split_due, true) {
            self.trace
                .event(cx.now, Event::Queue(QueueEvent::SplitPlanned { queue: state.name() }));
        }
    }

    /// Takes `ioc` off the shared queue that is to be split. The last user keeps the queue; then it
    /// is returned.
    pub(super) fn split(&mut self, cx: &Cx, ioc: IocId, queue: QueueId) -> Option<QueueId> {
        let state = &mut self.queues[queue];
        self.trace.event(cx.now, Event::Queue(QueueEvent::QueueSplit { queue: state.name() }));
        if state.users == 1 {
            state.named_after = ioc;
            state.shared = false;
            state.split_due = false;
            return Some(queue);
        }
        self.contexts[ioc].queues[Synchrony::Sync] = None;
        self.drop_users_of_chain(cx, queue);
        self.drop_user(cx, queue);
        None
    }
}
