//! What BFQ keeps of an I/O context: the queues into which its requests go, and what its own queue
//! was like before it was merged.

use crate::arena::{GroupId, IocId, RequestId};
use crate::bfq::Bfq;
use crate::bfq::burst::{Joined, Newcomer};
use crate::bfq::queue::Queue;
use crate::bfq::queue_id::{QueueId, queue_of};
use crate::bfq::split::Saved;
use crate::io_context::IoPrio;
use crate::scheduler::Cx;
use crate::synchrony::{BySynchrony, Synchrony};
use crate::trace::{BfqEvent, BudgetEnd, Event, QueueEvent, QueueName, Trace};
use slotmap::Key as _;

/// What BFQ keeps of an I/O context, from its first request until it has exited and no request of
/// it exists.
#[derive(Debug)]
pub(super) struct ContextState {
    /// The queues of its async and of its sync requests, once there were any.
    pub(super) queues: BySynchrony<Option<QueueId>>,
    /// Its I/O priority when it last made a request.
    io_prio: IoPrio,
    /// Its group when it last submitted a bio.
    group: Option<GroupId>,
    /// Requests that exist of it.
    pub(super) requests_bound: u32,
    /// The queue that was created just before its own, if both are to merge after they have run
    /// for a while.
    pub(super) merge_candidate: Option<QueueId>,
    /// Its queue was merged with one that was created at about the same time, and stays merged.
    pub(super) stably_merged: bool,
    /// Its queue as it was when it was merged last.
    pub(super) saved: Option<Box<Saved>>,
    exited: bool,
}

const HAS_GROUP: &str = "a context that makes requests has a group";

impl ContextState {
    fn new(io_prio: IoPrio, exited: bool) -> Self {
        Self {
            queues: BySynchrony::default(),
            io_prio,
            group: None,
            requests_bound: 0,
            merge_candidate: None,
            stably_merged: false,
            saved: None,
            exited,
        }
    }

    /// Returns whether it goes on with its queue: that is not to be split, or is merged for good.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn keeps(&self, queue: &Queue) -> bool {
        !(queue.shared && queue.split_due) || self.stably_merged
    }
}

impl<T: Trace> Bfq<T> {
    /// Binds a request to its queue: it is new, or was requeued. Usually its context has a queue,
    /// and nothing has changed since the last request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn bind_request(&mut self, cx: &mut Cx, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, group, synchrony) = (request.ioc, request.group, request.synchrony());
        let io_prio = cx.contexts[ioc].io_prio;
        let queue = match self.contexts.get_mut(ioc) {
            Some(context) if context.io_prio == io_prio && context.group == Some(group) => {
                context.queues[synchrony].filter(|&queue| context.keeps(&self.queues[queue]))
            }
            _ => None,
        };
        let queue = match queue {
            Some(queue) => queue,
            None => self.queue_after_change(cx, rq),
        };
        self.wf2q.count_request(queue, 1);
        self.contexts[ioc].requests_bound += 1;
        cx.requests.get_mut(rq).queue = queue.data();
        let state = &mut self.queues[queue];
        if state.merge_into.is_none() && state.users == 1 {
            state.owner = Some(ioc);
        }
        if state.fresh && (self.burst.may_go_on() || self.busy.count() == 0) {
            self.join_burst(cx, queue);
        }
    }

    /// Returns the queue for a request whose context is new, has another priority or group, has no
    /// such queue yet, or leaves a shared one.
    #[cold]
    #[inline(never)]
    fn queue_after_change(&mut self, cx: &Cx, rq: RequestId) -> QueueId {
        let request = &cx.requests[rq];
        let (ioc, group, synchrony) = (request.ioc, request.group, request.synchrony());
        self.follow_priority(cx, ioc, group);
        self.follow_group(cx, ioc, group);
        let context = &self.contexts[ioc];
        let Some(queue) = context.queues[synchrony] else {
            return self.make_queue_for(cx, ioc, synchrony);
        };
        if context.keeps(&self.queues[queue]) { queue } else { self.split(cx, ioc, queue) }
    }

    /// A queue gets its first request and may belong to a burst. A queue that a split has created
    /// does not for a while.
    #[cold]
    #[inline(never)]
    fn join_burst(&mut self, cx: &Cx, queue: QueueId) {
        let now = cx.jiffies();
        let state = &self.queues[queue];
        if state.in_large_burst || now <= state.split_at + self.times.split_immunity {
            return;
        }
        let group = self.wf2q.group_of(queue);
        let is_first_busy = self.busy.count() == 0;
        let newcomer = Newcomer { queue, group, now, is_first_busy };
        match self.burst.join(newcomer, self.times.burst) {
            Joined::Small => {}
            Joined::Large => self.queues[queue].in_large_burst = true,
            Joined::MadeLarge(queues) => {
                self.trace.event(cx.now, Event::Bfq(BfqEvent::LargeBurst { is_large: true }));
                for queue in queues {
                    self.queues[queue].in_large_burst = true;
                }
            }
        }
    }

    /// A request has ended: its queue and its context are freed if nothing else needs them.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn unbind_request(&mut self, cx: &Cx, rq: RequestId) {
        let (queue, ioc) = (queue_of(&cx.requests, rq), cx.requests[rq].ioc);
        self.wf2q.count_request(queue, -1);
        self.free_queue_if_unused(cx, queue);
        let Some(context) = self.contexts.get_mut(ioc) else { return };
        context.requests_bound -= 1;
        if context.exited {
            self.free_context_if_unused(cx, ioc);
        }
    }

    #[cold]
    #[inline(never)]
    fn make_queue_for(&mut self, cx: &Cx, ioc: IocId, synchrony: Synchrony) -> QueueId {
        if synchrony.is_sync() {
            let queue = self.make_sync_queue(cx, ioc);
            return self.merge_at_creation(cx, queue, ioc);
        }
        let group = self.contexts[ioc].group.expect(HAS_GROUP);
        self.obtain_async_queue(cx, ioc, group)
    }

    /// Gives `ioc` a sync queue of its own.
    pub(super) fn make_sync_queue(&mut self, cx: &Cx, ioc: IocId) -> QueueId {
        let group = self.contexts[ioc].group.expect(HAS_GROUP);
        let queue = self.make_queue(cx, QueueName { ioc, sync: true }, group);
        self.queues[queue].users = 1;
        self.set_queue(cx, ioc, Synchrony::Sync, Some(queue));
        queue
    }

    /// Gives `ioc` the async queue of the group for its priority, which is made if there is none.
    fn obtain_async_queue(&mut self, cx: &Cx, ioc: IocId, group: GroupId) -> QueueId {
        let slot = self.contexts[ioc].io_prio.async_slot();
        let queue = if let Some(queue) = self.groups[group].async_queues[slot] {
            queue
        } else {
            let queue = self.make_queue(cx, QueueName { ioc, sync: false }, group);
            self.groups[group].async_queues[slot] = Some(queue);
            // The group itself.
            self.queues[queue].users = 1;
            queue
        };
        self.queues[queue].users += 1;
        self.set_queue(cx, ioc, Synchrony::Async, Some(queue));
        queue
    }

    fn make_queue(&mut self, cx: &Cx, name: QueueName, group: GroupId) -> QueueId {
        let io_prio = self.contexts[name.ioc].io_prio;
        let queue = self.wf2q.add_queue(group, io_prio);
        let budget = self.budgets.of_new_queue();
        self.queues.add(queue, || Queue::new(cx, name, budget));
        self.trace.event(cx.now, Event::Queue(QueueEvent::QueueMade { queue: name, group }));
        queue
    }

    /// The priority of the context may have changed since its last request. Its sync queue follows
    /// when it is next put on its tree, even if it is shared.
    #[cold]
    #[inline(never)]
    fn follow_priority(&mut self, cx: &Cx, ioc: IocId, group: GroupId) {
        let io_prio = cx.contexts[ioc].io_prio;
        let Some(context) = self.contexts.get_mut(ioc) else {
            // The context may have exited before its last request was requeued.
            let exited = !cx.contexts.alive(ioc);
            self.contexts.add(ioc, || ContextState::new(io_prio, exited));
            return;
        };
        if std::mem::replace(&mut context.io_prio, io_prio) == io_prio {
            return;
        }
        let BySynchrony([async_queue, sync_queue]) = context.queues;
        if let Some(queue) = async_queue {
            self.ensure_group(cx, group);
            self.set_queue(cx, ioc, Synchrony::Async, None);
            self.drop_user(cx, queue);
            self.obtain_async_queue(cx, ioc, group);
        }
        if let Some(queue) = sync_queue {
            self.wf2q.reprioritise(queue, io_prio);
            let queue = self.queues[queue].name();
            self.trace.event(cx.now, Event::Queue(QueueEvent::Priority { queue, io_prio }));
        }
    }

    /// The context may have moved to another group since its last bio.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn follow_group(&mut self, cx: &Cx, ioc: IocId, group: GroupId) {
        if self.contexts.get(ioc).is_some_and(|context| context.group != Some(group)) {
            self.move_context(cx, ioc, group);
        }
    }

    /// The context has moved to another group, or has its first bio. Its own queue moves along; a
    /// shared queue stays behind.
    #[cold]
    #[inline(never)]
    fn move_context(&mut self, cx: &Cx, ioc: IocId, group: GroupId) {
        let context = &mut self.contexts[ioc];
        let before = context.group.replace(group);
        let BySynchrony([async_queue, sync_queue]) = context.queues;
        self.ensure_group(cx, group);
        if before.is_some() {
            self.trace.event(cx.now, Event::Queue(QueueEvent::GroupMoved { ioc }));
        }
        if let Some(queue) = async_queue
            && self.wf2q.group_of(queue) != group
        {
            self.set_queue(cx, ioc, Synchrony::Async, None);
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
        if chain.any(|queue| self.wf2q.group_of(queue) != group) {
            self.drop_users_of_chain(cx, queue);
            self.set_queue(cx, ioc, Synchrony::Sync, None);
            self.drop_user(cx, queue);
        }
    }

    /// Returns the queue into which a bio of `ioc` would go, if it exists.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn existing_queue(&self, ioc: IocId, synchrony: Synchrony) -> Option<QueueId> {
        self.contexts.get(ioc)?.queues[synchrony]
    }

    /// The context has exited. If its queue is in service, even a shared one, its service ends as
    /// if its time were over, without a charge for the time.
    pub(super) fn exit_context(&mut self, cx: &Cx, ioc: IocId) {
        let Some(context) = self.contexts.get_mut(ioc) else { return };
        context.exited = true;
        self.drop_merge_candidate(cx, ioc);
        self.leave_queues(cx, ioc);
        self.free_context_if_unused(cx, ioc);
    }

    #[cold]
    #[inline(never)]
    fn leave_queues(&mut self, cx: &Cx, ioc: IocId) {
        for synchrony in [Synchrony::Sync, Synchrony::Async] {
            let Some(queue) = self.contexts[ioc].queues[synchrony] else { continue };
            self.set_queue(cx, ioc, synchrony, None);
            if self.in_service == Some(queue) {
                self.leave(cx, queue, BudgetEnd::Timeout);
            }
            self.drop_users_of_chain(cx, queue);
            self.drop_user(cx, queue);
        }
    }

    /// Frees a context that has exited and has no request left. It uses no queue any more, unless
    /// a request that was requeued since has given it one.
    #[cold]
    #[inline(never)]
    fn free_context_if_unused(&mut self, cx: &Cx, ioc: IocId) {
        let Some(context) = self.contexts.get(ioc) else { return };
        if context.exited && context.requests_bound == 0 {
            self.drop_merge_candidate(cx, ioc);
            self.leave_queues(cx, ioc);
            self.contexts.remove(ioc);
        }
    }
}
