//! The interface of schedulers, and the parts that they are built of.
//!
//! A program that drives an [`Elevator`](crate::Elevator) needs little of this. The author of a
//! scheduler implements [`Scheduler`], keeps requests in a [`Fifo`], a [`SortList`], or both at
//! once ([`WaitingRequests`]), keeps data for groups and I/O contexts in a [`SideTable`], and may
//! declare tunables with [`tunables!`](tunables) and [`tunable_methods!`](tunable_methods).
//! `NoScheduler`, in `none.rs`, is the smallest complete scheduler, and `tests/core/outside.rs` has
//! one that is not of this crate. All of this may change until 1.0.

use crate::arena::{GroupId, IocId, RequestId};
use crate::device::Device;
use crate::group::Groups;
use crate::hierarchy::{Hierarchy, NoHierarchy};
use crate::request::{Bio, Op};
use crate::time::{Instant, Jiffies};
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};

pub use crate::arena::SideTable;
pub use crate::dump::{BudgetDump, Dump, QueueDump, ServiceDump, SliceDump};
pub use crate::group::{GroupEvent, Work};
pub use crate::io_context::{IoContext, IoContexts};
pub use crate::parts::fifo::Fifo;
pub use crate::parts::sort_list::SortList;
pub use crate::parts::waiting::WaitingRequests;
pub use crate::requests::Requests;
pub use crate::stats::{DemandStats, ShareStats, SliceStats};
#[doc(inline)]
pub use crate::{
    __tunable_methods as tunable_methods, __tunable_table as tunable_table, __tunables as tunables,
};

/// What a scheduler may look at outside itself while it handles an event. The elevator owns it. A
/// scheduler changes nothing of it but the links of requests in its own lists. May change until
/// 1.0.
#[derive(Debug)]
#[non_exhaustive]
pub struct Cx {
    /// The moment of the event.
    pub now: Instant,
    /// The requests, with their links in the scheduler's lists.
    pub requests: Requests,
    /// The group tree.
    pub groups: Groups,
    /// The I/O contexts.
    pub contexts: IoContexts,
    /// The device.
    pub device: Device,
    /// Requests in flight: those that it dispatched, those that bypassed it, and those that a
    /// scheduler before it dispatched.
    pub in_device: u32,
    /// The tick of the moment, and when the next one begins: a tick is divided out once.
    tick: Jiffies,
    next_tick: Instant,
}

impl Cx {
    /// Makes what there is before the first event: no request, no I/O context, and the root group.
    pub(crate) fn new(device: Device) -> Self {
        let mut cx = Self {
            now: Instant::START,
            tick: Jiffies::LONG_AGO,
            next_tick: Instant::START,
            requests: Requests::default(),
            groups: Groups::new(),
            contexts: IoContexts::default(),
            device,
            in_device: 0,
        };
        cx.begin_tick();
        cx
    }

    /// The current tick.
    #[inline]
    pub fn jiffies(&self) -> Jiffies {
        self.tick
    }

    /// The next event is at `now`, which is not before the last one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = now;
        if now >= self.next_tick {
            self.begin_tick();
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_tick(&mut self) {
        let hz = self.device.hz;
        self.tick = hz.jiffies(self.now);
        self.next_tick = hz.instant(self.tick) + hz.tick();
    }
}

/// Where a request is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertAt {
    /// In the scheduler's order.
    Sorted,
    /// Before all requests of its kind, because it was requeued.
    Head,
}

/// What a scheduler takes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Which lookups and rules merging follows.
    pub merging: MergeRules,
    /// Whether it takes bios with [`BioFlags::FUA`](crate::BioFlags::FUA) and no other reason to
    /// bypass it. In Linux they bypass every scheduler.
    pub takes_fua: bool,
    /// [`Scheduler::allow_merge`] has no effect besides its answer. Then it is not called for the
    /// request of the last merge unless the bio touches that. Linux always calls it, and BFQ acts
    /// on it.
    pub pure_merging: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { merging: MergeRules::BlkMq, takes_fua: false, pure_merging: false }
    }
}

/// Which lookups and rules merging follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeRules {
    /// The last merge, the merge hash, the scheduler's front lookup. A request may be absorbed as
    /// it is inserted. When a request grows, its neighbours in its sort list are looked at.
    BlkMq,
    /// The same lookups, and no request is absorbed as it is inserted. Here only the scheduler
    /// looks at who issued a bio and with which I/O priority
    /// ([`allow_merge`](Scheduler::allow_merge)). It is not asked whether a request may absorb its
    /// neighbour in its sort list, so it keeps requests that must not become one in different sort
    /// lists. CFQ has these rules.
    Legacy,
    /// A scan of the newest requests of the list that the scheduler names.
    ListScan,
}

/// The requests that exist, and how many may. Admission is asked with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Existing {
    /// How many may exist.
    pub nr_requests: u32,
    /// How many exist.
    pub requests: u32,
    /// How many of them are not reads.
    pub non_reads: u32,
}

impl Existing {
    /// Returns the bound on all requests, if they have reached it.
    #[inline]
    pub fn bound(&self) -> Option<u32> {
        (self.requests >= self.nr_requests).then_some(self.nr_requests)
    }

    /// Returns the bound that keeps `bio` from becoming a request: that on all, or `limit`, which
    /// is on requests other than reads.
    #[inline]
    pub fn bound_or_limit(&self, bio: &Bio, limit: u32) -> Option<u32> {
        let is_reached = bio.op != Op::Read && self.non_reads >= limit;
        self.bound().or_else(|| is_reached.then_some(limit))
    }
}

/// What a scheduler itself counts of a group, without the groups below it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OwnStats<'a> {
    /// The counts of the group's slices.
    pub slices: Option<&'a SliceStats>,
    /// What it got beside its weight.
    pub share: Option<&'a ShareStats>,
    /// What it has outstanding, and what it needs for its weight to hold.
    pub demand: Option<DemandStats>,
}

/// Who keeps a requeued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requeue {
    /// The scheduler, which holds it again.
    Scheduler,
    /// The elevator, which dispatches it next; it bypasses the scheduler.
    Elevator,
}

/// Orders requests for one device. It never does I/O and never reads a clock. May change until 1.0.
///
/// A scheduler may change a request only through the lists that it keeps it in. The elevator calls
/// these methods in the order of events. A scheduler may panic if they are called in another order,
/// or with a key that is gone.
pub trait Scheduler {
    /// Where its events go.
    type Trace: Trace;

    /// Its name in sysfs.
    fn name(&self) -> &'static str;

    // A. Events

    /// Attaches it to the device; comes before all other calls.
    fn attach(&mut self, _cx: &mut Cx) {}

    /// Binds a new request, whose bio merged nowhere; comes before any merge at insert.
    fn bind(&mut self, _cx: &mut Cx, _rq: RequestId) {}

    /// Inserts `rq`, to dispatch it once.
    fn insert(&mut self, cx: &mut Cx, rq: RequestId, at: InsertAt);

    /// A request that it dispatched has completed.
    fn complete(&mut self, _cx: &mut Cx, _rq: RequestId) {}

    /// Requeues a request that it dispatched. By default the elevator keeps it.
    fn requeue(&mut self, _cx: &mut Cx, _rq: RequestId) -> Requeue {
        Requeue::Elevator
    }

    /// A requeued request that the elevator kept is dispatched again.
    fn reactivate(&mut self, _cx: &mut Cx, _rq: RequestId) {}

    /// Handles the timeout that `poll_timeout` named.
    fn handle_timeout(&mut self, _cx: &mut Cx) {}

    /// An I/O context exits.
    fn exit_io_context(&mut self, _cx: &mut Cx, _ioc: IocId) {}

    /// Something of a group is another now, or work was done for it.
    fn group_event(&mut self, _cx: &mut Cx, _group: GroupId, _event: GroupEvent) {}

    // B. Merging

    /// What it takes, and how.
    fn rules(&self) -> Rules {
        Rules::default()
    }

    /// A bio will look for a request; comes before the first candidate. BFQ alone acts on it, as in
    /// Linux: a task that has changed its group takes its queue along before it merges anything.
    fn offer(&mut self, _cx: &mut Cx, _bio: &Bio) {}

    /// Returns whether `bio` may merge into `rq`. It is called for each candidate that passes the
    /// general rules, and once more before the merge is made; for the request of the last merge,
    /// [`Rules::pure_merging`] decides when.
    fn allow_merge(&mut self, _cx: &mut Cx, _rq: RequestId, _bio: &Bio) -> bool {
        true
    }

    /// Returns a request that starts where `bio` ends.
    fn find_front_merge(&mut self, _cx: &Cx, _bio: &Bio) -> Option<RequestId> {
        None
    }

    /// For [`MergeRules::ListScan`]: returns the request to look at after `newer`, or the newest.
    fn scan(&self, _cx: &Cx, _bio: &Bio, _newer: Option<RequestId>) -> Option<RequestId> {
        None
    }

    /// A bio merged into `rq` at that end; its range has changed already.
    fn request_merged(&mut self, _cx: &mut Cx, _rq: RequestId, _kind: MergeKind) {}

    /// `rq` absorbed `absorbed`, which may not have been inserted yet and is freed afterwards. The
    /// range of `rq` has changed already.
    fn requests_merged(&mut self, _cx: &mut Cx, _rq: RequestId, _absorbed: RequestId) {}

    // C. Outputs

    /// Takes out the request to serve next, if one is to be served now.
    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId>;

    /// Returns when it wants a timeout if there is no other event.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns whether it holds requests, so that `dispatch` may be called.
    fn has_work(&self) -> bool;

    /// Returns the bound on requests that keeps `bio` from becoming one now, if any: its submitter
    /// waits until some of those are freed. Only admission asks.
    fn refusal(&mut self, _cx: &mut Cx, _bio: &Bio, existing: Existing) -> Option<u32> {
        existing.bound()
    }

    /// Takes out all requests in any order, so that it is empty afterwards. By default it
    /// dispatches until there is no request: enough for a scheduler that never holds one back.
    fn drain(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        while let Some(rq) = self.dispatch(cx) {
            out.push(rq);
        }
    }

    // D. Looking inside

    /// Its tunables.
    fn tunables(&self) -> &'static [TunableInfo] {
        &[]
    }

    /// Returns the value of a tunable, in its own unit.
    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        Err(TunableError::unknown(self.name(), name, self.tunables()))
    }

    /// Stores values one after the other, as Linux clamps them; a later one may take back an
    /// earlier. What is done because of a change may be done once, after the last. The first name
    /// that it does not know ends it.
    fn set_tunables(&mut self, _cx: &mut Cx, values: &[(String, i64)]) -> Result<(), TunableError> {
        let unknown = |name| TunableError::unknown(self.name(), name, self.tunables());
        values.first().map_or(Ok(()), |(name, _)| Err(unknown(name)))
    }

    /// Learns the depth from there on, as another scheduler of the device had learned it, if it
    /// learns one.
    fn begin_at_depth(&mut self, _cx: &mut Cx, _depth: u32) {}

    /// Returns in what way its groups share the device, if that can be chosen
    /// ([`GroupEvent::Hierarchy`]). It can under CFQ alone, and there not in every kernel, which
    /// nobody else knows.
    fn hierarchy(&self) -> Result<Hierarchy, NoHierarchy> {
        Err(NoHierarchy::new(self.name()))
    }

    /// Returns what it counts of a group itself, up to `now`.
    fn own_stats(&self, _now: Instant, _group: GroupId) -> OwnStats<'_> {
        OwnStats::default()
    }

    /// Reports its internal state: numbers by name, and its queues.
    fn dump(&self, _out: &mut dyn Dump) {}

    /// Asserts all invariants by walking over everything.
    fn check(&self, _cx: &Cx) {}

    /// Where its events go.
    fn trace(&mut self) -> &mut Self::Trace;
}
