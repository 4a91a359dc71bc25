//! A queue: the requests of one I/O context, or the asynchronous ones of a group at one priority.
//!
//! As an entity it competes by weight (`wf2q/`); what is here is what it holds and what is known of
//! its habits. It is freed with the last of: its users, its requests, its place on a tree, its
//! count among the active queues, and those who remember it for a merge to come.

use std::ops::{Index, IndexMut};

use crate::arena::{IocId, Linked, List, ListLinks, RequestId, SideTable};
use crate::bfq::Bfq;
use crate::bfq::habits::Habits;
use crate::bfq::inject::InjectionLimit;
use crate::bfq::waker::WakerSearch;
use crate::bfq::weight_raising::{Raising, SoftRealTime};
use crate::bfq::wf2q::{EntityId, Turn};
use crate::parts::fifo::Fifo;
use crate::parts::position_index::NextSectors;
use crate::parts::red_black::{Nodes, TreeLinks};
use crate::parts::seek_history::SeekHistory;
use crate::parts::sort_list::SortList;
use crate::request::{Requests, Sector, SectorCount};
use crate::scheduler::Cx;
use crate::time::Jiffies;
use crate::trace::{Event, QueueName, Trace};

/// A queue goes by the name of its entity.
pub(super) type QueueId = EntityId;

/// More seeks than this among the last 32 requests make a queue seeky.
const MANY_SEEKS: u32 = 19;

/// One queue.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
pub(super) struct Queue {
    /// Whether it holds what somebody waits for, for life.
    pub(super) sync: bool,
    /// Who made it, or is its last user since its users parted: for traces.
    pub(super) made_by: IocId,

    pub(super) sorted: SortList,
    pub(super) fifo: Fifo,
    /// The request to send next; none if and only if nothing waits.
    next: Option<RequestId>,
    /// Where that starts, kept beside it for those who look for a queue by position.
    next_sector: Sector,
    /// Requests that wait in it.
    pub(super) queued: u32,
    /// Requests that were sent and have not completed.
    pub(super) in_flight: u32,

    /// It is scheduled: it holds requests, is in service, or was put anew though empty.
    pub(super) busy: bool,
    /// In service and empty, it is waited for: the idle timer runs for it.
    pub(super) waiting: bool,
    /// It ran empty within its budget, and may go on with what is left.
    pub(super) resumable: bool,
    /// Its oldest request was looked at in this turn.
    pub(super) fifo_checked: bool,
    /// No request was added to it yet.
    pub(super) fresh: bool,
    /// What the feedback grants it for its next turn.
    pub(super) granted: SectorCount,
    /// While it is in service, until when it may have the device; afterwards, when it went idle.
    pub(super) turn_end: Jiffies,

    pub(super) seeks: SeekHistory,
    /// Where its last request ended.
    pub(super) last_end: Sector,
    pub(super) habits: Habits,
    pub(super) injection: InjectionLimit,
    pub(super) raising: Raising,
    pub(super) soft_rt: SoftRealTime,
    pub(super) waker: WakerSearch,
    /// The queues whose waker it is, the newest first.
    pub(super) woken: List<QueueId, ByWaker>,
    woken_links: ListLinks<QueueId>,

    /// When it last became busy, and what was served of it since then, and when the first of that.
    pub(super) busy_since: Jiffies,
    pub(super) served_since_busy: u64,
    pub(super) first_served: Jiffies,

    pub(super) made_at: Jiffies,
    /// It became busy with many others.
    pub(super) in_large_burst: bool,
    /// It is on the list of the burst that goes on.
    pub(super) in_burst: bool,

    /// Its only user, as far as that is known.
    pub(super) owner: Option<IocId>,
    /// The I/O contexts that use it or are to by a merge; of an async one also its group.
    pub(super) users: u32,
    /// Who else keeps it: the I/O contexts that are to merge their queues with it if both keep
    /// running, and a move to another group while it goes on.
    pub(super) holders: u32,
    /// The queue to which its users are to go, each at its next request.
    pub(super) merge_into: Option<QueueId>,
    /// Users of another queue have come.
    pub(super) shared: bool,
    /// It is shared and seeky: its users are to part.
    pub(super) split_due: bool,
    /// When it was made for a user that left a shared queue.
    pub(super) split_at: Jiffies,
    /// On the position index of its group.
    pub(super) near: bool,
    near_links: TreeLinks<QueueId>,
}

impl Queue {
    pub(super) fn new(cx: &Cx<'_>, name: QueueName, granted: SectorCount) -> Self {
        let now = cx.jiffies();
        Self {
            sync: name.sync,
            made_by: name.ioc,
            sorted: SortList::default(),
            fifo: Fifo::default(),
            next: None,
            next_sector: Sector(0),
            queued: 0,
            in_flight: 0,
            busy: false,
            waiting: false,
            resumable: false,
            fifo_checked: false,
            fresh: name.sync,
            granted,
            turn_end: Jiffies::LONG_AGO,
            seeks: SeekHistory::ONE_SEEK,
            last_end: Sector(0),
            habits: Habits::new(cx.now, name.sync),
            injection: InjectionLimit::default(),
            raising: Raising::new(now),
            soft_rt: SoftRealTime::new(now),
            waker: WakerSearch::new(cx.now),
            woken: List::default(),
            woken_links: ListLinks::default(),
            busy_since: now,
            served_since_busy: 0,
            first_served: now,
            made_at: now,
            in_large_burst: false,
            in_burst: false,
            owner: None,
            users: 0,
            holders: 0,
            merge_into: None,
            shared: false,
            split_due: false,
            split_at: Jiffies::LONG_AGO,
            near: false,
            near_links: TreeLinks::default(),
        }
    }

    /// The request to send next; none if and only if nothing waits.
    #[inline]
    pub(super) fn next(&self) -> Option<RequestId> {
        self.next
    }

    /// Makes `next` the request to send next; also called when its start has changed.
    #[inline]
    pub(super) fn set_next(&mut self, requests: &Requests, next: Option<RequestId>) {
        self.next = next;
        if let Some(next) = next {
            self.next_sector = requests[next].sector;
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.seeks() > MANY_SEEKS
    }

    pub(super) fn name(&self) -> QueueName {
        QueueName { ioc: self.made_by, sync: self.sync }
    }
}

/// The queues of one device.
#[derive(Debug)]
pub(super) struct Queues(SideTable<QueueId, Queue>);

impl Queues {
    pub(super) fn new() -> Self {
        Self(SideTable::new())
    }

    pub(super) fn insert(&mut self, id: QueueId, queue: Queue) {
        self.0.insert(id, queue);
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
        debug_assert!(self.0[queue].next.is_some(), "an indexed queue has a next request");
        self.0[queue].next_sector
    }
}

/// The links by which a queue is on the list of those that another wakes.
#[derive(Debug)]
pub(super) enum ByWaker {}

impl Linked<QueueId, ByWaker> for Queues {
    fn list_links(&self, queue: QueueId) -> &ListLinks<QueueId> {
        &self.0[queue].woken_links
    }
    fn list_links_mut(&mut self, queue: QueueId) -> &mut ListLinks<QueueId> {
        &mut self.0[queue].woken_links
    }
}

/// The queue of a request, from its making to its end.
#[inline]
pub(super) fn queue_of(requests: &Requests, rq: RequestId) -> QueueId {
    requests[rq].queue.into()
}

impl<T: Trace> Bfq<T> {
    /// One user less of a queue. If it was kept scheduled though empty, it is so no longer; and
    /// it is nobody's elder brother any more.
    pub(super) fn drop_user(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        if state.busy && state.sorted.is_empty() && self.in_service != Some(queue) {
            self.remove_busy(cx, queue, Turn::GoesOn);
        }
        self.forget_last_made(queue);
        self.queues[queue].users -= 1;
        self.free_queue_if_unused(cx, queue);
    }

    /// One user less of each queue into which `queue` is to merge.
    pub(super) fn drop_chain(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let mut link = self.queues[queue].merge_into;
        while let Some(held) = link {
            link = self.queues[held].merge_into;
            self.queues[held].users -= 1;
            self.free_queue_if_unused(cx, held);
        }
    }

    /// Frees the queues that nobody holds since they were forgotten.
    #[inline]
    pub(super) fn free_forgotten(&mut self, cx: &Cx<'_>) {
        while let Some(queue) = self.wf2q.poll_forgotten() {
            self.free_queue_if_unused(cx, queue);
        }
    }

    /// Frees the queue if nobody holds it. Whether it is gone.
    #[inline]
    pub(super) fn free_queue_if_unused(&mut self, cx: &Cx<'_>, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        if state.users > 0 {
            return false;
        }
        let entity = &self.wf2q.entities[queue];
        let held = state.holders > 0
            || entity.requests > 0
            || entity.known
            || self.in_service == Some(queue)
            || self.wf2q.is_counted(queue);
        if held {
            return false;
        }
        debug_assert!(!state.busy && !state.near, "an unused queue is not scheduled");
        self.trace.event(cx.now, Event::QueueFreed { queue: state.name() });
        self.burst.forget(queue);
        self.forget_last_made(queue);
        self.stop_waking(queue);
        if self.last_completed == Some(queue) {
            self.last_completed = None;
        }
        self.queues.0.remove(queue);
        self.wf2q.remove_queue(queue);
        true
    }
}
