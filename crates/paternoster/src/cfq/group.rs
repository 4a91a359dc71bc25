//! What CFQ keeps of a group, from its first request until it is removed.
//!
//! What its share of the device depends on is in `hierarchy/`. In BFQ that is in `bfq/wf2q/`.

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::hierarchy::GroupShare;
use crate::cfq::queue_id::QueueId;
use crate::cfq::select::SavedWorkload;
use crate::cfq::service_tree::ServiceTrees;
use crate::io_context::IoPrio;
use crate::parts::service_speed::Unjudged;
use crate::parts::think_time::ThinkTime;
use crate::scheduler::Cx;
use crate::stats::SliceStats;
use crate::time::Instant;
use crate::trace::{SliceEnd, Trace};

/// What CFQ keeps of a group.
#[derive(Debug)]
pub(super) struct GroupState {
    /// What is on its trees: its busy queues, and in one of the hierarchies child groups. A queue
    /// that becomes busy is counted after it is placed.
    pub(super) entities: u32,
    pub(super) trees: ServiceTrees,
    /// Decaying means of what competes in the classes RT and BE.
    pub(super) average_busy: [u32; 2],
    /// The workload that was served when its last slice ended, if time of that was left.
    pub(super) saved: Option<SavedWorkload>,
    /// Waiting requests of its queues.
    pub(super) queued: u32,
    /// Requests of its queues in flight.
    pub(super) in_flight: u32,
    pub(super) think: ThinkTime,
    /// The queues of asynchronous requests, by async slot: class and level.
    pub(super) async_queues: [Option<QueueId>; IoPrio::ASYNC_SLOTS],
    pub(super) stats: SliceStats,
    pub(super) share: GroupShare,
    /// Its services that the speed of the device was not judged by.
    pub(super) unjudged: Unjudged,
}

impl GroupState {
    fn new(now: Instant, think: ThinkTime) -> Self {
        Self {
            entities: 0,
            trees: ServiceTrees::new(think),
            average_busy: [0; 2],
            saved: None,
            queued: 0,
            in_flight: 0,
            think,
            async_queues: [None; IoPrio::ASYNC_SLOTS],
            stats: SliceStats::default(),
            share: GroupShare::new(now),
            unjudged: Unjudged::default(),
        }
    }
}

impl<T: Trace> Cfq<T> {
    /// Creates the state of a group, and that of its parents before.
    pub(super) fn ensure_group(&mut self, cx: &Cx, group: GroupId) {
        if self.groups.contains_key(group) {
            return;
        }
        if let Some(parent) = cx.groups[group].parent {
            self.ensure_group(cx, parent);
        }
        let think = ThinkTime::counting(self.kernel.unit(), self.now);
        self.groups.add(group, || GroupState::new(self.now, think));
    }

    /// Prepares for the removal of a group, which has no requests and no I/O contexts. I/O contexts
    /// that moved to other groups may still use queues of it and leave them now; an active queue of
    /// the group expires. Linux keeps the group until such contexts make their next request.
    pub(super) fn close_group(&mut self, cx: &Cx, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        if self.active.is_some_and(|queue| self.queues[queue].group == group) {
            self.expire(cx, SliceEnd::Gone);
        }
        self.abandon_queues_of(cx, group);
        for queue in self.groups[group].async_queues.into_iter().flatten() {
            self.drop_user(cx, queue);
        }
        self.groups[group].async_queues = [None; IoPrio::ASYNC_SLOTS];
        self.move_all_to_root(cx, group);
        self.serving.forget(group);
    }
}
