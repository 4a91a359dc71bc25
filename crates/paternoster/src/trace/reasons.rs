//! The reasons that events carry.

/// Which lookup found the request of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeSite {
    /// The request of the last merge.
    Cache,
    /// The merge hash.
    Hash,
    /// The scheduler's sort list.
    Tree,
    /// A scan of the newest requests of a list.
    Scan,
    /// The lookup for a whole request as it is inserted.
    Insert,
    /// The look at the neighbour that a grown request touches.
    Neighbour,
    /// The submitter's plug, before the bios arrived.
    Plug,
}

/// At which end of a request something merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Behind it.
    Back,
    /// Before it.
    Front,
}

/// Why mq-deadline began a batch where it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchReason {
    /// There was no request from which to continue.
    Start,
    /// The oldest request of the direction was overdue.
    Expired,
    /// It continued where the direction stopped.
    Onward,
}

/// A domain of Kyber: the requests that share one depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Domain {
    /// Reads.
    Read = 0,
    /// Writes, synchronous or not.
    Write = 1,
    /// Discards.
    Discard = 2,
    /// All others.
    Other = 3,
}

impl Domain {
    /// The number of domains.
    pub const COUNT: usize = 4;
    /// All of them, in the order of their turns.
    pub const ALL: [Self; Self::COUNT] = [Self::Read, Self::Write, Self::Discard, Self::Other];
}

/// Which time of a request Kyber measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// From its arrival to its completion.
    Total,
    /// From its dispatch to its completion.
    Device,
}

/// A workload of CFQ: the kind of queues that it serves within a class of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Workload {
    /// Asynchronous queues.
    Async = 0,
    /// Synchronous queues without an idle window; the device idles for the last of them only.
    SyncNoIdle = 1,
    /// Synchronous queues with an idle window; the device idles for each.
    Sync = 2,
}

impl Workload {
    /// The number of workloads.
    pub const COUNT: usize = 3;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [Self::Async, Self::SyncNoIdle, Self::Sync];
}

/// Why CFQ ended a queue's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceEnd {
    /// It has no request to dispatch, and the device does not idle for it.
    Empty,
    /// Its slice is over.
    SliceUsed,
    /// The device idled for its group, and a request came. The queue has to be chosen again.
    WaitBusy,
    /// A queue of the same group has a request near the last one.
    Cooperator,
    /// A new request of another queue preempted it.
    Preempted,
    /// It is of the idle class, which gets one request at a time.
    IdleClass,
    /// It is asynchronous and has dispatched as many requests as it may in a slice.
    AsyncRequests,
    /// The idle timer ended before its next request came.
    IdleTimer,
    /// Its I/O context has gone.
    Exit,
    /// Its last user has left it.
    Gone,
    /// The scheduler is drained.
    Drain,
    /// The device is switched to another hierarchy.
    HierarchySwitched,
}

/// Why BFQ ended a queue's service, as Linux's reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetEnd {
    /// The idle timer ended before its next request came (`TOO_IDLE`).
    TooIdle,
    /// It was in service for as long as a service may last (`BUDGET_TIMEOUT`), or its task is gone,
    /// or the scheduler is drained.
    Timeout,
    /// Its budget does not suffice for its next request (`BUDGET_EXHAUSTED`).
    Exhausted,
    /// It has no request to dispatch, and the device does not idle for it (`NO_MORE_REQUESTS`).
    NoMoreRequests,
    /// A new request of another queue preempted it, or it moves to another group (`PREEMPTED`).
    Preempted,
}

/// Why a new request of one queue preempted another queue in CFQ or BFQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PreemptReason {
    /// The active queue is of the idle class.
    OverIdleClass,
    /// The request is synchronous, and the active queue is asynchronous.
    SyncOverAsync,
    /// The slice of the active queue is over.
    SliceOver,
    /// The request is of the real-time class, and the active queue is not.
    RealTime,
    /// Both queues are without an idle window, and are served together.
    NoIdleWorkload,
    /// The request has the priority flag, and no request of the active queue has.
    Priority,
    /// The active queue is empty and has no idle window.
    NotIdling,
    /// The device idles for the active queue, and the request is near its last one.
    Close,
    /// BFQ: its queue is back in time to continue with its budget.
    InTime,
    /// BFQ: its queue is of a more urgent class.
    Class,
    /// BFQ: its queue, or group, has more weight.
    Weight,
}

/// Why the device does not idle for the active queue of CFQ, which ran empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoIdleReason {
    /// The device is non-rotational and has native queueing, and does not idle for groups.
    FastDevice,
    /// The queue has no idle window, and the device does not idle for groups.
    NotWorthIt,
    /// Requests of the queue are in flight.
    InFlight,
    /// The task that would issue the next request has exited.
    TaskGone,
    /// The mean think time of the task is longer than what is left of its slice.
    ThinksBeyondSlice,
    /// The device would idle for the group only, and that has other busy queues.
    GroupHasOthers,
    /// The device would idle for the group only, and the mean think time on its tree is too long.
    GroupThinksTooLong,
    /// In kernels that idle only if asked: no request of the served workload asks for it, and the
    /// group has other busy queues.
    NotAsked,
}

/// Why wfq chose a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FairWhy {
    /// Its tag is the least.
    Weight,
    /// Its group, or one above it, is behind its reservation.
    Reserved,
}

/// Why wfq holds back what waits below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldReason {
    /// A cap, in one direction at least.
    Cap,
    /// The room is kept for a tenant that has much outstanding and nothing waiting for a moment.
    Kept,
    /// The room is held free, as another group misses its latency target.
    Target,
}

/// What has become of a latency target of wfq in one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetVerdict {
    /// It was missed: others have fewer requests in the device from now on.
    Missed,
    /// It was reached with room to spare: others have more.
    Reached,
    /// The group asks for nothing: nobody is held for it.
    Idle,
    /// It cannot be met however few others have: they are not held for some seconds.
    Unmet,
}

/// How wfq tries another depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrialKind {
    /// More requests in the device.
    Up,
    /// Fewer.
    Down,
    /// Fewer than the clients have in it, where they do not fill the depth.
    Soft,
}

/// What a trial of another depth has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrialVerdict {
    /// The other depth holds.
    Accepted,
    /// The depth stays as it is.
    Rejected,
}

/// What has a price of its own under wfq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriceOf {
    /// Bytes: how many cost as much as one op.
    Bytes,
    /// Writes, trims and zeroes, in percent of a read of the same size.
    Writes,
    /// Writes with FUA, likewise.
    Fua,
}

/// Whether a measurement of the device's speed says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowVerdict {
    /// It does.
    Valid,
    /// For more than a twentieth of it nothing waited, and the device had room.
    Starved,
    /// It is full of gaps between completions.
    Bursty,
}

/// Why a scheduler dispatches nothing though requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitReason {
    /// The idle timer runs for the active queue.
    IdleTimer,
    /// Requests of the active queue are in flight, and the device will idle for it.
    InFlight,
    /// The active queue is all that its group has, and requests of the group are in flight.
    GroupInFlight,
    /// Asynchronous requests have to complete before the active queue, which has an idle window,
    /// may dispatch.
    GateAsyncDrains,
    /// Synchronous requests have to complete before the active queue, which is asynchronous, may
    /// dispatch.
    GateSyncDrains,
    /// The active queue has as many requests in flight as it may.
    GateDepth,
    /// BFQ dispatches one request at a time, because of `strict_guarantees`.
    OneAtATime,
    /// Kyber has no token for any domain with requests that wait.
    NoToken,
    /// wfq keeps the room in the device for a tenant that has nothing waiting for a moment.
    Kept,
    /// The device has as many requests in flight as its depth allows.
    DeviceFull,
    /// wfq: the next one would be of a group that has as many in the device as it may while another
    /// misses its latency target.
    Target,
    /// Caps hold all that waits.
    Capped,
}
