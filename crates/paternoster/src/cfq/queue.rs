//! A queue: the requests of one I/O context, or the asynchronous ones of a group at one priority.
//!
//! It is freed with its last holder and its last request. Holders are the I/O contexts that put
//! requests into it or are to do so by a merge of queues that is set up, and its group if it is
//! async.

use std::ops::{Index, IndexMut};

use slotmap::{SlotMap, new_key_type};

use crate::arena::{GroupId, IocId, RequestId};
use crate::cfq::Cfq;
use crate::cfq::service_tree::{Key, TreeId, TreePlace};
use crate::cfq::slice::Turn;
use crate::io_context::{IoClass, IoPrio};
use crate::parts::fifo::Fifo;
use crate::parts::position_index::NextSectors;
use crate::parts::red_black::{Nodes, TreeLinks};
use crate::parts::seek_history::SeekHistory;
use crate::parts::sort_list::SortList;
use crate::request::{Requests, Sector};
use crate::scheduler::Cx;
use crate::trace::{Event, ExpireReason, QueueName, Trace, Workload};

new_key_type! {
    /// Names a queue for as long as it exists.
    pub(super) struct QueueId;
}

/// More seeks than this among the last 32 requests make a queue seeky.
const MANY_SEEKS: u32 = 4;

/// One queue.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
pub(super) struct Queue {
    /// Its group, for life.
    pub(super) group: GroupId,
    /// Whether it holds what somebody waits for, for life.
    pub(super) sync: bool,
    /// Who made it, or is its last user since its users parted: for traces.
    pub(super) made_by: IocId,
    /// The class and level by which it is served now.
    pub(super) io_prio: IoPrio,
    /// Those that it falls back to after a boost.
    pub(super) own_io_prio: IoPrio,
    /// Its user's priority has changed and is to be read again.
    pub(super) prio_dirty: bool,

    pub(super) sorted: SortList,
    pub(super) fifo: Fifo,
    /// The request to send next; none if and only if nothing waits.
    next: Option<RequestId>,
    /// Where that starts, kept beside it for those who look for a queue by position.
    next_sector: Sector,
    /// Requests that wait in it.
    pub(super) queued: u32,
    /// Of them, those that carry the priority flag.
    pub(super) prio_pending: u32,
    /// Requests that were sent and have not completed.
    pub(super) in_flight: u32,

    /// Its place on a service tree, while it is listed.
    pub(super) place: Option<TreePlace>,
    /// Its key there.
    pub(super) key: Key,
    /// The position index that it is on, by level.
    pub(super) near: Option<u8>,
    near_links: TreeLinks<QueueId>,

    /// The turn that it has, or had last.
    pub(super) turn: Turn,
    /// What was left of its last slice (less than 0: used beyond it), in ns, until it is placed.
    pub(super) residue: i64,

    pub(super) seeks: SeekHistory,
    /// Where its last request ended.
    pub(super) last_end: Option<Sector>,
    /// It is worth waiting for.
    pub(super) idle_window: bool,
    /// Had four requests at a time, so that seeks do not cost it its window; until it is waited for
    /// in vain or its window is given up.
    pub(super) deep: bool,

    /// The queue into which its users are to go. Read for as long as it has users; each of them
    /// holds that queue too.
    pub(super) merge_into: Option<QueueId>,
    /// Users of another queue have come.
    pub(super) shared: bool,
    /// It is shared and seeky: its users are to part.
    pub(super) to_split: bool,
    /// Who holds it, without its requests.
    pub(super) holders: u32,
    /// Requests that exist of it.
    pub(super) requests_bound: u32,
}

impl Queue {
    fn new(cx: &Cx<'_>, group: GroupId, name: QueueName, io_prio: IoPrio) -> Self {
        Self {
            group,
            sync: name.sync,
            made_by: name.ioc,
            io_prio,
            own_io_prio: io_prio,
            prio_dirty: false,
            sorted: SortList::default(),
            fifo: Fifo::default(),
            next: None,
            next_sector: Sector(0),
            queued: 0,
            prio_pending: 0,
            in_flight: 0,
            place: None,
            key: Key::default(),
            near: None,
            near_links: TreeLinks::default(),
            turn: Turn::begin(cx.now),
            residue: 0,
            seeks: SeekHistory::default(),
            last_end: None,
            idle_window: name.sync && io_prio.class() != IoClass::Idle,
            deep: false,
            merge_into: None,
            shared: false,
            to_split: false,
            holders: 0,
            requests_bound: 0,
        }
    }

    /// The request to send next; none if and only if nothing waits.
    #[inline]
    pub(super) fn next(&self) -> Option<RequestId> {
        self.next
    }

    /// Where the next request starts.
    #[inline]
    pub(super) fn next_sector(&self) -> Option<Sector> {
        self.next.map(|_| self.next_sector)
    }

    /// Makes `next` the request to send next; also called when its start has changed.
    #[inline]
    pub(super) fn set_next(&mut self, requests: &Requests, next: Option<RequestId>) {
        self.next = next;
        if let Some(next) = next {
            self.next_sector = requests[next].sector;
        }
    }

    /// Whether it has nothing to send.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.next.is_none()
    }

    /// What traces call it.
    #[inline]
    pub(super) fn name(&self) -> QueueName {
        QueueName { ioc: self.made_by, sync: self.sync }
    }

    #[inline]
    pub(super) fn class(&self) -> IoClass {
        self.io_prio.class()
    }

    /// Whether it wants turns: it is on a service tree.
    #[inline]
    pub(super) fn is_listed(&self) -> bool {
        self.place.is_some()
    }

    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.seeks() > MANY_SEEKS
    }

    /// The kind of work that it is now; the tree that it is on may be that of another.
    #[inline]
    pub(super) fn workload(&self) -> Workload {
        if !self.sync {
            Workload::Async
        } else if self.idle_window {
            Workload::Sync
        } else {
            Workload::SyncNoIdle
        }
    }

    /// The tree that it should be on.
    #[inline]
    pub(super) fn wanted_tree(&self) -> TreeId {
        TreeId::new(self.class(), self.workload())
    }

    /// The tree that it is on.
    #[inline]
    pub(super) fn tree(&self) -> TreeId {
        self.place.as_ref().expect("a listed queue is on a tree").tree
    }

    fn set_io_prio(&mut self, io_prio: IoPrio) {
        self.io_prio = io_prio;
        self.own_io_prio = io_prio;
        if io_prio.class() == IoClass::Idle {
            self.idle_window = false;
        }
    }
}

/// The queues of one device.
#[derive(Debug)]
pub(super) struct Queues(SlotMap<QueueId, Queue>);

impl Queues {
    pub(super) fn new() -> Self {
        Self(SlotMap::with_key())
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

/// The links by which a queue is on a position index.
impl Nodes<QueueId> for Queues {
    #[inline]
    fn links(&self, queue: QueueId) -> &TreeLinks<QueueId> {
        &self.0[queue].near_links
    }
    #[inline]
    fn links_mut(&mut self, queue: QueueId) -> &mut TreeLinks<QueueId> {
        &mut self.0[queue].near_links
    }
}

impl NextSectors<QueueId> for Queues {
    #[inline]
    fn next_sector(&self, queue: QueueId) -> Sector {
        self.0[queue].next_sector().expect("an indexed queue has a next request")
    }
}

/// The queue of a request, from its making to its end.
#[inline]
pub(super) fn queue_of(requests: &Requests, rq: RequestId) -> QueueId {
    requests[rq].queue.into()
}

impl<T: Trace> Cfq<T> {
    /// Gives `ioc` a queue for its requests of that kind: one of its own if they are sync, else
    /// that of the group for its priority.
    pub(super) fn obtain_queue(
        &mut self,
        cx: &Cx<'_>,
        ioc: IocId,
        group: GroupId,
        sync: bool,
    ) -> QueueId {
        let io_prio = self.contexts[ioc].io_prio;
        let slot = &mut self.groups[group].async_queues[io_prio.kind()];
        let queue = match slot {
            Some(shared) if !sync => *shared,
            _ => {
                let name = QueueName { ioc, sync };
                let queue = self.queues.0.insert(Queue::new(cx, group, name, io_prio));
                self.trace.event(cx.now, Event::QueueMade { queue: name, group });
                if !sync {
                    *slot = Some(queue);
                    // The group itself.
                    self.queues[queue].holders = 1;
                }
                queue
            }
        };
        self.queues[queue].holders += 1;
        self.contexts[ioc].queues[usize::from(sync)] = Some(queue);
        queue
    }

    /// Reads the queue's class and level again if those of its user, `ioc`, have changed.
    pub(super) fn refresh_priority(&mut self, cx: &Cx<'_>, queue: QueueId, ioc: IocId) {
        let state = &mut self.queues[queue];
        if std::mem::take(&mut state.prio_dirty) {
            let io_prio = self.contexts[ioc].io_prio;
            state.set_io_prio(io_prio);
            self.trace.event(cx.now, Event::Priority { queue: state.name(), io_prio });
        }
    }

    /// A request of `ioc` is about to be made: one with the priority flag raises its queue for
    /// now, the next without it lets it fall back. The queue is not moved.
    pub(super) fn boost(&mut self, cx: &Cx<'_>, ioc: IocId, sync: bool, has_prio: bool) {
        let Some(queue) = self.existing_queue(ioc, sync) else { return };
        self.refresh_priority(cx, queue, ioc);
        let state = &mut self.queues[queue];
        let io_prio = if has_prio { state.io_prio.boosted() } else { state.own_io_prio };
        if std::mem::replace(&mut state.io_prio, io_prio) != io_prio {
            self.trace.event(cx.now, Event::Priority { queue: state.name(), io_prio });
        }
    }

    /// Whether a request of `ioc` may exceed the bound on requests, lest its queue be waited for
    /// in vain: the first one that is made in a turn while the queue is waited for.
    pub(super) fn take_allowance(&mut self, ioc: IocId, sync: bool) -> bool {
        let Some(queue) = self.existing_queue(ioc, sync) else { return false };
        let turn = &mut self.queues[queue].turn;
        turn.awaiting && !std::mem::replace(&mut turn.allowance_used, true)
    }

    /// One holder less of `queue`, and of those into which it is to merge.
    pub(super) fn drop_chain(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let mut link = Some(queue);
        while let Some(held) = link {
            link = self.queues[held].merge_into;
            self.drop_holder(cx, held);
        }
    }

    /// One holder less of `queue`.
    pub(super) fn drop_holder(&mut self, cx: &Cx<'_>, queue: QueueId) {
        self.queues[queue].holders -= 1;
        self.free_queue_if_unused(cx, queue);
    }

    pub(super) fn free_queue_if_unused(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let Queue { holders, requests_bound, .. } = self.queues[queue];
        if holders > 0 || requests_bound > 0 {
            return;
        }
        if self.active == Some(queue) {
            self.expire(cx, ExpireReason::Gone);
        }
        let name = self.queues[queue].name();
        self.trace.event(cx.now, Event::QueueFreed { queue: name });
        self.queues.0.remove(queue);
    }
}
