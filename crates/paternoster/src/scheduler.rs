//! The interface of schedulers, and the parts that they are built of.
//!
//! A program that drives an [`Elevator`](crate::Elevator) needs little of this. The author of a
//! scheduler implements [`Scheduler`], keeps requests in a [`Fifo`], a [`SortList`], or both at
//! once ([`WaitingRequests`]), keeps data for groups and I/O contexts in a [`SideTable`], and may
//! declare tunables with [`tunables!`](tunables) and [`tunable_methods!`](tunable_methods).
//! `NoScheduler`, in `none.rs`, is the smallest complete scheduler, and `tests/outside.rs` has one
//! that is not of this crate. All of this may change until 1.0.

use crate::arena::{GroupId, IocId, RequestId};
use crate::device::Device;
use crate::group::Groups;
use crate::hierarchy::{Hierarchy, NoHierarchy};
use crate::request::Bio;
use crate::time::{Instant, Jiffies, Nanos};
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};

pub use crate::arena::SideTable;
pub use crate::dump::{BudgetDump, Dump, QueueDump, ServiceDump, SliceDump};
pub use crate::group::GroupChange;
pub use crate::io_context::{IoContext, IoContexts};
pub use crate::parts::fifo::Fifo;
pub use crate::parts::sort_list::SortList;
pub use crate::parts::waiting::WaitingRequests;
pub use crate::request::Requests;
pub use crate::stats::{DemandStats, ShareStats, SliceStats};
#[doc(inline)]
pub use crate::{
    __tunable_methods as tunable_methods, __tunable_table as tunable_table, __tunables as tunables,
};

/// What a scheduler may look at outside itself while it handles an event. May change until 1.0.
#[derive(Debug)]
#[non_exhaustive]
pub struct Cx<'a> {
    /// The moment of the event.
    pub now: Instant,
    /// The requests, with their links in the scheduler's lists.
    pub requests: &'a mut Requests,
    /// The group tree.
    pub groups: &'a Groups,
    /// The I/O contexts.
    pub contexts: &'a IoContexts,
    /// The device.
    pub device: &'a Device,
    /// Requests in flight: those that it dispatched, those that bypassed it, and those that a
    /// scheduler before it dispatched.
    pub in_device: u32,
}

impl Cx<'_> {
    /// The current tick.
    #[inline]
    pub fn jiffies(&self) -> Jiffies {
        self.device.hz.jiffies(self.now)
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

/// Work of the device, or of the thread that serves it, that was no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// What was written was made durable, for several submitters together. One of them is charged
    /// its part.
    Sync {
        /// How long that took.
        took: Nanos,
        /// How many waited for it; at least one.
        waiters: u32,
    },
    /// As much as that many reads of no bytes.
    Ops(u32),
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
    fn attach(&mut self, _cx: &mut Cx<'_>) {}

    /// Binds a new request, whose bio merged nowhere; comes before any merge at insert.
    fn bind(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// Inserts `rq`, to dispatch it once.
    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt);

    /// A request that it dispatched has completed.
    fn complete(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// Charges a group for work that was no request. By default nobody is charged.
    fn charge(&mut self, _cx: &mut Cx<'_>, _group: GroupId, _work: Work) {}

    /// Requeues a request that it dispatched. By default the elevator keeps it.
    fn requeue(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) -> Requeue {
        Requeue::Elevator
    }

    /// A requeued request that the elevator kept is dispatched again.
    fn reactivate(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// Handles the timeout that `poll_timeout` named.
    fn handle_timeout(&mut self, _cx: &mut Cx<'_>) {}

    /// An I/O context exits.
    fn exit_io_context(&mut self, _cx: &mut Cx<'_>, _ioc: IocId) {}

    /// A group changed.
    fn group_changed(&mut self, _cx: &mut Cx<'_>, _group: GroupId, _change: GroupChange) {}

    /// Returns whether it takes bios with [`BioFlags::FUA`](crate::BioFlags::FUA) and no other
    /// reason to bypass it. In Linux they bypass every scheduler.
    fn takes_fua(&self) -> bool {
        false
    }

    // B. Merging

    /// Which lookups and rules merging follows.
    fn merge_rules(&self) -> MergeRules {
        MergeRules::BlkMq
    }

    /// A bio will look for a request; comes before the first candidate.
    fn offer(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) {}

    /// Returns whether `bio` may merge into `rq`. It is asked for each candidate that passes the
    /// general rules, and once more before the merge is made. It may also act.
    fn allow_merge(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _bio: &Bio) -> bool {
        true
    }

    /// Returns a request that starts where `bio` ends.
    fn find_front_merge(&self, _cx: &Cx<'_>, _bio: &Bio) -> Option<RequestId> {
        None
    }

    /// For [`MergeRules::ListScan`]: returns the request to look at after `newer`, or the newest.
    fn scan(&self, _cx: &Cx<'_>, _bio: &Bio, _newer: Option<RequestId>) -> Option<RequestId> {
        None
    }

    /// A bio merged into `rq` at that end; its range has changed already.
    fn request_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _kind: MergeKind) {}

    /// `rq` absorbed `absorbed`, which may not have been inserted yet and is freed afterwards. The
    /// range of `rq` has changed already.
    fn requests_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _absorbed: RequestId) {}

    // C. Outputs

    /// Takes out the request to serve next, if one is to be served now.
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Option<RequestId>;

    /// Returns when it wants a timeout if there is no other event.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Returns whether it holds requests, so that `dispatch` may be called.
    fn has_work(&self) -> bool;

    /// Returns how many requests other than reads may exist for `bio` to become one, where
    /// `nr_requests` may exist in all; none is no limit. Only admission asks.
    fn depth_limit(&self, _cx: &Cx<'_>, _bio: &Bio, _nr_requests: u32) -> Option<u32> {
        None
    }

    /// Returns whether the submitter of `bio` holds its share of the `nr_requests` that may exist.
    /// Only admission asks.
    fn holds_share(&self, _cx: &Cx<'_>, _bio: &Bio, _nr_requests: u32) -> bool {
        false
    }

    /// Returns whether `bio` gets an admission grant, at the bound. Only admission asks.
    fn must_admit(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) -> bool {
        false
    }

    /// Takes out all requests in any order, so that it is empty afterwards. By default it
    /// dispatches until there is no request: enough for a scheduler that never holds one back.
    fn drain(&mut self, cx: &mut Cx<'_>, out: &mut Vec<RequestId>) {
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

    /// Stores and returns `value` as Linux clamps it.
    fn set_tunable(
        &mut self,
        _cx: &mut Cx<'_>,
        name: &str,
        _value: i64,
    ) -> Result<i64, TunableError> {
        Err(TunableError::unknown(self.name(), name, self.tunables()))
    }

    /// Stores values one after the other, each of a tunable that it has: a later one may take back
    /// an earlier. What is done because of a change may be done once, after the last.
    fn set_tunables(&mut self, cx: &mut Cx<'_>, values: &[(String, i64)]) {
        for (name, value) in values {
            self.set_tunable(cx, name, *value).expect("it has that tunable");
        }
    }

    /// Returns in what way its groups share the device, if that can be chosen.
    fn hierarchy(&self) -> Option<Hierarchy> {
        None
    }

    /// Has its groups share the device in that way from now on.
    fn set_hierarchy(&mut self, _cx: &mut Cx<'_>, _to: Hierarchy) -> Result<(), NoHierarchy> {
        Err(NoHierarchy::new(self.name()))
    }

    /// Returns the counts of a group's slices, without the groups below it, if it gives groups
    /// slices.
    fn slice_stats(&self, _group: GroupId) -> Option<&SliceStats> {
        None
    }

    /// Returns what a group got beside its weight, without the groups below it, if it has such
    /// counts.
    fn share_stats(&self, _group: GroupId) -> Option<&ShareStats> {
        None
    }

    /// Returns what a group has outstanding until `now`, and what it needs for its weight to hold,
    /// if the scheduler measures that.
    fn demand_stats(&self, _now: Instant, _group: GroupId) -> Option<DemandStats> {
        None
    }

    /// Reports its internal state: numbers by name, and its queues.
    fn dump(&self, _out: &mut dyn Dump) {}

    /// Asserts all invariants by walking over everything.
    fn check(&self, _cx: &Cx<'_>) {}

    /// Where its events go.
    fn trace(&mut self) -> &mut Self::Trace;
}
