//! BFQ: every queue gets its share of the device in *sectors served*, and what somebody waits for
//! in person goes before the rest.
//!
//! Requests wait in queues, a sync queue for each I/O context and async ones shared by the contexts
//! of a group. One queue at a time is *in service*, until it has used up its *budget*, its time, or
//! its requests. Then the queue is due that finishes first, by B-WF2Q+: its weight says how fast
//! its virtual time runs, its budget how far.
//!
//! ```text
//!   servers of the groups, by finish      ──▶ the queue in service    ──▶ its sort list
//!   root  RT [ ]  BE [a  b  q1]  IDLE [ ]     budget  ▓▓▓▓▓▓░░░░          ●──●──●──●
//!   a     RT [ ]  BE [q2  q3]    IDLE [ ]     service ▓▓▓▓▓▓                  ▲ next
//!
//!   vtime += sectors × 2²² / Σ weights       finish = start + budget × 2²² / weight
//! ```
//!
//! What makes it BFQ is what it learns. Budgets follow from how their queues use them, and the
//! greatest from the device's peak rate. The device is kept free for a queue that thinks briefly
//! (`idle.rs`), and meanwhile requests of others are injected as far as that does no harm
//! (`inject.rs`, `waker.rs`). Queues that begin to be used, or that arrive regularly at a modest
//! rate, have their weight raised (`weight_raising.rs`), unless many come at once (`burst.rs`).
//!
//! The life of a request: `context.rs` finds its queue (`queue.rs`) as it is made; `insert.rs` puts
//! it there, `habits.rs` learns from it; `select.rs` says whose turn it is, by `wf2q/`;
//! `dispatch.rs` sends it, in the order of `order.rs`; `complete.rs` hears of its end;
//! `expire.rs` ends the turn, charges for it, and grants the next budget (`budget.rs`,
//! `peak_rate.rs`). Whether shares need the device kept free, or come from serving whatever is
//! there, `symmetry.rs` knows, and what the device does by itself `hw_queueing.rs`. Queues that
//! work on the same part of the device merge (`cooperate.rs`, `stable_merge.rs`) and part again
//! (`split.rs`), on devices where that pays. What a group keeps and how queues go from one to
//! another is in `group.rs`; `spans.rs` and `tunables.rs` have the numbers. What keeping the
//! device free costs the others is charged by `waiting.rs`, if that is tuned so: Linux does
//! not. `depth.rs` bounds the requests that may exist, `drain.rs` gives up those that wait.
//! `check.rs` asserts what always holds; `dump.rs` tells what is inside.
//!
//! This is BFQ as of Linux 6.1, decision for decision, unless one of our own tunables is set.
//! Where Linux is odd, the oddity is a named step. What it asks of its driver, to ask again soon (a
//! *kick*), is nothing here: the elevator is asked after every event.

mod budget;
mod burst;
mod check;
mod complete;
mod context;
mod cooperate;
mod depth;
mod dispatch;
mod drain;
mod dump;
mod expire;
mod group;
mod habits;
mod hw_queueing;
mod idle;
mod inject;
mod insert;
mod order;
mod peak_rate;
mod queue;
mod select;
mod spans;
mod split;
mod stable_merge;
mod symmetry;
mod tunables;
mod waiting;
mod waker;
mod weight_raising;
mod wf2q;

use crate::arena::{GroupId, IocId, RequestId, SideTable};
use crate::bfq::budget::Budgets;
use crate::bfq::burst::Burst;
use crate::bfq::context::ContextState;
use crate::bfq::group::GroupState;
use crate::bfq::hw_queueing::HwQueueing;
use crate::bfq::idle::Idling;
use crate::bfq::inject::Measuring;
use crate::bfq::peak_rate::PeakRate;
use crate::bfq::queue::{QueueId, Queues};
use crate::bfq::spans::Spans;
use crate::bfq::symmetry::Symmetry;
use crate::bfq::tunables::Tunables;
use crate::bfq::waiting::Waiting;
use crate::bfq::wf2q::Wf2q;
use crate::dump::Dump;
use crate::group::GroupChange;
use crate::parts::sort_list::SortList;
use crate::request::{Bio, Sector};
use crate::scheduler::{Cx, Device, InsertAt, Requeue, Scheduler, Side};
use crate::time::{Hz, Instant};
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};

/// The BFQ scheduler.
#[derive(Debug)]
pub struct Bfq<T> {
    contexts: SideTable<IocId, ContextState>,
    queues: Queues,
    groups: SideTable<GroupId, GroupState>,
    /// Who is due.
    wf2q: Wf2q,
    symmetry: Symmetry,
    /// The queue whose turn it is.
    in_service: Option<QueueId>,
    /// When its turn began.
    turn_began: Instant,
    /// Where the last request of its turn ended.
    turn_head: Sector,
    idling: Idling,
    /// What it costs to keep the device free.
    waiting: Waiting,
    measuring: Measuring,
    budgets: Budgets,
    peak_rate: PeakRate,
    /// What the reference device serves while it starts a large application, in its units of rate
    /// times ticks.
    reference_product: u64,
    hw_queueing: HwQueueing,
    burst: Burst,
    /// Requests that wait in queues.
    queued: u32,
    /// Requests that were sent and neither completed nor were handed back.
    in_driver: u32,
    /// When a request last completed.
    last_completion: Instant,
    /// Whose that was; none if several share the queue.
    last_completed: Option<QueueId>,
    spans: Spans,
    tunables: Tunables,
    trace: T,
}

impl<T: Trace> Bfq<T> {
    /// What may be tuned.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;

    /// Holds nothing, with Linux's defaults; its events go to `trace`. What depends on the device
    /// is set as it is attached.
    pub fn new(trace: T) -> Self {
        let hz = Hz::MILLI;
        Self {
            contexts: SideTable::new(),
            queues: Queues::new(),
            groups: SideTable::new(),
            wf2q: Wf2q::new(),
            symmetry: Symmetry::default(),
            in_service: None,
            turn_began: Instant::START,
            turn_head: Sector(0),
            idling: Idling { timer: None, since: Instant::from_nanos(0) },
            waiting: Waiting::default(),
            measuring: Measuring::new(Instant::START),
            budgets: Budgets::new(hz),
            peak_rate: PeakRate::new(true),
            reference_product: 0,
            hw_queueing: HwQueueing::new(&Device::disk(1), false),
            burst: Burst::new(),
            queued: 0,
            in_driver: 0,
            last_completion: Instant::from_nanos(0),
            last_completed: None,
            spans: Spans::new(hz),
            tunables: Tunables::with_defaults(),
            trace,
        }
    }

    /// Has queues merge for the position of their requests on any device, to see what that costs
    /// where Linux has turned it off. For tests.
    #[doc(hidden)]
    pub fn force_queue_merging(&mut self) {
        self.hw_queueing.forced = true;
    }

    fn attach_to(&mut self, cx: &Cx<'_>) {
        assert!(self.groups.is_empty(), "a scheduler is attached once, and new");
        let Device { hz, rotational, .. } = *cx.device;
        self.spans = Spans::new(hz);
        self.budgets = Budgets::new(hz);
        self.tunables.set_timeout(hz.millis(self.budgets.timeout));
        self.peak_rate = PeakRate::new(rotational);
        self.reference_product = Self::reference_product_of(cx, &self.spans);
        self.hw_queueing = HwQueueing::new(cx.device, self.hw_queueing.forced);
        self.ensure_group(cx, cx.groups.root());
    }
}

impl<T: Trace> Scheduler for Bfq<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        "bfq"
    }

    fn attach(&mut self, cx: &mut Cx<'_>) {
        self.attach_to(cx);
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

    fn requeue(&mut self, cx: &mut Cx<'_>, rq: RequestId) -> Requeue {
        // To BFQ it is done, and comes anew; Linux offers it first, past all queues.
        self.complete_request(cx, rq);
        self.bind_request(cx, rq);
        Requeue::Elevator
    }

    fn reactivate(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.send_again(cx, rq);
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.idling.timer.is_some_and(|(at, _)| at <= cx.now) {
            self.idle_timer_fired(cx);
        }
    }

    fn exit_io_context(&mut self, cx: &mut Cx<'_>, ioc: IocId) {
        self.exit_context(cx, ioc);
    }

    fn group_changed(&mut self, cx: &mut Cx<'_>, group: GroupId, change: GroupChange) {
        match change {
            GroupChange::Weight => self.follow_weight(cx, group),
            GroupChange::Closing => {}
            GroupChange::Removed => self.remove_group(cx, group),
        }
    }

    fn offer(&mut self, cx: &mut Cx<'_>, bio: &Bio) {
        self.follow_group(cx, bio.ioc, cx.contexts[bio.ioc].group);
    }

    fn allow_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        self.may_take(cx, rq, bio)
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
            self.grown_at_front(cx, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        self.absorb(cx, rq, absorbed);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Option<RequestId> {
        self.poll(cx)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.idling.timer.map(|(at, _)| at)
    }

    fn has_work(&self) -> bool {
        self.queued > 0
    }

    fn depth_limit(&self, _cx: &Cx<'_>, bio: &Bio, nr_requests: u32) -> Option<u32> {
        self.depth_of(bio, nr_requests)
    }

    fn holds_share(&self, _cx: &Cx<'_>, bio: &Bio, nr_requests: u32) -> bool {
        self.is_share_used(bio, nr_requests)
    }

    fn drain(&mut self, cx: &mut Cx<'_>, out: &mut Vec<RequestId>) {
        self.drain_queues(cx, out);
    }

    fn tunables(&self) -> &'static [TunableInfo] {
        Tunables::TABLE
    }

    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.tunables.get(name)
    }

    fn set_tunable(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
        value: i64,
    ) -> Result<i64, TunableError> {
        self.tune(cx, name, value)
    }

    fn dump(&self, out: &mut dyn Dump) {
        self.dump_all(out);
    }

    fn check(&self, cx: &Cx<'_>) {
        self.check_all(cx);
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
