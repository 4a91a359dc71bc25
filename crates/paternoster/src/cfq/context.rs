//! What CFQ keeps of an I/O context: above all, the queues into which its requests go.

use crate::arena::{GroupId, IocId, RequestId};
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::io_context::IoPrio;
use crate::parts::think_time::ThinkTime;
use crate::scheduler::Cx;
use crate::synchrony::{BySynchrony, Synchrony};
use crate::time::Nanos;
use crate::trace::{Event, QueueEvent, SliceEnd, Trace};
use slotmap::Key as _;

/// What CFQ keeps of an I/O context. It exists from the context's first request until the context
/// has exited, has no requests and is not the active context.
#[derive(Debug)]
pub(super) struct ContextState {
    /// The queues of its asynchronous and its synchronous requests; none before the first request.
    pub(super) queues: BySynchrony<Option<QueueId>>,
    pub(super) think: ThinkTime,
    /// Its I/O priority when it last made a request.
    pub(super) io_prio: IoPrio,
    /// Its group when it last made a request.
    group: GroupId,
    /// Requests of it that are bound to queues.
    requests_bound: u32,
    exited: bool,
}

impl<T: Trace> Cfq<T> {
    /// Binds a request to its queue when it is made, with the I/O priority of its context; or at a
    /// switch to CFQ, where it may have an older one. Usually the context has a queue, and nothing
    /// has changed since its last request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn bind_request(&mut self, cx: &mut Cx, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, group, synchrony) = (request.ioc, request.group, request.synchrony());
        if let Some(context) = self.contexts.get_mut(ioc)
            && context.io_prio == request.io_prio
            && context.group == group
            && let Some(queue) = context.queues[synchrony]
        {
            let state = &mut self.queues[queue];
            if state.priority.stays(request.flags) && !state.is_to_be_left() {
                // A request within the bound uses the grant up as well.
                state.slice.use_admission_grant();
                state.requests_bound += 1;
                context.requests_bound += 1;
                self.isolation.begin_count(rq, state.group);
                cx.requests.get_mut(rq).queue = queue.data();
                return;
            }
        }
        self.bind_after_change(cx, rq);
    }

    /// Binds a request whose context is new, has another priority or group, boosts its queue, or
    /// leaves it.
    #[cold]
    #[inline(never)]
    fn bind_after_change(&mut self, cx: &mut Cx, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, group, synchrony) = (request.ioc, request.group, request.synchrony());
        // Both act on the queue that the context had before, of its old priority and group.
        if let Some(queue) = self.existing_queue(ioc, synchrony) {
            self.boost(cx, ioc, queue, request.flags);
            self.queues[queue].slice.use_admission_grant();
        }
        let queue = self.queue_for(cx, ioc, group, synchrony);
        self.queues[queue].requests_bound += 1;
        self.contexts[ioc].requests_bound += 1;
        self.isolation.begin_count(rq, self.queues[queue].group);
        cx.requests.get_mut(rq).queue = queue.data();
    }

    /// Ends the binding of a request. Its queue and its I/O context may be freed with it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn unbind_request(&mut self, cx: &Cx, queue: QueueId, rq: RequestId) {
        let ioc = cx.requests[rq].ioc;
        self.isolation.end_count(rq);
        let state = &mut self.queues[queue];
        state.requests_bound -= 1;
        if state.is_unused() {
            self.free_queue(cx, queue);
        }
        let Some(context) = self.contexts.get_mut(ioc) else { return };
        context.requests_bound -= 1;
        if context.exited {
            self.free_context_if_unused(ioc);
        }
    }

    /// Returns the queue for a request of `ioc` in `group`, and creates it if there is none.
    fn queue_for(&mut self, cx: &Cx, ioc: IocId, group: GroupId, synchrony: Synchrony) -> QueueId {
        let io_prio = cx.contexts[ioc].io_prio;
        self.ensure_group(cx, group);
        if self.contexts.contains_key(ioc) {
            self.follow_priority(cx, ioc, group, io_prio);
            self.follow_group(cx, ioc, group);
        } else {
            let think = ThinkTime::counting(self.kernel.unit(), self.now);
            self.contexts.add(ioc, || ContextState {
                queues: BySynchrony::default(),
                think,
                io_prio,
                group,
                requests_bound: 0,
                exited: false,
            });
        }
        let known = self.contexts[ioc].queues[synchrony];
        match known.and_then(|queue| self.keep_queue(cx, ioc, queue)) {
            Some(queue) => self.follow_merge(cx, ioc, queue),
            None => self.obtain_queue(cx, ioc, group, synchrony),
        }
    }

    /// Returns `queue`, unless `ioc` leaves it because it is split.
    fn keep_queue(&mut self, cx: &Cx, ioc: IocId, queue: QueueId) -> Option<QueueId> {
        let state = &self.queues[queue];
        if state.shared && state.split_due { self.split(cx, ioc, queue) } else { Some(queue) }
    }

    /// Follows a change of the I/O context's priority since its last request.
    ///
    /// An oddity of Linux: it looks the asynchronous queue up by the old priority, so it finds the
    /// same queue again. The context leaves it at the next change, or when it starts afresh.
    fn follow_priority(&mut self, cx: &Cx, ioc: IocId, group: GroupId, io_prio: IoPrio) {
        let context = &self.contexts[ioc];
        let old = context.io_prio;
        if old == io_prio {
            return;
        }
        let BySynchrony([async_queue, sync_queue]) = context.queues;
        if let Some(queue) = async_queue {
            self.contexts[ioc].queues[Synchrony::Async] = None;
            self.drop_user(cx, queue);
            self.obtain_queue(cx, ioc, group, Synchrony::Async);
        }
        if let Some(queue) = sync_queue {
            self.queues[queue].priority.mark_outdated();
        }
        self.contexts[ioc].io_prio = io_prio;
    }

    /// Follows a move of the I/O context to another group since its last request. It leaves its
    /// queues behind.
    fn follow_group(&mut self, cx: &Cx, ioc: IocId, group: GroupId) {
        if self.contexts[ioc].group == group {
            return;
        }
        self.trace.event(cx.now, Event::Queue(QueueEvent::GroupMoved { ioc }));
        self.leave_queues(cx, ioc);
        self.contexts[ioc].group = group;
    }

    /// The queue into which a bio of `ioc` would go, if there is one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn existing_queue(&self, ioc: IocId, synchrony: Synchrony) -> Option<QueueId> {
        self.contexts.get(ioc)?.queues[synchrony]
    }

    /// Handles the exit of an I/O context: if the active queue is one of its queues, shared or not,
    /// its slice ends.
    pub(super) fn exit_context(&mut self, cx: &Cx, ioc: IocId) {
        let Some(context) = self.contexts.get_mut(ioc) else { return };
        context.exited = true;
        if let Some(active) = self.active
            && context.queues.0.contains(&Some(active))
        {
            self.expire(cx, SliceEnd::Exit);
        }
        self.leave_queues(cx, ioc);
        self.free_context_if_unused(ioc);
    }

    /// Frees what CFQ keeps of `ioc` if it has exited and nothing refers to it.
    pub(super) fn free_context_if_unused(&mut self, ioc: IocId) {
        let Some(context) = self.contexts.get(ioc) else { return };
        let in_use = !context.exited
            || context.requests_bound > 0
            || context.queues != BySynchrony::default()
            || self.active_context == Some(ioc);
        if !in_use {
            self.contexts.remove(ioc);
        }
    }

    /// Removes the context as a user of its queues, and of those into which they are to be merged.
    fn leave_queues(&mut self, cx: &Cx, ioc: IocId) {
        for synchrony in Synchrony::ALL {
            if let Some(queue) = self.contexts[ioc].queues[synchrony].take() {
                self.drop_users_of_chain(cx, queue);
                self.drop_user(cx, queue);
            }
        }
    }

    /// The group is about to go: contexts that moved on and made no request since leave the queues
    /// that they have there.
    pub(super) fn abandon_queues_of(&mut self, cx: &Cx, group: GroupId) {
        let stayed = self.contexts.iter().filter(|(_, context)| context.group == group);
        let stayed: Vec<IocId> = stayed.map(|(ioc, _)| ioc).collect();
        for ioc in stayed {
            self.leave_queues(cx, ioc);
        }
    }

    /// The mean think time of the active context, once it has enough samples.
    pub(super) fn active_think_mean(&self) -> Option<Nanos> {
        self.contexts.get(self.active_context?)?.think.mean()
    }
}
