//! What BFQ keeps of an I/O context: the queues into which its requests go, and what its own queue
//! was like before it was merged.

use crate::arena::{GroupId, IocId, RequestId};
use crate::bfq::Bfq;
use crate::bfq::queue::{Queue, QueueId, queue_of};
use crate::bfq::split::{Saved, Split};
use crate::bfq::wf2q::{Entity, weight_of};
use crate::io_context::IoPrio;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Event, QueueName, Trace};
use slotmap::Key as _;

/// What BFQ keeps of an I/O context, from its first request until it has exited and no request of
/// it exists.
#[derive(Debug)]
pub(super) struct ContextState {
    /// Into which its async and its sync requests go, once there were any.
    pub(super) queues: [Option<QueueId>; 2],
    /// Its I/O priority when it last made a request.
    io_prio: IoPrio,
    /// Its group when it last offered one.
    group: Option<GroupId>,
    /// Requests that exist of it.
    pub(super) requests_bound: u32,
    /// The queue made just before its own, with which that is to merge if both keep running.
    pub(super) elder: Option<QueueId>,
    /// Its queue was merged with one made at about the same time: it stays so.
    pub(super) stably_merged: bool,
    /// Its queue as it was when it was merged last.
    pub(super) saved: Option<Box<Saved>>,
    exited: bool,
}

/// Which of a context's queues: async ones first.
const ASYNC: usize = 0;
pub(super) const SYNC: usize = 1;

const HAS_GROUP: &str = "a context that makes requests has a group";

impl ContextState {
    fn new(io_prio: IoPrio, exited: bool) -> Self {
        Self {
            queues: [None; 2],
            io_prio,
            group: None,
            requests_bound: 0,
            elder: None,
            stably_merged: false,
            saved: None,
            exited,
        }
    }
}

impl<T: Trace> Bfq<T> {
    /// A request is made, or given to a queue anew: it belongs to that from now on.
    pub(super) fn bind_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, group, sync) = (request.ioc, request.group, request.is_sync());
        if !self.is_unchanged(cx, ioc, group) {
            self.follow_priority(cx, ioc, group);
            self.follow_group(cx, ioc, group);
        }
        let (queue, split) = self.queue_for(cx, ioc, sync);
        self.wf2q.count_request(queue, 1);
        self.contexts[ioc].requests_bound += 1;
        cx.requests[rq].queue = queue.data();
        let state = &mut self.queues[queue];
        if state.merge_into.is_none() && state.users == 1 {
            state.owner = Some(ioc);
            if let Some(split) = split {
                self.restore(cx, ioc, queue, split);
            }
        }
        let may_burst = self.burst.goes_on() || self.symmetry.busy() == 0;
        if may_burst && self.queues[queue].fresh {
            self.join_burst(cx, queue);
        }
    }

    /// A request has ended: its queue may go with it, and its context.
    pub(super) fn unbind_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (queue, ioc) = (queue_of(cx.requests, rq), cx.requests[rq].ioc);
        self.wf2q.count_request(queue, -1);
        self.free_queue_if_unused(cx, queue);
        if let Some(context) = self.contexts.get_mut(ioc) {
            context.requests_bound -= 1;
        }
        self.free_context_if_unused(cx, ioc);
    }

    /// The queue of a request that `ioc` is making, and whether it has just left a shared one.
    fn queue_for(&mut self, cx: &Cx<'_>, ioc: IocId, sync: bool) -> (QueueId, Option<Split>) {
        let context = &self.contexts[ioc];
        let Some(queue) = context.queues[usize::from(sync)] else {
            return (self.make_queue_for(cx, ioc, sync), None);
        };
        let state = &self.queues[queue];
        if !(state.shared && state.split_due) || context.stably_merged {
            return (queue, None);
        }
        let (queue, split) = self.split(cx, ioc, queue);
        (queue, Some(split))
    }

    fn make_queue_for(&mut self, cx: &Cx<'_>, ioc: IocId, sync: bool) -> QueueId {
        if sync {
            let queue = self.make_sync_queue(cx, ioc);
            return self.join_elder(cx, queue, ioc);
        }
        let group = self.contexts[ioc].group.expect(HAS_GROUP);
        self.obtain_async_queue(cx, ioc, group)
    }

    /// Gives `ioc` a sync queue of its own.
    pub(super) fn make_sync_queue(&mut self, cx: &Cx<'_>, ioc: IocId) -> QueueId {
        let group = self.contexts[ioc].group.expect(HAS_GROUP);
        let queue = self.make_queue(cx, QueueName { ioc, sync: true }, group);
        self.queues[queue].users = 1;
        self.set_queue(cx, ioc, SYNC, Some(queue));
        queue
    }

    /// Gives `ioc` the async queue of the group for its priority, which is made if there is none.
    fn obtain_async_queue(&mut self, cx: &Cx<'_>, ioc: IocId, group: GroupId) -> QueueId {
        let kind = self.contexts[ioc].io_prio.kind();
        let queue = if let Some(queue) = self.groups[group].async_queues[kind] {
            queue
        } else {
            let queue = self.make_queue(cx, QueueName { ioc, sync: false }, group);
            self.groups[group].async_queues[kind] = Some(queue);
            // The group itself.
            self.queues[queue].users = 1;
            queue
        };
        self.queues[queue].users += 1;
        self.set_queue(cx, ioc, ASYNC, Some(queue));
        queue
    }

    fn make_queue(&mut self, cx: &Cx<'_>, name: QueueName, group: GroupId) -> QueueId {
        let io_prio = self.contexts[name.ioc].io_prio;
        let queue = self.wf2q.add_queue(Entity::of_queue(group, io_prio));
        self.queues.insert(queue, Queue::new(cx, name, self.budgets.of_new_queue()));
        self.trace.event(cx.now, Event::QueueMade { queue: name, group });
        queue
    }

    /// Whether the task is known, and of the same priority and group as at its last request.
    #[inline]
    fn is_unchanged(&self, cx: &Cx<'_>, ioc: IocId, group: GroupId) -> bool {
        let io_prio = cx.contexts[ioc].io_prio;
        self.contexts
            .get(ioc)
            .is_some_and(|context| context.io_prio == io_prio && context.group == Some(group))
    }

    /// The task's priority may have changed since its last request. Its sync queue takes it over
    /// when it is next scheduled, even if it is shared.
    fn follow_priority(&mut self, cx: &Cx<'_>, ioc: IocId, group: GroupId) {
        let io_prio = cx.contexts[ioc].io_prio;
        let Some(context) = self.contexts.get_mut(ioc) else {
            // It is gone already where its last request comes back from the device.
            let exited = !cx.contexts.alive(ioc);
            self.contexts.insert(ioc, ContextState::new(io_prio, exited));
            return;
        };
        if std::mem::replace(&mut context.io_prio, io_prio) == io_prio {
            return;
        }
        let [async_queue, sync_queue] = context.queues;
        if let Some(queue) = async_queue {
            self.ensure_group(cx, group);
            self.set_queue(cx, ioc, ASYNC, None);
            self.drop_user(cx, queue);
            self.obtain_async_queue(cx, ioc, group);
        }
        if let Some(queue) = sync_queue {
            let entity = &mut self.wf2q.entities[queue];
            entity.new_class = io_prio.class();
            entity.new_weight = weight_of(io_prio);
            entity.change_due = true;
            let queue = self.queues[queue].name();
            self.trace.event(cx.now, Event::Priority { queue, io_prio });
        }
    }

    /// The task may have gone to another group since its last bio. Its own queue goes along; one
    /// that it shares stays behind.
    pub(super) fn follow_group(&mut self, cx: &Cx<'_>, ioc: IocId, group: GroupId) {
        let Some(context) = self.contexts.get_mut(ioc) else { return };
        let before = context.group.replace(group);
        if before == Some(group) {
            return;
        }
        let [async_queue, sync_queue] = context.queues;
        self.ensure_group(cx, group);
        if before.is_some() {
            self.trace.event(cx.now, Event::GroupMoved { ioc });
        }
        if let Some(queue) = async_queue
            && self.wf2q.entities[queue].above != group
        {
            self.set_queue(cx, ioc, ASYNC, None);
            self.drop_user(cx, queue);
        }
        let Some(queue) = sync_queue else { return };
        let state = &self.queues[queue];
        if !state.shared && state.merge_into.is_none() {
            self.move_queue(cx, queue, group);
            return;
        }
        let next = |&queue: &QueueId| self.queues[queue].merge_into;
        let mut chain = std::iter::successors(Some(queue), next);
        if chain.any(|queue| self.wf2q.entities[queue].above != group) {
            self.drop_chain(cx, queue);
            self.set_queue(cx, ioc, SYNC, None);
            self.drop_user(cx, queue);
        }
    }

    /// The queue into which a bio of `ioc` would go, as far as it exists.
    #[inline]
    pub(super) fn existing_queue(&self, ioc: IocId, sync: bool) -> Option<QueueId> {
        self.contexts.get(ioc)?.queues[usize::from(sync)]
    }

    /// The task has exited. A queue of it that is in service, even a shared one, leaves service, as
    /// if its time were over but without a charge for it.
    pub(super) fn exit_context(&mut self, cx: &Cx<'_>, ioc: IocId) {
        let Some(context) = self.contexts.get_mut(ioc) else { return };
        context.exited = true;
        self.drop_elder(cx, ioc);
        self.leave_queues(cx, ioc);
        self.free_context_if_unused(cx, ioc);
    }

    fn leave_queues(&mut self, cx: &Cx<'_>, ioc: IocId) {
        for slot in [SYNC, ASYNC] {
            let Some(queue) = self.contexts[ioc].queues[slot] else { continue };
            self.set_queue(cx, ioc, slot, None);
            if self.in_service == Some(queue) {
                self.leave(cx, queue, BudgetEnd::Timeout);
            }
            self.drop_chain(cx, queue);
            self.drop_user(cx, queue);
        }
    }

    /// A task that has exited is forgotten with its last request. It uses no queue any more, unless
    /// a request that was handed back since has given it one.
    fn free_context_if_unused(&mut self, cx: &Cx<'_>, ioc: IocId) {
        let Some(context) = self.contexts.get(ioc) else { return };
        if context.exited && context.requests_bound == 0 {
            self.drop_elder(cx, ioc);
            self.leave_queues(cx, ioc);
            self.contexts.remove(ioc);
        }
    }
}
