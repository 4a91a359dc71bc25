//! What a scheduler is: told what happens, asked what to do next.

use crate::arena::{GroupId, IocId, RequestId};
use crate::dump::Dump;
use crate::group::{GroupChange, Groups};
use crate::io_context::IoContexts;
use crate::request::{Bio, Requests};
use crate::stats::TurnStats;
use crate::time::{Hz, Instant, Jiffies};
use crate::trace::{MergeKind, Trace};
use crate::tunable::{TunableError, TunableInfo};

/// The device as schedulers see it.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// What `queue/rotational` says.
    pub rotational: bool,
    /// How many requests it is given at once.
    pub queue_depth: u32,
    /// Whether it queues requests itself and serves them in an order of its own, where that is
    /// known. Where it is not, a scheduler to which it matters finds out as Linux does, which may
    /// be wrong about a device that is never given many.
    pub queues: Option<bool>,
    /// Ticks a second of the jiffies clock.
    pub hz: Hz,
}

impl Device {
    /// A device without moving parts.
    pub fn solid_state(queue_depth: u32) -> Self {
        Self { rotational: false, queue_depth, queues: None, hz: Hz::MILLI }
    }

    /// A device with a head that moves.
    pub fn disk(queue_depth: u32) -> Self {
        Self { rotational: true, queue_depth, queues: None, hz: Hz::MILLI }
    }
}

/// Everything outside a scheduler that it may look at while it handles one event. May change
/// until 1.0.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The moment of the event.
    pub now: Instant,
    /// The requests, with the links by which they are in the scheduler's lists.
    pub requests: &'a mut Requests,
    /// The group tree.
    pub groups: &'a Groups,
    /// The I/O contexts.
    pub contexts: &'a IoContexts,
    /// The device.
    pub device: &'a Device,
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
pub enum InsertAt {
    /// Where the scheduler's order puts it.
    Sorted,
    /// Before everything of its kind: it was handed back.
    Head,
}

/// Which lookups and permissions merging follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeRules {
    /// The last merge, the table of ends, the scheduler's front lookup; whole requests join as
    /// they are inserted.
    BlkMq,
    /// The same lookups; the scheduler alone says who may merge, and nothing joins at insert.
    Legacy,
    /// The newest requests of the list that the scheduler names.
    ListScan,
}

/// Which neighbour in sector order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that starts lower.
    Before,
    /// The one that starts higher.
    After,
}

/// Who keeps a request that the device handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// The scheduler, which was given it again.
    Scheduler,
    /// The elevator: it is offered next, past the scheduler.
    Elevator,
}

/// Orders requests for one device. Never does I/O, never reads a clock. May change until 1.0.
///
/// The elevator calls these methods in the order of what happens. One that is called otherwise, or
/// with a key that is gone, may panic.
pub trait Scheduler {
    /// Where its events go.
    type Trace: Trace;

    /// Its name in sysfs.
    fn name(&self) -> &'static str;

    // A. What happens

    /// It is the device's scheduler from now on; comes before everything else.
    fn attach(&mut self, _cx: &mut Cx<'_>) {}

    /// A request was made because its bio merged nowhere; comes before any merge at insert.
    fn bind(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// Takes `rq`, to give it out once.
    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt);

    /// A request that it gave out is done.
    fn complete(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// A request that it gave out was handed back unserved.
    fn requeue(&mut self, cx: &mut Cx<'_>, rq: RequestId) -> Requeue;

    /// A request that was handed back, and that the elevator kept, goes to the device again.
    fn reactivate(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// The moment that `poll_timeout` named has come.
    fn handle_timeout(&mut self, _cx: &mut Cx<'_>) {}

    /// An I/O context makes no more requests.
    fn exit_io_context(&mut self, _cx: &mut Cx<'_>, _ioc: IocId) {}

    /// A group changed.
    fn group_changed(&mut self, _cx: &mut Cx<'_>, _group: GroupId, _change: GroupChange) {}

    // B. Merging

    /// Which lookups and permissions merging follows.
    fn merge_rules(&self) -> MergeRules {
        MergeRules::BlkMq
    }

    /// A bio is about to look for a request; comes before the first candidate.
    fn offer(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) {}

    /// Whether `bio` may become part of `rq`. Asked for each candidate that passes the general
    /// rules, and once more before the merge is made: it may act.
    fn allow_merge(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _bio: &Bio) -> bool {
        true
    }

    /// A request that starts where `bio` ends.
    fn find_front_merge(&self, _cx: &Cx<'_>, _bio: &Bio) -> Option<RequestId> {
        None
    }

    /// The neighbour of `rq` in the list in which it is sorted.
    fn neighbour(&self, _cx: &Cx<'_>, _rq: RequestId, _side: Side) -> Option<RequestId> {
        None
    }

    /// For [`MergeRules::ListScan`]: the request to look at after `newer`, at first the newest.
    fn scan(&self, _cx: &Cx<'_>, _bio: &Bio, _newer: Option<RequestId>) -> Option<RequestId> {
        None
    }

    /// `rq` took a bio at that end; its range has changed already.
    fn request_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _kind: MergeKind) {}

    /// `rq` took the whole of `absorbed`, which may never have been inserted and is gone
    /// afterwards. The range of `rq` has changed already.
    fn requests_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _absorbed: RequestId) {}

    // C. Outputs

    /// The request to serve next, or none now.
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Option<RequestId>;

    /// When it wants to be told the time, without another event.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Whether it may be asked for a request.
    fn has_work(&self) -> bool;

    /// Of everything but reads, how many may exist before `bio` is made a request, of
    /// `nr_requests` that may exist at all; none is no limit. Asked by admission only.
    fn depth_limit(&self, _cx: &Cx<'_>, _bio: &Bio, _nr_requests: u32) -> Option<u32> {
        None
    }

    /// Whether the submitter of `bio` has its share of the `nr_requests` that may exist. Asked by
    /// admission only.
    fn holds_share(&self, _cx: &Cx<'_>, _bio: &Bio, _nr_requests: u32) -> bool {
        false
    }

    /// Whether `bio` may become a request though as many exist as may. Asked by admission only,
    /// at the bound.
    fn must_admit(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) -> bool {
        false
    }

    /// Gives up all that it holds, in any order, and is empty afterwards.
    fn drain(&mut self, cx: &mut Cx<'_>, out: &mut Vec<RequestId>);

    // D. Looking inside

    /// What may be tuned.
    fn tunables(&self) -> &'static [TunableInfo] {
        &[]
    }

    /// The value of a tunable, in its own unit.
    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        Err(crate::tunable::unknown(self.name(), name, self.tunables()))
    }

    /// Stores and returns `value` as Linux clamps it.
    fn set_tunable(
        &mut self,
        _cx: &mut Cx<'_>,
        name: &str,
        _value: i64,
    ) -> Result<i64, TunableError> {
        Err(crate::tunable::unknown(self.name(), name, self.tunables()))
    }

    /// How turns went for a group, without those below it, where it gives groups turns.
    fn turn_stats(&self, _group: GroupId) -> Option<&TurnStats> {
        None
    }

    /// Tells its internal state: numbers by name, and its queues.
    fn dump(&self, _out: &mut dyn Dump) {}

    /// Asserts what always holds, by walking everything.
    fn check(&self, _cx: &Cx<'_>) {}

    /// Where its events go.
    fn trace(&mut self) -> &mut Self::Trace;
}
