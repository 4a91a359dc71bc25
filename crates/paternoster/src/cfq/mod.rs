//! CFQ: every group gets its share of the device by weight, every I/O context its turn.
//!
//! Requests wait in queues, a sync queue for each I/O context and async ones shared by the
//! contexts of a group. Two choices lead to a request: which group, by weight; then which of its
//! queues, by class and turn. One queue at a time is *active* and sends its requests in sector
//! order until its turn ends; then its group is charged for what was sent.
//!
//! ```text
//!   group tree, by vdisktime      ──▶ service trees of the group      ──▶ the queue's sort list
//!   a:12  b:17  c:40                  RT [ ]  BE [q1 q2 q3]  IDLE [ ]      ●──●──●──●
//!   ▲ least: served                           ▲ first: active                 ▲ next
//!
//!   vdisktime += requests sent in the turn × 4096 / the group's fraction of all weights
//! ```
//!
//! The life of a request: `insert.rs` finds its queue and puts it there; `select.rs` says whose
//! turn it is; `dispatch.rs` sends; `slice.rs` ends the turn and charges; `complete.rs` lets go.
//!
//! **This is the first cut** of Linux v4.20's CFQ (cfq.md), in the shape in which the whole of it
//! grows. What differs until then: a turn is counted in requests (`quantum` of them at level 4)
//! and every charge too; no idling, no preemption, no cooperating queues; a group that comes back
//! keeps its vdisktime (see `group.rs`).

mod complete;
mod dispatch;
mod group;
mod insert;
mod queue;
mod select;
mod service_tree;
mod slice;
mod tunables;

use crate::arena::{GroupId, IocId, RequestId, SideTable};
use crate::cfq::group::{GroupState, GroupTree};
use crate::cfq::queue::{Queue, QueueId};
use crate::cfq::tunables::Tunables;
use crate::group::GroupChange;
use crate::parts::sort_list::SortList;
use crate::request::{Bio, Sector};
use crate::scheduler::{Cx, Dump, InsertAt, MergeRules, Requeue, Scheduler, Side};
use crate::trace::{ExpireReason, MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};
use slotmap::SlotMap;

/// The CFQ scheduler.
#[derive(Debug)]
pub struct Cfq<T> {
    queues: SlotMap<QueueId, Queue>,
    /// The sync queue of each I/O context that has one.
    sync_queues: SideTable<IocId, QueueId>,
    /// The queue of each request, from its making to its end.
    queue_of: SideTable<RequestId, QueueId>,
    groups: SideTable<GroupId, GroupState>,
    group_tree: GroupTree,
    /// The queue whose turn it is.
    active: Option<QueueId>,
    /// Requests that wait in queues.
    queued: u32,
    /// The end of the request last sent: where the head is.
    head: Sector,
    tunables: Tunables,
    trace: T,
}

impl<T: Trace> Cfq<T> {
    /// What may be tuned.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;

    /// Holds nothing, with Linux's defaults; its events go to `trace`.
    pub fn new(trace: T) -> Self {
        Self {
            queues: SlotMap::with_key(),
            sync_queues: SideTable::new(),
            queue_of: SideTable::new(),
            groups: SideTable::new(),
            group_tree: GroupTree::default(),
            active: None,
            queued: 0,
            head: Sector(0),
            tunables: Tunables::default(),
            trace,
        }
    }
}

impl<T: Trace> Scheduler for Cfq<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        "cfq"
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let queue = self.queue_for(cx, rq);
        self.queues[queue].requests_bound += 1;
        self.queue_of.insert(rq, queue);
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        self.insert_request(cx, rq);
    }

    fn complete(&mut self, _cx: &mut Cx<'_>, rq: RequestId) {
        self.complete_request(rq);
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) -> Requeue {
        // Linux offers it again first, past the scheduler, to which nothing changes.
        Requeue::Elevator
    }

    fn exit_io_context(&mut self, cx: &mut Cx<'_>, ioc: IocId) {
        if let Some(queue) = self.sync_queues.remove(ioc) {
            self.disown(cx, queue);
        }
    }

    fn group_changed(&mut self, cx: &mut Cx<'_>, group: GroupId, change: GroupChange) {
        match change {
            // Read anew when the group becomes active again, as in Linux: for one without active
            // child groups that is at every charge; with several busy members it is when all of
            // them have been idle.
            GroupChange::Weight => {}
            GroupChange::Removed => self.remove_group(cx, group),
        }
    }

    fn merge_rules(&self) -> MergeRules {
        MergeRules::Legacy
    }

    fn allow_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let sync_into_async = bio.is_sync() && !cx.requests[rq].is_sync();
        !sync_into_async && self.existing_queue(cx, bio) == Some(self.queue_of[rq])
    }

    fn find_front_merge(&self, cx: &Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let queue = self.existing_queue(cx, bio)?;
        self.queues[queue].sorted.find_start(cx.requests, bio.end())
    }

    fn neighbour(&self, cx: &Cx<'_>, rq: RequestId, side: Side) -> Option<RequestId> {
        match side {
            Side::Before => SortList::before(cx.requests, rq),
            Side::After => SortList::after(cx.requests, rq),
        }
    }

    fn request_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let queue = self.queue_of[rq];
            self.queues[queue].sorted.reposition(cx.requests, rq);
            self.prefer(cx, queue, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        self.absorb(cx, rq, absorbed);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Option<RequestId> {
        let queue = self.select(cx)?;
        Some(self.send_from(cx, queue))
    }

    fn has_work(&self) -> bool {
        self.queued > 0
    }

    fn drain(&mut self, cx: &mut Cx<'_>, out: &mut Vec<RequestId>) {
        self.expire_active(cx, ExpireReason::Drain);
        while let Some(queue) = self.choose(cx) {
            while let Some(rq) = self.queues[queue].next {
                let follower = self.follower(cx, rq);
                self.take_out(cx, queue, rq, follower);
                self.unbind(rq);
                out.push(rq);
            }
            self.expire_active(cx, ExpireReason::Drain);
        }
    }

    fn tunables(&self) -> &'static [TunableInfo] {
        Self::TUNABLES
    }

    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.tunables.get(name)
    }

    fn set_tunable(&mut self, _: &mut Cx<'_>, name: &str, value: i64) -> Result<i64, TunableError> {
        self.tunables.set(name, value)
    }

    fn dump(&self, out: &mut dyn Dump) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        out.number("queues", number(self.queues.len()));
        out.number("busy_groups", number(self.group_tree.len()));
        out.number("queued", self.queued.into());
    }

    fn check(&self, cx: &Cx<'_>) {
        self.check_queues(cx);
        self.check_groups();
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
