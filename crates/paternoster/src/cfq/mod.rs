//! CFQ: every group gets its share of the device by weight, and every queue its slices of time.
//!
//! A device that seeks serves one reader well, and serves several badly if it goes from one to
//! another at each request. So CFQ gives the whole device to one queue for a *slice*, and gives
//! slices in such an order that each group has its share.
//!
//! Requests wait in queues: a synchronous queue for each I/O context, and asynchronous ones, which
//! the contexts of a group share. Three choices lead to a request: which group, by weight; which of
//! its queues, by class, workload and key; and which of its requests, by sector. One queue at a
//! time is *active*. It dispatches requests until its slice ends; then its group is charged.
//!
//! ```text
//!   group tree, by vdisktime    ──▶ service trees of the group        ──▶ the queue's sort list
//!   a:12  b:17  c:40                 RT   [ ]     [ ]     [ ]             ●──●──●──●
//!   ▲ least: served                  BE   [q4]    [q1 q9] [q3]                ▲ next
//!                                    IDLE [q7]       ▲ first: active
//!
//!   vdisktime += time (or requests) of the slice × 2²⁴ / the group's fraction (of 4096)
//! ```
//!
//! That is Linux's hierarchy of groups, and the default. There are two others (`hierarchy/`), which
//! differ in four things only. Of a root with the queue q1 and a group /a with q2 and q3:
//!
//! ```text
//!                leaf-weight              flat                     entities
//!   who is on    group tree:  /   /a      group tree:  /   /a      trees of /:   q1  /a
//!   which tree   their trees: q1  q2 q3   their trees: q1  q2 q3   trees of /a:      q2 q3
//!   placed       at the time, and later   at the least vdisktime,  as flat; a group right
//!                the lower the level      and a jump by level      behind the last one
//!   charged      /a, by its fraction      q2 by the weight of its  as flat, and each group
//!   for q2                                level, /a by its own     above but the root
//!   next         least group, then the    least group, then the    that workload and its
//!                workload due first and   workload placed first    first entity, from the
//!                its first queue          and its first queue      root down to a queue
//! ```
//!
//! CFQ stands out by the moments at which it dispatches *nothing*: the device idles for a while if
//! the next request of the active queue is worth more than what others have waiting (`idle.rs`).
//!
//! The life of a request, and the file for each step:
//!
//! ```text
//!   made         context.rs      it is bound to the queue of its I/O context
//!                queue.rs        that queue is found or created
//!                priority.rs     its class and level follow those of the request
//!   inserted     insert.rs       it waits; its queue becomes busy
//!                io_pattern.rs   the queue proves seeky or not,
//!                idle_window.rs  and earns that the device idles for it
//!                place.rs        the queue gets a place on a tree of service_tree.rs,
//!                hierarchy/      where its slice is due
//!                preempt.rs      the queue may take the device from the active one
//!   selected     select.rs       the active queue keeps the device, or another gets it,
//!                slice.rs        for as long as its slice is,
//!                hierarchy/      of the group that is least served
//!   dispatched   dispatch.rs     the gate lets it pass
//!                order.rs        it is the next of its queue by sector, or the oldest
//!   completed    complete.rs     it leaves its queue
//!                hw_queueing.rs  the device shows whether it queues requests itself
//!                idle.rs         the device idles, if the queue has run empty
//!   expired      expire.rs       the slice ends, and the group is charged
//! ```
//!
//! Queues of I/O contexts that work on the same part of the device are merged (`cooperate.rs`) and
//! split again (`split.rs`). `drain.rs` gives up all waiting requests. `queue_id.rs` has the key of
//! a queue, `group.rs` what is kept of a group, and `tunables.rs` the values that can be set.
//! `check.rs` asserts what always holds, and `dump.rs` shows the state. `kernel/` has what the
//! older kernels decide otherwise; how their groups share the device is
//! `hierarchy/side_by_side.rs`.
//!
//! BFQ has files of the same names for what both have. What BFQ adds has no counterpart here:
//! budgets and peak rate, weight raising and bursts, injection and wakers, stable merges, and a
//! bound of its own on requests.
//!
//! This is CFQ as of Linux v4.20, decision for decision, unless `charge_whole_turn` is set, another
//! hierarchy or another kernel. Where Linux is odd, the oddity is a named step. Linux's CFQ also
//! asks its driver to call again soon (a *kick*). There is no such step here, because the elevator
//! asks after every event.

mod check;
mod complete;
mod context;
mod cooperate;
mod dispatch;
mod drain;
mod dump;
mod expire;
mod group;
mod hierarchy;
mod hw_queueing;
mod idle;
mod idle_window;
mod insert;
mod io_pattern;
mod kernel;
mod order;
mod place;
mod preempt;
mod priority;
mod queue;
mod queue_id;
mod select;
mod service_tree;
mod slice;
mod split;
mod tunables;

use crate::arena::{GroupId, IocId, Parallel, RequestId};
use crate::cfq::context::ContextState;
use crate::cfq::cooperate::Positions;
use crate::cfq::group::GroupState;
use crate::cfq::hierarchy::{GroupTree, Sharing};
use crate::cfq::hw_queueing::HwQueueing;
use crate::cfq::idle::IdleTimer;
use crate::cfq::kernel::{Isolation, KernelRules};
pub(crate) use crate::cfq::kernel::{tunables_of, unknown_tunable};
use crate::cfq::queue::Queues;
use crate::cfq::queue_id::{QueueId, queue_of};
use crate::cfq::select::Serving;
use crate::cfq::tunables::Tunables;
use crate::dump::Dump;
use crate::group::GroupEvent;
use crate::hierarchy::{Hierarchy, NoHierarchy};
use crate::kernel::Kernel;
use crate::parts::service_speed::{Mark, ServiceSpeed};
use crate::request::{Bio, Sector};
use crate::scheduler::{Cx, Existing, InsertAt, MergeRules, OwnStats, Requeue, Rules, Scheduler};
use crate::synchrony::BySynchrony;
use crate::time::{Instant, Nanos};
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};

/// Its name in sysfs.
pub(crate) const NAME: &str = "cfq";

/// The CFQ scheduler.
#[derive(Debug)]
pub struct Cfq<T> {
    /// The kernel as which it decides.
    kernel: KernelRules,
    isolation: Isolation,
    contexts: Parallel<IocId, ContextState>,
    queues: Queues,
    /// The queues by the sector of their next request.
    positions: Positions,
    groups: Parallel<GroupId, GroupState>,
    /// How groups share the device.
    sharing: Sharing,
    group_tree: GroupTree,
    /// The group and the workload that are served.
    serving: Serving,
    /// How many requests the device completes, where groups pay for those that it does not.
    service_speed: ServiceSpeed,
    /// The queue that has the device.
    active: Option<QueueId>,
    /// When the last slice ended, if it was preempted. Valid until a queue becomes active, which
    /// waits for room in the device.
    preempted_at: Option<Mark>,
    /// The I/O context of the first request dispatched since the last slice ended.
    active_context: Option<IocId>,
    /// Runs while the device idles for the active queue.
    idle_timer: Option<IdleTimer>,
    /// Busy queues.
    busy: u32,
    /// Synchronous queues among them.
    busy_sync: u32,
    /// Requests that wait in queues.
    queued: u32,
    /// Requests in flight, of asynchronous and of synchronous queues. One that was requeued counts.
    in_flight: BySynchrony<u32>,
    /// Requests that the device holds: those in flight, without requeued ones.
    in_driver: u32,
    /// Where the head is: the end of the request that the device took last.
    head: Sector,
    /// When a synchronous request last completed long after it was made.
    last_delayed_sync: Instant,
    hw_queueing: HwQueueing,
    tunables: Tunables,
    /// The moment of the event by CFQ's own clock. What it reports happens at `cx.now`.
    now: Instant,
    trace: T,
}

/// So long before CFQ is attached, a synchronous request is taken to have been late.
const LONG_AGO: Nanos = Nanos::from_millis(1000);

impl<T: Trace> Cfq<T> {
    /// The tunables.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;

    /// Creates an empty scheduler with Linux's defaults; its events go to `trace`.
    pub fn new(trace: T) -> Self {
        Self::with_kernel(trace, Kernel::default())
    }

    /// Creates one that decides as that kernel, with its defaults.
    pub fn with_kernel(trace: T, kernel: Kernel) -> Self {
        let kernel = KernelRules::new(kernel);
        Self {
            kernel,
            isolation: Isolation::new(kernel),
            contexts: Parallel::default(),
            queues: Queues::new(),
            positions: Positions::default(),
            groups: Parallel::default(),
            sharing: Sharing::of_kernel(kernel),
            group_tree: GroupTree::default(),
            serving: Serving::new(Instant::START),
            service_speed: ServiceSpeed::default(),
            active: None,
            preempted_at: None,
            active_context: None,
            idle_timer: None,
            busy: 0,
            busy_sync: 0,
            queued: 0,
            in_flight: BySynchrony::default(),
            in_driver: 0,
            head: Sector(0),
            last_delayed_sync: Instant::from_nanos(0),
            hw_queueing: HwQueueing::new(None),
            tunables: Tunables::with_defaults(),
            now: Instant::START,
            trace,
        }
    }
}

impl<T: Trace> Scheduler for Cfq<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        NAME
    }

    fn attach(&mut self, cx: &mut Cx) {
        assert!(self.groups.is_empty(), "a scheduler is attached once, and new");
        self.attach_kernel(cx);
        self.read_clock(cx);
        self.ensure_group(cx, cx.groups.root());
        self.last_delayed_sync = self.now.saturating_sub(LONG_AGO);
        self.hw_queueing = HwQueueing::new(cx.device.native_queueing);
        if !cx.device.rotational {
            self.tunables.attach_to_non_rotational();
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bind(&mut self, cx: &mut Cx, rq: RequestId) {
        self.read_clock(cx);
        self.bind_request(cx, rq);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert(&mut self, cx: &mut Cx, rq: RequestId, _at: InsertAt) {
        self.read_clock(cx);
        self.insert_request(cx, rq);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn complete(&mut self, cx: &mut Cx, rq: RequestId) {
        self.read_clock(cx);
        self.complete_request(cx, rq);
    }

    fn requeue(&mut self, _cx: &mut Cx, _rq: RequestId) -> Requeue {
        // As in Linux, the request is dispatched again first, and bypasses the scheduler.
        self.deactivate_request();
        Requeue::Elevator
    }

    fn reactivate(&mut self, cx: &mut Cx, rq: RequestId) {
        self.activate_request(cx.requests[rq].end());
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.read_clock(cx);
        if self.idle_timer.is_some_and(|timer| timer.at <= self.now) {
            self.idle_timer_fired(cx);
        }
    }

    fn exit_io_context(&mut self, cx: &mut Cx, ioc: IocId) {
        self.read_clock(cx);
        self.exit_context(cx, ioc);
    }

    fn group_event(&mut self, cx: &mut Cx, group: GroupId, event: GroupEvent) {
        self.read_clock(cx);
        match event {
            GroupEvent::Closing => self.close_group(cx, group),
            GroupEvent::Removed => _ = self.groups.remove(group),
            GroupEvent::Hierarchy(to) => self.switch_hierarchy(cx, to),
            // A weight is read when the group is put on the tree.
            _ => {}
        }
    }

    fn rules(&self) -> Rules {
        Rules { merging: MergeRules::Legacy, pure_merging: true, ..Rules::default() }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn allow_merge(&mut self, cx: &mut Cx, rq: RequestId, bio: &Bio) -> bool {
        let sync_into_async = bio.is_sync() && !cx.requests[rq].is_sync();
        !sync_into_async
            && self.existing_queue(bio.ioc, bio.synchrony()) == Some(queue_of(&cx.requests, rq))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find_front_merge(&mut self, cx: &Cx, bio: &Bio) -> Option<RequestId> {
        let queue = self.existing_queue(bio.ioc, bio.synchrony())?;
        self.queues[queue].waiting.find_front(&cx.requests, bio)
    }

    fn request_merged(&mut self, cx: &mut Cx, rq: RequestId, kind: MergeKind) {
        if kind == MergeKind::Front {
            let queue = queue_of(&cx.requests, rq);
            self.queues[queue].waiting.reposition(&mut cx.requests, rq);
            self.follow_position(cx, queue);
            self.read_clock(cx);
            self.prefer(cx, queue, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        self.read_clock(cx);
        self.absorb(cx, rq, absorbed);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        self.read_clock(cx);
        self.dispatch_request(cx)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.idle_timer.map(|timer| timer.at)
    }

    fn has_work(&self) -> bool {
        self.busy > 0
    }

    /// At the bound a queue may have an admission grant.
    fn refusal(&mut self, cx: &mut Cx, bio: &Bio, existing: Existing) -> Option<u32> {
        let bound = existing.bound()?;
        let Some(queue) = self.existing_queue(bio.ioc, bio.synchrony()) else { return Some(bound) };
        self.read_clock(cx);
        self.boost(cx, bio.ioc, queue, bio.flags);
        let slice = &mut self.queues[queue].slice;
        let is_granted = slice.has_admission_grant();
        slice.use_admission_grant();
        (!is_granted).then_some(bound)
    }

    fn drain(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        self.read_clock(cx);
        self.drain_queues(cx, out);
    }

    fn tunables(&self) -> &'static [TunableInfo] {
        self.tunables_of_kernel()
    }

    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.read_tunable(name)
    }

    fn set_tunables(&mut self, _cx: &mut Cx, values: &[(String, i64)]) -> Result<(), TunableError> {
        values.iter().try_for_each(|(name, value)| self.write_tunable(name, *value))
    }

    fn hierarchy(&self) -> Result<Hierarchy, NoHierarchy> {
        self.sharing.hierarchy().ok_or_else(|| NoHierarchy::of_kernel(self.kernel.kernel()))
    }

    fn own_stats(&self, _now: Instant, group: GroupId) -> OwnStats<'_> {
        let slices = self.groups.get(group).map(|state| &state.stats);
        OwnStats { slices, ..OwnStats::default() }
    }

    fn dump(&self, out: &mut dyn Dump) {
        self.dump_all(out);
    }

    fn check(&self, cx: &Cx) {
        self.check_queues(cx);
        self.check_groups(cx);
    }

    fn trace(&mut self) -> &mut T {
        &mut self.trace
    }
}
