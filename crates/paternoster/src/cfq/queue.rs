//! A queue: the requests of one I/O context, or the asynchronous ones of a group at one priority.

use slotmap::new_key_type;

use crate::arena::{GroupId, IocId, RequestId};
use crate::cfq::Cfq;
use crate::cfq::service_tree::TreePlace;
use crate::io_context::{IoClass, IoPrio};
use crate::parts::fifo::Fifo;
use crate::parts::sort_list::SortList;
use crate::request::Bio;
use crate::scheduler::Cx;
use crate::time::Instant;
use crate::trace::{ExpireReason, Trace};

new_key_type! {
    /// Names a queue for as long as it exists.
    pub(super) struct QueueId;
}

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// Its group, for life.
    pub(super) group: GroupId,
    /// Whether it holds what somebody waits for.
    pub(super) sync: bool,
    /// Its class and level.
    pub(super) io_prio: IoPrio,
    pub(super) sorted: SortList,
    pub(super) fifo: Fifo,
    /// The request to send next; none if and only if there is none.
    pub(super) next: Option<RequestId>,
    /// Its place on a service tree, while it is listed.
    pub(super) place: Option<TreePlace>,
    /// When its turn began; meaningful while it is active.
    pub(super) turn_start: Instant,
    /// Requests sent in this turn.
    pub(super) sent: u32,
    /// Whether the fifo was looked at in this turn.
    pub(super) fifo_done: bool,
    /// Requests that exist of it.
    pub(super) requests_bound: u32,
    /// Whether an I/O context or a group still puts requests here.
    pub(super) owned: bool,
}

impl Queue {
    fn new(cx: &Cx<'_>, group: GroupId, sync: bool, io_prio: IoPrio) -> Self {
        Self {
            group,
            sync,
            io_prio,
            sorted: SortList::default(),
            fifo: Fifo::default(),
            next: None,
            place: None,
            turn_start: cx.now,
            sent: 0,
            fifo_done: false,
            requests_bound: 0,
            owned: true,
        }
    }

    /// Whether it has nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}

/// Async queues of a group: 8 levels of RT, 8 of BE, and one for IDLE.
pub(super) const ASYNC_QUEUES: usize = 2 * IoPrio::LEVELS as usize + 1;

fn async_slot(io_prio: IoPrio) -> usize {
    match io_prio.class() {
        IoClass::Rt => io_prio.level().into(),
        IoClass::Be => (IoPrio::LEVELS + io_prio.level()).into(),
        IoClass::Idle => ASYNC_QUEUES - 1,
    }
}

impl<T: Trace> Cfq<T> {
    /// The queue of a request that is being made; it is made if there is none.
    pub(super) fn queue_for(&mut self, cx: &Cx<'_>, rq: RequestId) -> QueueId {
        let request = &cx.requests[rq];
        let (ioc, group, io_prio) = (request.ioc, request.group, request.io_prio);
        self.ensure_group(cx, group);
        if request.is_sync() {
            self.sync_queue_for(cx, ioc, group, io_prio)
        } else {
            self.async_queue_for(cx, group, io_prio)
        }
    }

    fn sync_queue_for(
        &mut self,
        cx: &Cx<'_>,
        ioc: IocId,
        group: GroupId,
        io_prio: IoPrio,
    ) -> QueueId {
        if let Some(&queue) = self.sync_queues.get(ioc) {
            if self.queues[queue].group == group {
                // A changed priority tells at the queue's next place on a tree.
                self.queues[queue].io_prio = io_prio;
                return queue;
            }
            self.disown(cx, queue);
        }
        let queue = self.queues.insert(Queue::new(cx, group, true, io_prio));
        self.sync_queues.insert(ioc, queue);
        queue
    }

    fn async_queue_for(&mut self, cx: &Cx<'_>, group: GroupId, io_prio: IoPrio) -> QueueId {
        let queues = &mut self.queues;
        let slot = &mut self.groups[group].async_queues[async_slot(io_prio)];
        *slot.get_or_insert_with(|| queues.insert(Queue::new(cx, group, false, io_prio)))
    }

    /// The queue into which a bio would go, as far as it exists.
    pub(super) fn existing_queue(&self, cx: &Cx<'_>, bio: &Bio) -> Option<QueueId> {
        let context = &cx.contexts[bio.ioc];
        let queue = if bio.is_sync() {
            *self.sync_queues.get(bio.ioc)?
        } else {
            self.groups.get(context.group)?.async_queues[async_slot(context.io_prio)]?
        };
        (self.queues[queue].group == context.group).then_some(queue)
    }

    /// Nobody puts requests into the queue any more; it goes with its last one.
    pub(super) fn disown(&mut self, cx: &Cx<'_>, queue: QueueId) {
        if self.active == Some(queue) {
            self.expire_active(cx, ExpireReason::Exit);
        }
        self.queues[queue].owned = false;
        self.free_if_unused(queue);
    }

    /// A request of the queue has ended.
    pub(super) fn unbind(&mut self, rq: RequestId) {
        let queue = self.queue_of.remove(rq).expect("a request ends once");
        self.queues[queue].requests_bound -= 1;
        self.free_if_unused(queue);
    }

    pub(super) fn free_if_unused(&mut self, queue: QueueId) {
        let Queue { owned, requests_bound, place, .. } = &self.queues[queue];
        let unused = !owned && *requests_bound == 0 && self.active != Some(queue);
        if unused && place.is_none() {
            self.queues.remove(queue);
        }
    }

    pub(super) fn check_queues(&self, cx: &Cx<'_>) {
        let mut queued = 0;
        for (id, queue) in &self.queues {
            let waiting = queue.sorted.iter(cx.requests).count();
            assert_eq!(waiting, queue.fifo.iter(cx.requests).count(), "both lists hold the same");
            assert_eq!(queue.next.is_none(), waiting == 0, "next is one of what waits");
            let listed = queue.place.is_some();
            assert!(listed || waiting == 0, "a queue with requests is listed");
            assert!(listed || self.active != Some(id), "the active queue is listed");
            queued += waiting;
        }
        assert_eq!(queued, self.queued as usize, "the sum of what waits");
    }
}
