//! Why something was decided: the reasons that events carry.

/// Where two pieces of I/O met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeSite {
    /// The request of the last merge.
    Cache,
    /// The table of ends.
    Hash,
    /// The scheduler's sort list.
    Tree,
    /// A scan of the newest requests of a list.
    Scan,
    /// A whole request as it was inserted.
    Insert,
    /// The neighbour that a grown request came to touch.
    Neighbour,
}

/// At which end of a request another piece was added.
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
    /// There was no request to go on from.
    Start,
    /// The oldest request of the direction had expired.
    Expired,
    /// Onward from where the direction stopped.
    Onward,
}

/// What kind of work CFQ serves within a class of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Workload {
    /// What nobody waits for.
    Async = 0,
    /// Queues that are worth waiting for only together.
    SyncNoIdle = 1,
    /// Queues that are worth waiting for one by one.
    Sync = 2,
}

impl Workload {
    /// The number of kinds.
    pub const COUNT: usize = 3;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [Self::Async, Self::SyncNoIdle, Self::Sync];
}

/// Why CFQ ended a queue's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpireReason {
    /// It has nothing to send and is not waited for.
    Empty,
    /// Its slice is over.
    SliceUsed,
    /// Its group was waited for, and its request has come: it has to win anew.
    WaitBusy,
    /// A queue of the same group has a request near the head.
    Cooperator,
    /// Another queue's request may not wait.
    Preempted,
    /// It is of the idle class, which has the device for a request at a time.
    IdleClass,
    /// It is async and has sent its number of requests.
    AsyncRequests,
    /// The request that it was waited for did not come in time.
    IdleTimer,
    /// Its I/O context has gone.
    Exit,
    /// Its last user has left it.
    Gone,
    /// The scheduler is switched, or gives up what waits.
    Drain,
}

/// Why BFQ ended a queue's turn, as Linux's reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetEnd {
    /// The request that it was waited for did not come in time (`TOO_IDLE`).
    TooIdle,
    /// It had the device for as long as a turn may last (`BUDGET_TIMEOUT`), or its task has gone,
    /// or the scheduler gives up what waits.
    Timeout,
    /// Its budget does not suffice for its next request (`BUDGET_EXHAUSTED`).
    Exhausted,
    /// It has nothing to send and is not waited for (`NO_MORE_REQUESTS`).
    NoMoreRequests,
    /// Another queue's request may not wait, or it goes to another group (`PREEMPTED`).
    Preempted,
}

/// Why CFQ or BFQ let a request of one queue take the device from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PreemptReason {
    /// The active queue is of the idle class.
    OverIdleClass,
    /// Somebody waits for the request, and the active queue is async.
    SyncOverAsync,
    /// The slice of the active queue is over.
    SliceOver,
    /// It is real time, and the active queue is not.
    RealTime,
    /// Both are served together with others that are not waited for one by one.
    NoIdleWorkload,
    /// It has priority, and the active queue holds no request that has.
    Priority,
    /// The active queue is empty and not worth waiting for.
    NotIdling,
    /// The active queue is waited for, and the request is near the head.
    Close,
    /// BFQ: its queue is back in time to go on with its budget.
    InTime,
    /// BFQ: it is of a more urgent class.
    Class,
    /// BFQ: its queue, or group, has more weight.
    Weight,
}

/// Why CFQ does not keep the device free for the active queue, which has run empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoIdleReason {
    /// The device does not seek and queues requests, and groups are not waited for.
    FastDevice,
    /// The queue is not worth waiting for, and groups are not waited for.
    NotWorthIt,
    /// Requests of the queue are in flight.
    InFlight,
    /// No task is known that would make a request: it has exited.
    TaskGone,
    /// The task surely thinks for longer than its slice has left.
    ThinksBeyondSlice,
    /// Only the group might be waited for, and it has other queues.
    GroupHasOthers,
    /// Only the group might be waited for, and those on its tree surely think for too long.
    GroupThinksTooLong,
}

/// Why nothing is given though requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitReason {
    /// The idle timer runs for the active queue.
    IdleTimer,
    /// Requests of the active queue are in flight, and it is worth waiting for.
    InFlight,
    /// The active queue is all that its group has, and requests of the group are in flight.
    GroupInFlight,
    /// Async requests have to leave the device before the active queue, which is waited for, sends.
    GateAsyncDrains,
    /// Sync requests have to leave the device before the active queue, which is async, sends.
    GateSyncDrains,
    /// As many requests of the active queue are in flight as may be.
    GateDepth,
    /// BFQ sends one request at a time, by `strict_guarantees`.
    OneAtATime,
    /// The device is full.
    DeviceFull,
}
