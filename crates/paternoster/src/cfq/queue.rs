//! A queue: the requests of one I/O context, or the asynchronous ones of a group at one priority.
//!
//! A queue is freed when it has no users and no requests. Its users are the I/O contexts whose
//! requests go into it, or will go into it by a planned merge of queues; the group is a user of an
//! asynchronous queue. Nothing else keeps a queue alive; in BFQ, *keepers* do as well.

use std::ops::{Index, IndexMut};

use crate::arena::{Arena, GroupId, IocId, RequestId};
use crate::cfq::Cfq;
use crate::cfq::cooperate::Position;
use crate::cfq::hierarchy::QueueShare;
use crate::cfq::idle_window::IdleWindow;
use crate::cfq::io_pattern::Seekiness;
use crate::cfq::priority::QueuePriority;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::{TreeId, TreePlace};
use crate::cfq::slice::Slice;
use crate::io_context::{IoClass, IoPrio};
use crate::parts::service_speed::ServiceSpeed;
use crate::parts::waiting::WaitingRequests;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::time::Instant;
use crate::trace::{Event, QueueEvent, QueueName, SliceEnd, Trace, Workload};

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// The group in which it competes; changes only in kernels that move queues.
    pub(super) group: GroupId,
    /// Whether its requests are synchronous; never changes.
    pub(super) synchrony: Synchrony,
    /// The I/O context that traces name: the one for which it was created, or the last one when it
    /// was split.
    pub(super) named_after: IocId,
    pub(super) priority: QueuePriority,

    /// The requests that wait in it.
    pub(super) waiting: WaitingRequests,
    /// Of them, those with the priority flag.
    pub(super) prio_pending: u32,
    /// Its requests in flight.
    pub(super) in_flight: u32,

    /// Its place on a service tree, while it is busy.
    pub(super) place: Option<TreePlace>,
    /// Where it is on a position index.
    pub(super) position: Option<Position>,

    /// The slice that it has, or had last.
    pub(super) slice: Slice,
    /// What was left of its last slice in ns, or what it used beyond it as a negative number; until
    /// the queue is placed.
    residue: i64,
    pub(super) share: QueueShare,

    pub(super) seekiness: Seekiness,
    pub(super) idle_window: IdleWindow,

    /// The queue to which its users are to move. While it has users, each of them is a user of that
    /// queue too.
    pub(super) merge_into: Option<QueueId>,
    /// Users of another queue have moved to it.
    pub(super) shared: bool,
    /// It is shared and seeky: its users are to have queues of their own again.
    pub(super) split_due: bool,
    /// The I/O contexts that use it or will use it by a planned merge; the group of an
    /// asynchronous queue counts too.
    pub(super) users: u32,
    /// Requests that are bound to it.
    pub(super) requests_bound: u32,
}

impl Queue {
    fn new(now: Instant, group: GroupId, name: QueueName, io_prio: IoPrio) -> Self {
        Self {
            group,
            synchrony: Synchrony::of(name.sync),
            named_after: name.ioc,
            priority: QueuePriority::new(io_prio),
            waiting: WaitingRequests::default(),
            prio_pending: 0,
            in_flight: 0,
            place: None,
            position: None,
            slice: Slice::activate(now, ServiceSpeed::default().mark(now)),
            residue: 0,
            share: QueueShare::new(now),
            seekiness: Seekiness::default(),
            idle_window: IdleWindow::new(name.sync && io_prio.class() != IoClass::Idle),
            merge_into: None,
            shared: false,
            split_due: false,
            users: 0,
            requests_bound: 0,
        }
    }

    /// Returns whether no request waits in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many requests wait in it.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        self.waiting.count()
    }

    /// The request to dispatch next; none if and only if the queue is empty.
    #[inline]
    pub(super) fn next(&self) -> Option<RequestId> {
        self.waiting.next()
    }

    /// Its name in traces.
    #[inline]
    pub(super) fn name(&self) -> QueueName {
        QueueName { ioc: self.named_after, sync: self.synchrony.is_sync() }
    }

    /// The class and level by which it is served now.
    #[inline]
    pub(super) fn io_prio(&self) -> IoPrio {
        self.priority.current()
    }

    #[inline]
    pub(super) fn class(&self) -> IoClass {
        self.io_prio().class()
    }

    /// Returns whether it is busy, that is, on a service tree.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.place.is_some()
    }

    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.seekiness.is_seeky()
    }

    /// The workload to which it belongs now. It may still be on the tree of another one.
    #[inline]
    pub(super) fn workload(&self) -> Workload {
        if !self.synchrony.is_sync() {
            Workload::Async
        } else if self.idle_window.is_open() {
            Workload::Sync
        } else {
            Workload::SyncNoIdle
        }
    }

    /// The tree on which it should be.
    #[inline]
    pub(super) fn wanted_tree(&self) -> TreeId {
        TreeId::new(self.class(), self.workload())
    }

    /// The tree on which it is.
    #[inline]
    pub(super) fn tree(&self) -> TreeId {
        self.place.as_ref().expect("a busy queue is on a tree").tree
    }

    /// Returns whether its user leaves it with the next request: it is merged, or split.
    #[inline]
    pub(super) fn is_to_be_left(&self) -> bool {
        self.merge_into.is_some() || (self.shared && self.split_due)
    }

    /// Returns whether it has no users and no requests.
    #[inline]
    pub(super) fn is_unused(&self) -> bool {
        self.users == 0 && self.requests_bound == 0
    }

    /// Keeps what was left of its slice, or was used beyond it, until it is placed.
    pub(super) fn carry_over(&mut self, residue: i64) {
        self.residue = residue;
    }

    /// Returns what was carried over, once.
    #[inline]
    pub(super) fn take_residue(&mut self) -> i64 {
        std::mem::take(&mut self.residue)
    }
}

/// The queues of one device.
#[derive(Debug)]
pub(super) struct Queues(Arena<QueueId, Queue>);

impl Queues {
    pub(super) fn new() -> Self {
        Self(Arena::default())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Index<QueueId> for Queues {
    type Output = Queue;
    #[inline]
    fn index(&self, queue: QueueId) -> &Queue {
        &self.0[queue]
    }
}

impl IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, queue: QueueId) -> &mut Queue {
        &mut self.0[queue]
    }
}

impl<T: Trace> Cfq<T> {
    /// Gives `ioc` a queue for such requests: a queue of its own if they are synchronous, else the
    /// one that the group, or the device, has for its priority.
    pub(super) fn obtain_queue(
        &mut self,
        cx: &Cx,
        ioc: IocId,
        group: GroupId,
        synchrony: Synchrony,
    ) -> QueueId {
        let in_root = !synchrony.is_sync() && self.kernel.has_async_queues_in_root();
        let group = if in_root { cx.groups.root() } else { group };
        let io_prio = self.contexts[ioc].io_prio;
        let slot = &mut self.groups[group].async_queues[io_prio.async_slot()];
        let queue = match slot {
            Some(shared) if !synchrony.is_sync() => *shared,
            _ => {
                let name = QueueName { ioc, sync: synchrony.is_sync() };
                let queue = self.queues.0.insert(Queue::new(self.now, group, name, io_prio));
                self.trace
                    .event(cx.now, Event::Queue(QueueEvent::QueueMade { queue: name, group }));
                if !synchrony.is_sync() {
                    *slot = Some(queue);
                    // The group is its first user.
                    self.queues[queue].users = 1;
                }
                queue
            }
        };
        self.queues[queue].users += 1;
        self.contexts[ioc].queues[synchrony] = Some(queue);
        queue
    }

    /// Removes one user of `queue`.
    pub(super) fn drop_user(&mut self, cx: &Cx, queue: QueueId) {
        let state = &mut self.queues[queue];
        state.users -= 1;
        if state.is_unused() {
            self.free_queue(cx, queue);
        }
    }

    /// Removes one user of each queue into which `queue` is to be merged, but not of `queue`.
    pub(super) fn drop_users_of_chain(&mut self, cx: &Cx, queue: QueueId) {
        let mut link = self.queues[queue].merge_into;
        while let Some(target) = link {
            link = self.queues[target].merge_into;
            self.drop_user(cx, target);
        }
    }

    /// Frees a queue, which is unused.
    #[cold]
    #[inline(never)]
    pub(super) fn free_queue(&mut self, cx: &Cx, queue: QueueId) {
        if self.active == Some(queue) {
            self.expire(cx, SliceEnd::Gone);
        }
        let name = self.queues[queue].name();
        self.trace.event(cx.now, Event::Queue(QueueEvent::QueueFreed { queue: name }));
        self.isolation.forget(queue);
        self.queues.0.remove(queue);
    }
}
