//! CFQ: every group gets its share of the device by weight, every I/O context its turn.
//!
//! Requests wait in queues, a sync queue for each I/O context and async ones shared by the
//! contexts of a group. Three choices lead to a request: which group, by weight; which of its
//! queues, by class, kind of work and turn; and which of its requests, by sector. One queue at a
//! time is *active* and sends its requests until its slice ends; then its group is charged.
//!
//! ```text
//!   group tree, by vdisktime    ──▶ service trees of the group        ──▶ the queue's sort list
//!   a:12  b:17  c:40                 RT   [ ]     [ ]     [ ]             ●──●──●──●
//!   ▲ least: served                  BE   [q4]    [q1 q9] [q3]                ▲ next
//!                                    IDLE [q7]       ▲ first: active
//!
//!   vdisktime += time (or requests) of the turn × 2²⁴ / the group's fraction (of 4096)
//! ```
//!
//! What makes it CFQ is what it does *not* send: the device is kept free for a moment where the
//! next request of the active queue is worth more than what others have waiting (`idle.rs`).
//!
//! The life of a request: `context.rs` finds its queue (`queue.rs`) as it is made; `insert.rs`
//! puts it there and learns from it; `preempt.rs` says whether it may wait; `select.rs` says whose
//! turn it is, of the queues on the trees of `service_tree.rs`; `dispatch.rs` sends it, in the
//! order of `order.rs`; `complete.rs` hears of its end, and `hw_queueing.rs` with it; `slice.rs`
//! begins and ends turns and charges `group.rs`. `cooperate.rs` merges the queues of tasks that
//! work on the same part of the device. `check.rs` asserts what always holds; `dump.rs` tells what
//! is inside.
//!
//! This is CFQ as of Linux v4.20, decision for decision, unless `charge_whole_turn` is set.
//! Where Linux is odd, the oddity is a named step. What it asks of its driver, to ask again soon (a
//! *kick*), is nothing here: the elevator is asked after every event.

mod check;
mod complete;
mod context;
mod cooperate;
mod dispatch;
mod drain;
mod dump;
mod group;
mod hw_queueing;
mod idle;
mod insert;
mod order;
mod preempt;
mod queue;
mod select;
mod service_tree;
mod slice;
mod tunables;

use crate::arena::{GroupId, IocId, RequestId, SideTable};
use crate::cfq::context::ContextState;
use crate::cfq::cooperate::Positions;
use crate::cfq::group::{GroupState, GroupTree};
use crate::cfq::hw_queueing::HwQueueing;
use crate::cfq::idle::IdleTimer;
use crate::cfq::queue::{QueueId, Queues, queue_of};
use crate::cfq::select::Serving;
use crate::cfq::tunables::Tunables;
use crate::dump::Dump;
use crate::group::GroupChange;
use crate::parts::pace::Pace;
use crate::parts::sort_list::SortList;
use crate::request::{Bio, BioFlags, Sector};
use crate::scheduler::{Cx, InsertAt, MergeRules, Requeue, Scheduler, Side};
use crate::stats::TurnStats;
use crate::time::{Instant, Nanos};
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};

/// The CFQ scheduler.
#[derive(Debug)]
pub struct Cfq<T> {
    contexts: SideTable<IocId, ContextState>,
    queues: Queues,
    /// Queues by where their next request is.
    positions: Positions,
    groups: SideTable<GroupId, GroupState>,
    group_tree: GroupTree,
    /// The group and the kind of work that is served.
    serving: Serving,
    /// Requests that are sent in turns without waiting.
    pace: Pace,
    /// The queue whose turn it is.
    active: Option<QueueId>,
    /// When the last turn ended, if a request ended it that is to be sent next: no turn goes on
    /// until the device has room.
    preempted_at: Option<Instant>,
    /// Whose request was the first that was sent since the last turn ended.
    active_context: Option<IocId>,
    /// The device is kept free for the active queue.
    idle_timer: Option<IdleTimer>,
    /// Queues that want turns.
    busy: u32,
    /// Sync queues among them.
    busy_sync: u32,
    /// Requests that wait in queues.
    queued: u32,
    /// Requests that were sent and have not completed, of async and of sync queues.
    sent: [u32; 2],
    /// Requests that were sent and neither completed nor were handed back.
    in_driver: u32,
    /// The end of the request that the device took last: where the head is.
    head: Sector,
    /// When a sync request last completed long after it was made.
    last_delayed_sync: Instant,
    hw_queueing: HwQueueing,
    tunables: Tunables,
    trace: T,
}

/// How long before its attachment a sync request is taken to have been late.
const LONG_AGO: Nanos = Nanos::from_millis(1000);

impl<T: Trace> Cfq<T> {
    /// What may be tuned.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;

    /// Holds nothing, with Linux's defaults; its events go to `trace`.
    pub fn new(trace: T) -> Self {
        Self {
            contexts: SideTable::new(),
            queues: Queues::new(),
            positions: Positions::default(),
            groups: SideTable::new(),
            group_tree: GroupTree::default(),
            serving: Serving::new(Instant::START),
            pace: Pace::default(),
            active: None,
            preempted_at: None,
            active_context: None,
            idle_timer: None,
            busy: 0,
            busy_sync: 0,
            queued: 0,
            sent: [0; 2],
            in_driver: 0,
            head: Sector(0),
            last_delayed_sync: Instant::from_nanos(0),
            hw_queueing: HwQueueing::default(),
            tunables: Tunables::with_defaults(),
            trace,
        }
    }
}

impl<T: Trace> Scheduler for Cfq<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        "cfq"
    }

    fn attach(&mut self, cx: &mut Cx<'_>) {
        self.ensure_group(cx, cx.groups.root());
        self.hw_queueing = HwQueueing::new(cx.device.queues);
        self.last_delayed_sync = cx.now.saturating_sub(LONG_AGO);
        if !cx.device.rotational {
            self.tunables.attach_to_non_rotational();
        }
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.bind_request(cx, rq);
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        self.insert_request(cx, rq);
    }

    fn complete(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.complete_request(cx, rq);
    }

    fn requeue(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) -> Requeue {
        // Linux offers it again first, past the scheduler.
        self.deactivate_request();
        Requeue::Elevator
    }

    fn reactivate(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.activate_request(cx.requests[rq].end());
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.idle_timer.is_some_and(|timer| timer.at <= cx.now) {
            self.idle_timer_fired(cx);
        }
    }

    fn exit_io_context(&mut self, cx: &mut Cx<'_>, ioc: IocId) {
        self.exit_context(cx, ioc);
    }

    fn group_changed(&mut self, cx: &mut Cx<'_>, group: GroupId, change: GroupChange) {
        match change {
            // Weights are read as the group is put on the tree.
            GroupChange::Weight => {}
            GroupChange::Closing => self.close_group(cx, group),
            GroupChange::Removed => {
                self.groups.remove(group);
            }
        }
    }

    fn merge_rules(&self) -> MergeRules {
        MergeRules::Legacy
    }

    fn allow_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let sync_into_async = bio.is_sync() && !cx.requests[rq].is_sync();
        !sync_into_async
            && self.existing_queue(bio.ioc, bio.is_sync()) == Some(queue_of(cx.requests, rq))
    }

    fn find_front_merge(&self, cx: &Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let queue = self.existing_queue(bio.ioc, bio.is_sync())?;
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
            let queue = queue_of(cx.requests, rq);
            self.queues[queue].sorted.reposition(cx.requests, rq);
            self.prefer(cx, queue, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        self.absorb(cx, rq, absorbed);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Option<RequestId> {
        self.poll(cx)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.idle_timer.map(|timer| timer.at)
    }

    fn has_work(&self) -> bool {
        self.busy > 0
    }

    fn must_admit(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> bool {
        self.boost(cx, bio.ioc, bio.is_sync(), bio.flags.contains(BioFlags::PRIO));
        self.take_allowance(bio.ioc, bio.is_sync())
    }

    fn drain(&mut self, cx: &mut Cx<'_>, out: &mut Vec<RequestId>) {
        self.drain_queues(cx, out);
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

    fn turn_stats(&self, group: GroupId) -> Option<&TurnStats> {
        self.groups.get(group).map(|state| &state.stats)
    }

    fn dump(&self, out: &mut dyn Dump) {
        self.dump_all(out);
    }

    fn check(&self, cx: &Cx<'_>) {
        self.check_queues(cx);
        self.check_groups(cx);
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
