//! What happened and why, one event for every decision.
//!
//! Events that one of Linux's traces also tells name its text. What the block layer itself does
//! with a request (insert, activate, complete) is told by the elevator's events.
//!
//! A scheduler owns its sink and is generic over it: [`NoTrace`] costs nothing, [`Recorder`]
//! serves tests and the laboratory. A request is named by the bio that it was made of.

mod reasons;

pub use reasons::{
    BatchReason, BudgetEnd, ExpireReason, MergeKind, MergeSite, NoIdleReason, PreemptReason,
    WaitReason, Workload,
};

use crate::arena::{GroupId, IocId};
use crate::io_context::{IoClass, IoPrio};
use crate::request::{Direction, Op, Sector, SectorCount};
use crate::time::{Instant, Nanos};

/// Takes the events of one elevator and its scheduler.
pub trait Trace {
    /// Takes one event, which happened at `now`.
    fn event(&mut self, now: Instant, event: Event);
}

/// A scheduler's queue, by who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// The I/O context that made it, or the last one that uses it since its users parted. It may
    /// be gone.
    pub ioc: IocId,
    /// Whether it holds what somebody waits for.
    pub sync: bool,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A bio arrived.
    Queued {
        /// The bio.
        bio: u64,
        /// Its operation.
        op: Op,
        /// Where it starts.
        sector: Sector,
        /// How long it is.
        sectors: SectorCount,
    },
    /// A bio became part of a request.
    Merged {
        /// The bio.
        bio: u64,
        /// The request.
        into: u64,
        /// At which of its ends.
        kind: MergeKind,
        /// How they met.
        site: MergeSite,
    },
    /// A request became part of the one before it.
    Joined {
        /// The one that is gone.
        gone: u64,
        /// The one that it is part of now.
        into: u64,
        /// How they met.
        site: MergeSite,
    },
    /// A request went to the device.
    Dispatched {
        /// The request.
        rq: u64,
    },
    /// The device handed a request back unserved.
    Requeued {
        /// The request.
        rq: u64,
    },
    /// A request was done.
    Completed {
        /// The request.
        rq: u64,
    },
    /// mq-deadline: a batch begins.
    Batch {
        /// In this direction.
        direction: Direction,
        /// Of this class.
        class: IoClass,
        /// How often reads were preferred over waiting writes.
        starved: u32,
        /// Why with this request.
        reason: BatchReason,
    },
    /// mq-deadline: a lower class was served for the age of its request.
    Aged {
        /// The class.
        class: IoClass,
    },
    /// CFQ, BFQ: a queue is made (`alloced`).
    QueueMade {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
    },
    /// CFQ, BFQ: a queue is served by another class or level from now on, or when it is next
    /// scheduled: its user's have changed, or (CFQ) a request with priority raises it, or it falls
    /// back.
    Priority {
        /// The queue.
        queue: QueueName,
        /// Its class and level.
        io_prio: IoPrio,
    },
    /// CFQ, BFQ: a queue wants turns from now on (`add_to_rr`).
    Listed {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a queue wants no turn any more (`del_from_rr`).
    Unlisted {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: the last user of a queue and its last request have gone (`put_queue`).
    QueueFreed {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a task is in another group than at its last request, and uses the queues that it
    /// shares there no more (`changed cgroup`). CFQ drops its own queue as well, BFQ takes that
    /// along.
    GroupMoved {
        /// The task.
        ioc: IocId,
    },
    /// CFQ: a group has no queue that wants turns (`del_from_rr group`).
    GroupLeft {
        /// The group.
        group: GroupId,
    },
    /// CFQ: what a group is served with next is chosen (`workload slice`).
    Workload {
        /// The group.
        group: GroupId,
        /// The class.
        class: IoClass,
        /// Which of its queues.
        workload: Workload,
        /// For how long.
        span: Nanos,
    },
    /// CFQ: a queue's turn begins (`set_active`).
    Active {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
        /// The class that is served.
        class: IoClass,
        /// The workload that is served.
        workload: Workload,
    },
    /// CFQ: the slice of the active queue begins (`set_slice`).
    Slice {
        /// The queue.
        queue: QueueName,
        /// How long it is.
        length: Nanos,
    },
    /// CFQ: a queue's turn ends (`slice expired`, `sl_used`, `served`).
    Expired {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
        /// Why.
        why: ExpireReason,
        /// What is left of the slice in ns, negative where more was used, where that is carried
        /// over.
        residue: Option<i64>,
        /// The time of the slice that was used.
        used: Nanos,
        /// The time of the turn beyond that.
        unaccounted: Nanos,
        /// Requests sent.
        sent: u32,
        /// What the group is charged: nanoseconds, or requests in IOPS mode.
        charge: u64,
        /// Whether groups are charged for requests.
        iops_mode: bool,
        /// Sectors sent.
        sectors: u64,
        /// The group's vdisktime after the charge: ns (or requests) × 2²⁴ / its fraction.
        vdisktime: u64,
        /// The least vdisktime of a chosen group so far.
        min_vdisktime: u64,
    },
    /// CFQ: a queue begins or ceases to be worth waiting for (`idle=`).
    IdleWindow {
        /// The queue.
        queue: QueueName,
        /// Whether it is.
        on: bool,
    },
    /// CFQ: a seeky queue that has run empty early in its slice ceases to be worth waiting for.
    WindowGivenUp {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ: the device is kept free for the active queue (`arm_idle`).
    IdleArmed {
        /// The queue.
        queue: QueueName,
        /// For how long.
        length: Nanos,
        /// Whether for the sake of its group.
        for_group: bool,
    },
    /// CFQ: the device is not kept free for the active queue, which has run empty (`Not idling`).
    NotIdling {
        /// The queue.
        queue: QueueName,
        /// Why not.
        why: NoIdleReason,
    },
    /// CFQ, BFQ: what the device was kept free for has not come (`idle timer fired`).
    IdleTimerFired,
    /// CFQ: the slice of a group's only queue is stretched (`will busy wait`).
    WaitBusy {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a queue's request takes the device from the active queue (`preempt`).
    Preempted {
        /// The queue.
        by: QueueName,
        /// The active queue.
        over: QueueName,
        /// Why.
        why: PreemptReason,
    },
    /// CFQ, BFQ: the users of a queue are to go to another, each at its next request.
    MergePlanned {
        /// The queue.
        queue: QueueName,
        /// The other.
        into: QueueName,
    },
    /// CFQ, BFQ: a task's requests go to the queue of another from now on (`merging with queue`).
    QueuesMerged {
        /// The task's queue so far.
        queue: QueueName,
        /// The other.
        into: QueueName,
    },
    /// CFQ, BFQ: the users of a shared queue, which is seeky, are to part.
    SplitPlanned {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a task leaves a shared queue (`breaking apart`).
    QueueSplit {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: the oldest request of a queue is late, and goes first (`fifo=`).
    Overdue {
        /// The queue.
        queue: QueueName,
        /// The request.
        rq: u64,
    },
    /// CFQ, BFQ: whether the device queues requests itself is known, or known better.
    HardwareQueueing {
        /// What was known before.
        before: Option<bool>,
        /// What is known now.
        now: bool,
    },
    /// BFQ: a queue is put in service.
    InService {
        /// The queue.
        queue: QueueName,
        /// What it may have served.
        budget: SectorCount,
        /// Its weight, raised or not.
        weight: u32,
    },
    /// BFQ: a queue's turn ends (`expire`).
    BudgetExpired {
        /// The queue.
        queue: QueueName,
        /// Why.
        why: BudgetEnd,
        /// Whether the turn was slow: its time was charged, unless the queue is raised.
        slow: bool,
        /// What was charged.
        service: SectorCount,
        /// What it might have had served.
        budget: SectorCount,
        /// Requests of it in the device.
        in_flight: u32,
    },
    /// BFQ: the device is kept free for the queue in service.
    Idling {
        /// The queue.
        queue: QueueName,
        /// For how long.
        length: Nanos,
    },
    /// BFQ: a request of a queue is sent while another queue is in service.
    Injected {
        /// The queue.
        queue: QueueName,
        /// The queue in service.
        instead_of: QueueName,
    },
    /// BFQ: how many requests of others may be in the device while a queue is kept empty.
    InjectionLimit {
        /// The queue.
        queue: QueueName,
        /// How many.
        limit: u32,
    },
    /// BFQ: a queue waits for another's requests to complete (`waker`).
    WakerFound {
        /// The queue that waits.
        queue: QueueName,
        /// The other.
        waker: QueueName,
    },
    /// BFQ: a queue's weight is raised, or not any more (`wrais`).
    Raised {
        /// The queue.
        queue: QueueName,
        /// By which factor; 1 if not.
        factor: u32,
        /// For how long at most.
        length: Nanos,
    },
    /// BFQ: so many queues came to life together that none of them is raised.
    LargeBurst,
    /// BFQ: whether queues are merged for the position of their requests has changed.
    QueueMerging {
        /// Whether they are.
        on: bool,
    },
    /// BFQ: the estimate of the device's peak rate was brought up to date.
    PeakRate {
        /// Sectors a microsecond × 2¹⁶.
        rate: u32,
    },
    /// BFQ: the greatest budget has changed.
    MaxBudget {
        /// What it is.
        sectors: SectorCount,
    },
    /// Requests wait and none is given.
    Waiting {
        /// Why.
        why: WaitReason,
    },
    /// All that waits was taken out of the scheduler (`forced_dispatch`).
    Drained {
        /// How much that was.
        requests: u32,
    },
}

/// A sink that costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    #[inline(always)]
    fn event(&mut self, _now: Instant, _event: Event) {}
}

/// A sink that keeps everything, until it is taken.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    events: Vec<(Instant, Event)>,
}

impl Recorder {
    /// What was recorded since the last call.
    pub fn take(&mut self) -> Vec<(Instant, Event)> {
        std::mem::take(&mut self.events)
    }
}

impl Trace for Recorder {
    fn event(&mut self, now: Instant, event: Event) {
        self.events.push((now, event));
    }
}
