//! A queue: the requests of one I/O context, or the asynchronous ones of a group at one priority.
//!
//! As an entity the queue competes by weight (`wf2q/`). This file has the requests that it holds
//! and what BFQ knows of its I/O pattern. A queue is freed when nothing needs it any more: it has
//! no user and no request, is on no tree, is not counted under its weight, and no I/O context
//! keeps it for a merge to come.

use std::ops::{Index, IndexMut};

use crate::arena::{IocId, Linked, List, ListLinks, Parallel, RequestId, Slot};
use crate::bfq::Bfq;
use crate::bfq::injection_limit::InjectionLimit;
use crate::bfq::io_pattern::{Arrival, IoPattern, Seekiness};
use crate::bfq::queue_id::QueueId;
use crate::bfq::raising::Raising;
use crate::bfq::waker::{ByWaker, WakerSearch};
use crate::bfq::weight_raising::SoftRealTime;
use crate::bfq::wf2q::Service;
use crate::parts::waiting::WaitingRequests;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::time::{Instant, Jiffies, Ticks};
use crate::trace::{Event, QueueEvent, QueueName, Trace};

/// One queue.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // flags of Linux's, each with a life of its own
pub(super) struct Queue {
    /// Whether its requests are synchronous. That never changes.
    pub(super) synchrony: Synchrony,
    /// The I/O context after which the trace names it: the one that it was created for, or the
    /// last user after a split.
    pub(super) named_after: IocId,

    /// The requests that wait in it.
    pub(super) waiting: WaitingRequests,
    /// Requests of it that the device holds.
    pub(super) in_flight: u32,

    /// It competes for service: it holds requests, is in service, or was reinserted though empty.
    pub(super) busy: bool,
    /// It is in service and empty, and the device idles for it: the idle timer runs.
    pub(super) idling: bool,
    /// It ran empty within its budget, and may resume with what is left.
    pub(super) resumable: bool,
    /// Its oldest request was looked at in this service.
    pub(super) fifo_checked: bool,
    /// No request was added to it yet.
    pub(super) fresh: bool,
    /// Its budget for the next service, unless its next request is larger; adapted by feedback.
    pub(super) max_budget: SectorCount,
    /// Until when it may have the device, while it is in service.
    service_deadline: Jiffies,
    /// When it last went idle, but see `begin_service`.
    idle_since: Jiffies,

    pub(super) seekiness: Seekiness,
    pub(super) io_pattern: IoPattern,
    pub(super) injection: InjectionLimit,
    raising: Raising,
    pub(super) soft_rt: SoftRealTime,
    /// The queue that wakes it.
    pub(super) waker: Option<QueueId>,
    pub(super) waker_search: WakerSearch,
    /// The queues whose waker it is, the newest first.
    pub(super) woken: List<QueueId, ByWaker>,
    woken_links: ListLinks<QueueId>,

    /// When it last became busy, how much it was served since then, and when that began.
    pub(super) busy_since: Jiffies,
    pub(super) served_since_busy: u64,
    pub(super) first_served: Jiffies,

    pub(super) created_at: Jiffies,
    /// It became busy with many others.
    pub(super) in_large_burst: bool,

    /// Its only user, as far as that is known.
    pub(super) owner: Option<IocId>,
    /// The I/O contexts that use it or are to by a merge; of an async one also its group.
    pub(super) users: u32,
    /// What else keeps it: the I/O contexts whose stable-merge candidate it is, and a move to
    /// another group while that is under way.
    pub(super) keepers: u32,
    /// The queue to which its users are to go, each at its next request.
    pub(super) merge_into: Option<QueueId>,
    /// Another queue was merged into it.
    pub(super) shared: bool,
    /// It is shared and seeky: its users are to get queues of their own again.
    pub(super) split_due: bool,
    /// When it was created for a user that left a shared queue.
    pub(super) split_at: Jiffies,
    /// Where it is on the position index of its group.
    pub(super) position: Option<Slot>,
}

impl Queue {
    pub(super) fn new(cx: &Cx, name: QueueName, max_budget: SectorCount) -> Self {
        let now = cx.jiffies();
        Self {
            synchrony: Synchrony::of(name.sync),
            named_after: name.ioc,
            waiting: WaitingRequests::default(),
            in_flight: 0,
            busy: false,
            idling: false,
            resumable: false,
            fifo_checked: false,
            fresh: name.sync,
            max_budget,
            service_deadline: Jiffies::LONG_AGO,
            idle_since: Jiffies::LONG_AGO,
            seekiness: Seekiness::new(),
            io_pattern: IoPattern::new(cx.now, Synchrony::of(name.sync)),
            injection: InjectionLimit::default(),
            raising: Raising::none(now),
            soft_rt: SoftRealTime::new(now),
            waker: None,
            waker_search: WakerSearch::new(cx.now),
            woken: List::default(),
            woken_links: ListLinks::default(),
            busy_since: now,
            served_since_busy: 0,
            first_served: now,
            created_at: now,
            in_large_burst: false,
            owner: None,
            users: 0,
            keepers: 0,
            merge_into: None,
            shared: false,
            split_due: false,
            split_at: Jiffies::LONG_AGO,
            position: None,
        }
    }

    /// Returns whether nothing waits in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many requests wait in it.
    #[inline]
    pub(super) fn queued(&self) -> u32 {
        self.waiting.count()
    }

    /// The request to dispatch next; none if and only if nothing waits.
    #[inline]
    pub(super) fn next(&self) -> Option<RequestId> {
        self.waiting.next()
    }

    #[inline]
    pub(super) fn raising(&self) -> &Raising {
        &self.raising
    }

    /// Judges whether the queue is I/O-bound, as a request arrives.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn update_io_bound(&mut self, now: Instant) {
        let ends_idleness = self.is_empty() && self.in_flight == 0;
        self.io_pattern.update_io_bound(now, Arrival { is_first: self.fresh, ends_idleness });
    }

    /// Restarts the time for which the queue is raised, or since it was.
    #[inline]
    pub(super) fn restart_raising(&mut self, now: Jiffies) {
        self.raising.restart(now);
    }

    /// If the queue is raised as soft real time, the time that it has waited for service does not
    /// count.
    pub(super) fn prolong_soft_rt(&mut self, now: Jiffies) {
        self.raising.prolong_soft_rt(now, self.idle_since);
    }

    /// The queue is put in service, and may have the device until `deadline`.
    ///
    /// Linux has one field for that and for the time since which the queue is idle. So one that
    /// goes idle without a completion, as its last request merges with one of another queue, is
    /// taken to be idle since the deadline of its last service.
    pub(super) fn begin_service(&mut self, deadline: Jiffies) {
        self.service_deadline = deadline;
        self.idle_since = deadline;
        self.fifo_checked = false;
    }

    /// Returns whether the queue, in service, has had its time.
    #[inline]
    pub(super) fn is_past_deadline(&self, now: Jiffies) -> bool {
        now >= self.service_deadline
    }

    /// The queue is idle from now on: nothing waits in it, and nothing of it is in flight.
    pub(super) fn go_idle(&mut self, now: Jiffies) {
        self.idle_since = now;
    }

    /// Returns whether the queue has been idle for longer than that, and nothing of it is in
    /// flight.
    pub(super) fn was_idle_for(&self, span: Ticks, now: Jiffies) -> bool {
        self.in_flight == 0 && now > self.idle_since + span
    }

    /// The queue was served `service`.
    #[inline]
    pub(super) fn note_served(&mut self, cx: &Cx, service: SectorCount) {
        if self.served_since_busy == 0 {
            self.first_served = cx.jiffies();
        }
        self.served_since_busy += u64::from(service.0);
        self.raising.note_served(service);
    }

    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.seekiness.is_seeky()
    }

    pub(super) fn name(&self) -> QueueName {
        QueueName { ioc: self.named_after, sync: self.synchrony.is_sync() }
    }
}

/// What became of a queue that something stopped keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueFate {
    /// Something else keeps it.
    Kept,
    Freed,
}

/// The queues of one device.
#[derive(Debug)]
pub(super) struct Queues(Parallel<QueueId, Queue>);

impl Queues {
    pub(super) fn new() -> Self {
        Self(Parallel::default())
    }

    pub(super) fn add(&mut self, id: QueueId, make: impl FnMut() -> Queue) {
        self.0.add(id, make);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().count()
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

/// The links by which a queue is on the list of those that another wakes.
impl Linked<QueueId, ByWaker> for Queues {
    fn list_links(&self, queue: QueueId) -> &ListLinks<QueueId> {
        &self.0[queue].woken_links
    }
    fn list_links_mut(&mut self, queue: QueueId) -> &mut ListLinks<QueueId> {
        &mut self.0[queue].woken_links
    }
}

impl<T: Trace> Bfq<T> {
    /// Sets how the queue is raised. The count of busy queues follows at once, the weight when the
    /// queue is next put on its tree. Only this changes the raising factor of a queue.
    pub(super) fn set_raising(&mut self, queue: QueueId, raising: Raising) {
        let state = &mut self.queues[queue];
        let before = std::mem::replace(&mut state.raising, raising);
        if state.busy {
            self.busy.change(&before, &raising);
        }
        self.wf2q.set_raising_factor(queue, raising.factor());
    }

    /// The queue loses a user. If it was busy though empty, it is not busy any more. It is not the
    /// stable-merge candidate of its group any more.
    pub(super) fn drop_user(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        if state.busy && state.is_empty() && self.in_service != Some(queue) {
            self.remove_busy(cx, queue, Service::GoesOn);
        }
        self.drop_last_created(queue);
        self.queues[queue].users -= 1;
        self.free_queue_if_unused(cx, queue);
    }

    /// Each queue behind `queue` in its chain of merges loses a user; `queue` itself does not.
    pub(super) fn drop_users_of_chain(&mut self, cx: &Cx, queue: QueueId) {
        let mut link = self.queues[queue].merge_into;
        while let Some(target) = link {
            link = self.queues[target].merge_into;
            self.queues[target].users -= 1;
            self.free_queue_if_unused(cx, target);
        }
    }

    /// Frees the queue if nothing keeps it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn free_queue_if_unused(&mut self, cx: &Cx, queue: QueueId) -> QueueFate {
        let state = &self.queues[queue];
        if state.users > 0 {
            return QueueFate::Kept;
        }
        if state.keepers > 0 || self.in_service == Some(queue) || self.wf2q.keeps(queue) {
            return QueueFate::Kept;
        }
        debug_assert!(!state.busy && state.position.is_none(), "an unused queue is not scheduled");
        self.trace.event(cx.now, Event::Queue(QueueEvent::QueueFreed { queue: state.name() }));
        self.burst.remove(queue);
        self.drop_last_created(queue);
        self.queues.stop_waking(queue);
        self.last_completion.clear_queue(queue);
        self.queues.0.remove(queue);
        self.wf2q.remove_queue(queue);
        QueueFate::Freed
    }
}
