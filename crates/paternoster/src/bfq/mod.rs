//! BFQ: every queue gets its share of the device in *sectors served*, and queues that a person
//! waits for are served first.
//!
//! Requests wait in queues: a sync queue for each I/O context, and async queues that the contexts
//! of a group share. One queue at a time is *in service*, until it has used up its *budget*, its
//! time or its requests. B-WF2Q+ then chooses the queue that finishes first in virtual time: its
//! weight says how fast its virtual time runs, its budget how far.
//!
//! ```text
//!   servers of the groups, by finish      ──▶ the queue in service    ──▶ its sort list
//!   root  RT [ ]  BE [a  b  q1]  IDLE [ ]     budget  ▓▓▓▓▓▓░░░░          ●──●──●──●
//!   a     RT [ ]  BE [q2  q3]    IDLE [ ]     service ▓▓▓▓▓▓                  ▲ next
//!
//!   vtime += sectors × 2²² / Σ weights       finish = start + budget × 2²² / weight
//! ```
//!
//! The life of a request:
//!
//! 1. `context.rs` binds it to its queue (`queue.rs`, named by `queue_id.rs`) when it is created.
//!    The async queues of a group are in `group.rs`, and `depth.rs` bounds how many requests may
//!    exist.
//! 2. `insert.rs` adds it to the queue, and `io_pattern.rs` learns from it how the users of the
//!    queue work. A queue that becomes busy competes from then on (`schedule.rs`), and may preempt
//!    the queue in service (`preempt.rs`).
//! 3. `select.rs` chooses the queue to dispatch from. `wf2q/` says which queue is served next.
//! 4. `dispatch.rs` dispatches the request, in the order of `order.rs`.
//! 5. `complete.rs` takes the completion. If the queue is empty now, the device may idle for its
//!    next request (`idle.rs`).
//! 6. `expire.rs` ends the service, charges the queue, and sets its next budget (`budget.rs`,
//!    within the bounds of `budget_bounds.rs`).
//!
//! What BFQ learns and does besides:
//!
//! - *The device.* `peak_rate.rs` measures how fast it is, from which the greatest budget follows;
//!   `hw_queueing.rs` finds out whether it queues requests itself.
//! - *Idling* holds the shares of queues. `symmetry.rs` says when shares hold without it, by the
//!   counts of `busy_queues.rs`. While the device idles for a queue, `inject.rs` dispatches
//!   requests of others, as many as do no harm (`injection_limit.rs`) or as the queue may depend on
//!   (`waker.rs`, `woken.rs`). `idling_charge.rs` charges the queue for the idle time, if that is
//!   tuned so; Linux does not.
//! - *Weight raising.* `weight_raising.rs` raises the weights of queues that begin to be used, or
//!   that ask for little at a steady pace; `raising.rs` is how one queue is raised. Queues that
//!   come in a large burst are not raised (`burst.rs`).
//! - *Merging.* Queues that work on the same part of the device merge (`cooperate.rs`), and so do
//!   queues that were created together (`stable_merge.rs`). `split.rs` gives the users of a seeky
//!   shared queue their own queues back.
//!
//! `tunables.rs` and `time_constants.rs` have the numbers, `drain.rs` takes out all requests when
//! the scheduler is replaced, `dump.rs` reports the state, and `check.rs` asserts the invariants.
//!
//! This is BFQ as of Linux 6.1, decision for decision, unless one of our own tunables is set.
//! Where Linux is odd, the oddity is a named step. Linux's BFQ sometimes asks its driver to ask
//! again soon (a *kick*). Here that is not needed: the driver asks after every event.

mod budget;
mod budget_bounds;
mod burst;
mod busy_queues;
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
mod hw_queueing;
mod idle;
mod idling_charge;
mod inject;
mod injection_limit;
mod insert;
mod io_pattern;
mod order;
mod peak_rate;
mod preempt;
mod queue;
mod queue_id;
mod raising;
mod schedule;
mod select;
mod split;
mod stable_merge;
mod symmetry;
mod time_constants;
mod tunables;
mod waker;
mod weight_raising;
mod wf2q;
mod woken;

use crate::arena::{GroupId, IocId, Parallel, RequestId};
use crate::bfq::budget_bounds::BudgetBounds;
use crate::bfq::burst::Burst;
use crate::bfq::busy_queues::BusyQueues;
use crate::bfq::context::ContextState;
use crate::bfq::group::GroupState;
use crate::bfq::hw_queueing::{HwQueueing, QueueMerging};
use crate::bfq::idle::Idling;
use crate::bfq::idling_charge::IdlingCharge;
use crate::bfq::injection_limit::ServiceTimeProbe;
use crate::bfq::peak_rate::PeakRate;
use crate::bfq::queue::Queues;
use crate::bfq::queue_id::QueueId;
use crate::bfq::time_constants::TimeConstants;
use crate::bfq::tunables::Tunables;
use crate::bfq::waker::LastCompletion;
use crate::bfq::wf2q::Wf2q;
use crate::device::Device;
use crate::dump::Dump;
use crate::group::GroupEvent;
use crate::request::{Bio, Sector};
use crate::scheduler::{Cx, Existing, InsertAt, Requeue, Scheduler};
use crate::time::{Hz, Instant};
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};

/// Its name in sysfs.
pub(crate) const NAME: &str = "bfq";

/// The BFQ scheduler.
#[derive(Debug)]
pub struct Bfq<T> {
    contexts: Parallel<IocId, ContextState>,
    queues: Queues,
    groups: Parallel<GroupId, GroupState>,
    /// Chooses the queue that is served next.
    wf2q: Wf2q,
    busy: BusyQueues,
    /// The queue that has the device now.
    in_service: Option<QueueId>,
    /// When its service began.
    service_began: Instant,
    /// Where the last request of this service ended.
    service_head: Sector,
    /// Where the last request that was dispatched ended.
    head: Sector,
    idling: Idling,
    idling_charge: IdlingCharge,
    service_time_probe: ServiceTimeProbe,
    budgets: BudgetBounds,
    peak_rate: PeakRate,
    /// What the reference device serves while it starts a large application, in its units of rate
    /// times ticks.
    reference_product: u64,
    hw_queueing: HwQueueing,
    burst: Burst,
    /// Requests that wait in queues.
    queued: u32,
    /// Requests in flight: dispatched, and neither completed nor requeued.
    in_driver: u32,
    last_completion: LastCompletion,
    finds_wakers: bool,
    times: TimeConstants,
    tunables: Tunables,
    trace: T,
}

impl<T: Trace> Bfq<T> {
    /// What may be tuned.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;

    /// Creates a scheduler without requests, with Linux's defaults. It emits its events to `trace`.
    /// What depends on the device is set when it is attached.
    pub fn new(trace: T) -> Self {
        let hz = Hz::MILLI;
        Self {
            contexts: Parallel::default(),
            queues: Queues::new(),
            groups: Parallel::default(),
            wf2q: Wf2q::new(),
            busy: BusyQueues::default(),
            in_service: None,
            service_began: Instant::START,
            service_head: Sector(0),
            head: Sector(0),
            idling: Idling { timer: None, since: Instant::from_nanos(0) },
            idling_charge: IdlingCharge::default(),
            service_time_probe: ServiceTimeProbe::new(Instant::START),
            budgets: BudgetBounds::new(hz),
            peak_rate: PeakRate::new(true),
            reference_product: 0,
            hw_queueing: HwQueueing::new(&Device::disk(1), QueueMerging::default()),
            burst: Burst::new(),
            queued: 0,
            in_driver: 0,
            last_completion: LastCompletion::never(),
            finds_wakers: true,
            times: TimeConstants::new(hz),
            tunables: Tunables::with_defaults(),
            trace,
        }
    }

    /// The same, which finds no wakers: as BFQ was before Linux 5.3, to see what they are for.
    #[must_use]
    pub fn without_wakers(mut self) -> Self {
        self.finds_wakers = false;
        self
    }

    fn attach_to(&mut self, cx: &Cx) {
        assert!(self.groups.is_empty(), "a scheduler is attached once, and new");
        let Device { hz, rotational, .. } = cx.device;
        self.times = TimeConstants::new(hz);
        self.budgets = BudgetBounds::new(hz);
        self.tunables.set_timeout(hz.millis(self.budgets.timeout()));
        self.peak_rate = PeakRate::new(rotational);
        self.reference_product = Self::reference_product_of(cx, &self.times);
        self.hw_queueing = HwQueueing::new(&cx.device, self.hw_queueing.policy());
        self.ensure_group(cx, cx.groups.root());
    }
}

impl<T: Trace> Scheduler for Bfq<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        NAME
    }

    fn attach(&mut self, cx: &mut Cx) {
        self.attach_to(cx);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bind(&mut self, cx: &mut Cx, rq: RequestId) {
        self.bind_request(cx, rq);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert(&mut self, cx: &mut Cx, rq: RequestId, _at: InsertAt) {
        self.insert_request(cx, rq);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn complete(&mut self, cx: &mut Cx, rq: RequestId) {
        self.complete_request(cx, rq);
    }

    fn requeue(&mut self, cx: &mut Cx, rq: RequestId) -> Requeue {
        // BFQ completes it and binds it again. As in Linux it is dispatched first and bypasses the
        // queues.
        self.complete_request(cx, rq);
        self.bind_request(cx, rq);
        Requeue::Elevator
    }

    fn reactivate(&mut self, cx: &mut Cx, rq: RequestId) {
        self.reactivate_request(cx, rq);
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        if self.idling.timer.is_some_and(|(at, _)| at <= cx.now) {
            self.idle_timer_fired(cx);
        }
    }

    fn exit_io_context(&mut self, cx: &mut Cx, ioc: IocId) {
        self.exit_context(cx, ioc);
    }

    fn group_event(&mut self, cx: &mut Cx, group: GroupId, event: GroupEvent) {
        match event {
            GroupEvent::Weight => self.follow_weight(cx, group),
            GroupEvent::Removed => self.remove_group(cx, group),
            _ => {}
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn offer(&mut self, cx: &mut Cx, bio: &Bio) {
        self.follow_group(cx, bio.ioc, cx.contexts[bio.ioc].group);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn allow_merge(&mut self, cx: &mut Cx, rq: RequestId, bio: &Bio) -> bool {
        self.allow_bio_merge(cx, rq, bio)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find_front_merge(&mut self, cx: &Cx, bio: &Bio) -> Option<RequestId> {
        let queue = self.existing_queue(bio.ioc, bio.synchrony())?;
        self.queues[queue].waiting.find_front(&cx.requests, bio)
    }

    fn request_merged(&mut self, cx: &mut Cx, rq: RequestId, kind: MergeKind) {
        if kind == MergeKind::Front {
            self.grown_at_front(cx, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        self.absorb(cx, rq, absorbed);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        self.dispatch_request(cx)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.idling.timer.map(|(at, _)| at)
    }

    fn has_work(&self) -> bool {
        self.queued > 0
    }

    fn refusal(&mut self, _cx: &mut Cx, bio: &Bio, existing: Existing) -> Option<u32> {
        let limit = self.depth_of(bio, existing.nr_requests);
        existing.bound_or_limit(bio, limit).or_else(|| {
            // The bio may be submitted again as soon as any request is freed.
            self.is_share_used(bio, limit).then_some(1)
        })
    }

    fn drain(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        self.drain_queues(cx, out);
    }

    fn tunables(&self) -> &'static [TunableInfo] {
        Tunables::TABLE
    }

    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.tunables.get(name)
    }

    fn set_tunables(&mut self, cx: &mut Cx, values: &[(String, i64)]) -> Result<(), TunableError> {
        values.iter().try_for_each(|(name, value)| self.tune(cx, name, *value))
    }

    fn dump(&self, out: &mut dyn Dump) {
        self.dump_all(out);
    }

    fn check(&self, cx: &Cx) {
        self.check_all(cx);
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
