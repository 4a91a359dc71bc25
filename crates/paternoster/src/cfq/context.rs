//! What CFQ keeps of an I/O context: the queues into which its requests go.

use crate::arena::{GroupId, IocId, RequestId};
use crate::cfq::Cfq;
use crate::cfq::queue::{QueueId, queue_of};
use crate::io_context::IoPrio;
use crate::parts::think_time::ThinkTime;
use crate::scheduler::Cx;
use crate::time::Nanos;
use crate::trace::{Event, ExpireReason, Trace};
use slotmap::Key as _;

/// What CFQ keeps of an I/O context, from its first request until it has exited and neither a
/// request of it exists nor the turn that it began goes on.
#[derive(Debug)]
pub(super) struct ContextState {
    /// Into which its async and its sync requests go, once there were any.
    pub(super) queues: [Option<QueueId>; 2],
    pub(super) think: ThinkTime,
    /// Its I/O priority when it last made a request.
    pub(super) io_prio: IoPrio,
    /// Its group when it last made a request.
    group: GroupId,
    /// Requests that exist of it.
    requests_bound: u32,
    exited: bool,
}

/// Which of a context's queues: async ones first.
const ASYNC: usize = 0;
pub(super) const SYNC: usize = 1;

impl<T: Trace> Cfq<T> {
    /// A request is made: it belongs to a queue from now on.
    pub(super) fn bind_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, group, sync) = (request.ioc, request.group, request.is_sync());
        // The queues that are told are those of before: of the old priority and group. What the
        // allowance is, was for admission to ask; it is used up all the same.
        self.boost(cx, ioc, sync, request.has_prio());
        self.take_allowance(ioc, sync);
        let queue = self.queue_for(cx, ioc, group, sync);
        self.queues[queue].requests_bound += 1;
        self.contexts[ioc].requests_bound += 1;
        cx.requests[rq].queue = queue.data();
    }

    /// A request has ended: its queue may go with it, and its context.
    pub(super) fn unbind_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (queue, ioc) = (queue_of(cx.requests, rq), cx.requests[rq].ioc);
        self.queues[queue].requests_bound -= 1;
        self.free_queue_if_unused(cx, queue);
        if let Some(context) = self.contexts.get_mut(ioc) {
            context.requests_bound -= 1;
        }
        self.free_context_if_unused(ioc);
    }

    /// The queue of a request that `ioc` is making in `group`; it is made if there is none.
    fn queue_for(&mut self, cx: &Cx<'_>, ioc: IocId, group: GroupId, sync: bool) -> QueueId {
        let io_prio = cx.contexts[ioc].io_prio;
        match self.contexts.get(ioc) {
            Some(known) if known.io_prio == io_prio && known.group == group => {}
            Some(_) => {
                self.ensure_group(cx, group);
                self.follow_priority(cx, ioc, group, io_prio);
                self.follow_group(cx, ioc, group);
            }
            None => {
                self.ensure_group(cx, group);
                let think = ThinkTime::new(cx.now);
                let new = ContextState {
                    queues: [None; 2],
                    think,
                    io_prio,
                    group,
                    requests_bound: 0,
                    exited: false,
                };
                self.contexts.insert(ioc, new);
            }
        }
        loop {
            let Some(queue) = self.contexts[ioc].queues[usize::from(sync)] else {
                return self.obtain_queue(cx, ioc, group, sync);
            };
            if let Some(queue) = self.follow_cooperation(cx, ioc, queue) {
                return queue;
            }
        }
    }

    /// The task's priority may have changed since its last request.
    ///
    /// Linux looks the async queue up by the priority that is about to be forgotten, so the old
    /// one is found again, and the next change or a fresh start leaves it.
    fn follow_priority(&mut self, cx: &Cx<'_>, ioc: IocId, group: GroupId, io_prio: IoPrio) {
        let context = &self.contexts[ioc];
        let old = context.io_prio;
        if old == io_prio {
            return;
        }
        let [async_queue, sync_queue] = context.queues;
        if let Some(queue) = async_queue {
            self.contexts[ioc].queues[ASYNC] = None;
            self.drop_holder(cx, queue);
            self.obtain_queue(cx, ioc, group, false);
        }
        if let Some(queue) = sync_queue {
            self.queues[queue].prio_dirty = true;
        }
        self.contexts[ioc].io_prio = io_prio;
    }

    /// The task may have gone to another group since its last request: its queues stay behind.
    fn follow_group(&mut self, cx: &Cx<'_>, ioc: IocId, group: GroupId) {
        if self.contexts[ioc].group == group {
            return;
        }
        self.trace.event(cx.now, Event::GroupMoved { ioc });
        self.leave_queues(cx, ioc);
        self.contexts[ioc].group = group;
    }

    /// The queue into which a bio of `ioc` would go, as far as it exists.
    #[inline]
    pub(super) fn existing_queue(&self, ioc: IocId, sync: bool) -> Option<QueueId> {
        self.contexts.get(ioc)?.queues[usize::from(sync)]
    }

    /// The task has exited: the turns of its queues end, those of shared ones too.
    pub(super) fn exit_context(&mut self, cx: &Cx<'_>, ioc: IocId) {
        let Some(context) = self.contexts.get_mut(ioc) else { return };
        context.exited = true;
        if let Some(active) = self.active
            && context.queues.contains(&Some(active))
        {
            self.expire(cx, ExpireReason::Exit);
        }
        self.leave_queues(cx, ioc);
        self.free_context_if_unused(ioc);
    }

    pub(super) fn free_context_if_unused(&mut self, ioc: IocId) {
        let Some(context) = self.contexts.get(ioc) else { return };
        let in_use = !context.exited
            || context.requests_bound > 0
            || context.queues != [None; 2]
            || self.active_context == Some(ioc);
        if !in_use {
            self.contexts.remove(ioc);
        }
    }

    /// The context uses its queues no more, nor those into which they are to merge.
    fn leave_queues(&mut self, cx: &Cx<'_>, ioc: IocId) {
        for slot in [ASYNC, SYNC] {
            if let Some(queue) = self.contexts[ioc].queues[slot].take() {
                self.drop_chain(cx, queue);
            }
        }
    }

    /// The group is about to go: contexts that moved on and made no request since leave the queues
    /// that they have there.
    pub(super) fn abandon_queues_of(&mut self, cx: &Cx<'_>, group: GroupId) {
        let stayed = self.contexts.iter().filter(|(_, context)| context.group == group);
        let stayed: Vec<IocId> = stayed.map(|(ioc, _)| ioc).collect();
        for ioc in stayed {
            self.leave_queues(cx, ioc);
        }
    }

    /// The mean think time of the active context, once it has samples enough.
    pub(super) fn active_think_mean(&self) -> Option<Nanos> {
        self.contexts.get(self.active_context?)?.think.mean()
    }
}
