//! `wfq`: weights that hold while the device stays busy.
//!
//! A disk that serves many requests at once is slow unless it has many. CFQ and BFQ give each
//! tenant the device in turn: the shares are exact, but the device runs empty at the end of every
//! turn. `wfq` has no turns. It bounds how many requests are in the device, and decides which one
//! enters next:
//!
//! ```text
//!   A weight 100   ●●●●●●●●─┐
//!   B weight 200   ●●●●●●●●─┼─▶ least tag first ──▶  │ ●●●●●●●●●●●● │   depth
//!   C weight 400   ●●●●●●●●─┘   A C C B C C B        └── the device ┘
//! ```
//!
//! Each has a *tag*, which advances by charge / weight as a request of it enters. The least tag is
//! served. So over any time in which two of them have requests waiting, what enters for them
//! differs from their weights by at most a request of each (*start-time fair queueing*); what is in
//! the device adds at most `depth` requests. Who has little outstanding finds its tag behind all
//! others, and waits for the next free place in the device, never behind a neighbour's queue.
//!
//! The life of a request, and the file for each step:
//!
//! ```text
//!   made         context.rs     it is bound to its I/O context, in its class and group
//!   inserted     insert.rs      it waits there; all above it are active
//!                queue.rs       by arrival, or by sector on a rotational device
//!   dispatched   dispatch.rs    the device has room, and its tags are the least
//!                class.rs       of its group's classes
//!                run.rs         or it goes on a run of its I/O context
//!                limits/        or a reservation brings it forward; no cap holds it,
//!                kept.rs        no room is kept for another tenant,
//!                limits/        or held free for one that misses its latency target
//!                price/         it is charged,
//!                order.rs       and so are all above it,
//!                siblings.rs    each among its siblings,
//!                tournament.rs  of whom the least tag wins,
//!                service.rs     in virtual time
//!   completed    complete.rs    there is room for another
//!                learn.rs       what the device does at this depth
//!                window/        is measured, window by window,
//!                demand.rs      and so is what tenants ask for:
//!                depth/         the depth follows,
//!                price/         and so do prices
//! ```
//!
//! `tunables.rs` has the settings, `dump.rs` shows the state. No floating point, no clock: equal
//! events give equal decisions. Linux has no such scheduler. The discipline is SFQ(D) of
//! *Interposed Proportional Sharing for a Storage Service Utility* (SIGMETRICS 2004), nested.

mod check;
mod class;
mod complete;
mod context;
mod demand;
mod depth;
mod directions;
mod dispatch;
mod dump;
mod insert;
mod kept;
mod learn;
mod limits;
mod node;
mod order;
mod price;
mod queue;
mod run;
mod service;
mod siblings;
mod tournament;
mod tunables;
mod window;

pub use service::Vtime;

use crate::arena::{GroupId, IocId, Parallel, RequestId};
use crate::dump::Dump;
use crate::group::GroupEvent;
use crate::request::{Bio, SectorCount};
use crate::scheduler::{Cx, InsertAt, OwnStats, Requeue, Rules, Scheduler};
use crate::time::Instant;
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};
use smallvec::SmallVec;

use context::Known;
use demand::Contest;
use depth::Depth;
use kept::Kept;
use limits::{Others, Targets};
use node::{GroupNodes, Tree};
use price::{Class, Pricing};
use run::Run;
use service::Units;
use tunables::Tunables;
use window::Windows;

/// Its name, as schedulers have one in sysfs.
pub(crate) const NAME: &str = "wfq";

/// What is known of a request that was dispatched.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// What it was charged.
    charge: Units,
    /// The window in which it was dispatched.
    window: u64,
    /// What it moves.
    sectors: SectorCount,
    /// By which its price goes.
    class: Class,
    /// The device has it; else it was requeued.
    in_device: bool,
}

/// The weighted fair queueing scheduler.
#[derive(Debug)]
pub struct Wfq<T> {
    /// Who has a share, and whose turn it is.
    tree: Tree,
    /// The nodes of groups that have had a request.
    groups: Parallel<GroupId, GroupNodes>,
    /// The nodes of each I/O context: nearly always one.
    contexts: Parallel<IocId, SmallVec<[Known; 1]>>,
    /// What is known of requests in flight, and of requeued ones.
    in_flight: Parallel<RequestId, InFlight>,
    /// Requests that wait.
    queued: u32,
    /// Requests that were dispatched, and have neither completed nor been requeued.
    in_device: u32,
    /// The run that goes on, if one does.
    run: Option<Run>,
    /// The current window, which is being measured.
    windows: Windows,
    /// The depth as it is learned, or set.
    depth: Depth,
    /// The prices as they are learned, or set.
    pricing: Pricing,
    /// What demand says of the depth.
    contest: Contest,
    /// For whom places in the device are kept.
    kept: Kept,
    /// What reservations leave to all others.
    others: Others,
    /// The groups that have a latency target.
    targets: Targets,
    tunables: Tunables,
    trace: T,
}

impl<T: Trace> Wfq<T> {
    /// Makes an empty scheduler with the defaults; its events go to `trace`.
    pub fn new(trace: T) -> Self {
        let tunables = Tunables::with_defaults();
        let pricing = Pricing::set_by(&tunables);
        Self {
            tree: Tree::new(tunables.burst()),
            groups: Parallel::default(),
            contexts: Parallel::default(),
            in_flight: Parallel::default(),
            queued: 0,
            in_device: 0,
            windows: Windows::new(pricing.base()),
            depth: Depth::starting_at(tunables.depth_start()),
            contest: Contest::default(),
            run: None,
            kept: Kept::default(),
            others: Others::default(),
            targets: Targets::default(),
            pricing,
            tunables,
            trace,
        }
    }

    /// The tunables.
    pub const TUNABLES: &'static [TunableInfo] = Tunables::TABLE;
}

impl<T: Trace> Scheduler for Wfq<T> {
    type Trace = T;

    fn name(&self) -> &'static str {
        NAME
    }

    fn attach(&mut self, cx: &mut Cx) {
        self.group_nodes(cx, cx.groups.root());
        self.begin_learning(cx);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bind(&mut self, cx: &mut Cx, rq: RequestId) {
        self.bind_request(cx, rq);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn insert(&mut self, cx: &mut Cx, rq: RequestId, at: InsertAt) {
        self.insert_request(cx, rq, at);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn complete(&mut self, cx: &mut Cx, rq: RequestId) {
        self.complete_request(cx, rq);
    }

    fn requeue(&mut self, cx: &mut Cx, rq: RequestId) -> Requeue {
        self.requeue_request(cx, rq);
        Requeue::Scheduler
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.release(cx.now);
    }

    fn exit_io_context(&mut self, _cx: &mut Cx, ioc: IocId) {
        self.exit(ioc);
    }

    fn group_event(&mut self, cx: &mut Cx, group: GroupId, event: GroupEvent) {
        match event {
            GroupEvent::Weight => self.follow_weights(cx, group),
            GroupEvent::Limits => self.follow_limits(cx, group),
            GroupEvent::Removed => self.remove_group(cx, group),
            GroupEvent::Worked(work) => self.charge_group(cx, group, work),
            GroupEvent::Closing | GroupEvent::Hierarchy(_) => {}
        }
    }

    fn rules(&self) -> Rules {
        Rules { takes_fua: true, pure_merging: true, ..Rules::default() }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find_front_merge(&mut self, cx: &Cx, bio: &Bio) -> Option<RequestId> {
        self.front_merge(cx, bio)
    }

    fn request_merged(&mut self, cx: &mut Cx, rq: RequestId, kind: MergeKind) {
        self.follow_merge(cx, rq, kind);
    }

    fn requests_merged(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        self.absorb(cx, rq, absorbed);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        self.next_request(cx)
    }

    /// It waits for a cap alone; else a completion is what it waits for.
    fn poll_timeout(&self) -> Option<Instant> {
        self.tree.held_until()
    }

    #[inline]
    fn has_work(&self) -> bool {
        self.queued > 0
    }

    fn drain(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        self.drain_all(cx, out);
    }

    fn tunables(&self) -> &'static [TunableInfo] {
        Self::TUNABLES
    }

    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.tunables.get(name)
    }

    fn set_tunables(&mut self, cx: &mut Cx, values: &[(String, i64)]) -> Result<(), TunableError> {
        let mut tunables = self.tunables;
        for (name, value) in values {
            tunables.set(name, *value)?;
        }
        let before = std::mem::replace(&mut self.tunables, tunables);
        // Once, and not for a value that is taken back: what is learned would be forgotten.
        self.follow_tunables(cx, &before);
        Ok(())
    }

    fn begin_at_depth(&mut self, cx: &mut Cx, depth: u32) {
        self.take_depth(cx, depth);
    }

    fn own_stats(&self, now: Instant, group: GroupId) -> OwnStats<'_> {
        let Some(nodes) = self.groups.get(group) else { return OwnStats::default() };
        let share = self.tree.share(nodes.node);
        let demand = self.contest.demand_of(&self.tree, nodes.own, now, self.depth.at_rest());
        OwnStats { share: Some(share), demand: Some(demand), slices: None }
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
