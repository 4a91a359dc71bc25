//! The events.

use super::{
    BatchReason, BudgetEnd, Domain, FairWhy, HoldReason, LatencyKind, MergeKind, MergeSite,
    NoIdleReason, PreemptReason, PriceOf, QueueName, ShareOf, SliceEnd, TargetVerdict, TrialKind,
    TrialVerdict, WaitReason, WindowVerdict, Workload,
};
use crate::arena::{GroupId, IocId, RequestId};
use crate::hierarchy::Hierarchy;
use crate::io_context::{IoClass, IoPrio};
use crate::plug::FlushReason;
use crate::request::{Direction, Op, Sector, SectorCount};
use crate::time::{Instant, Nanos, Ticks};
use crate::wfq::Vtime;

/// One event. It may get further fields, so a pattern ends with `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A bio arrived. There is one of these for a bio, however often it is turned away.
    #[non_exhaustive]
    Queued {
        /// The bio.
        bio: u64,
        /// The I/O context that submitted it.
        ioc: IocId,
        /// Its operation.
        op: Op,
        /// Its first sector.
        sector: Sector,
        /// Its length.
        sectors: SectorCount,
    },
    /// A bio merged into a request.
    #[non_exhaustive]
    Merged {
        /// The bio.
        bio: u64,
        /// The request.
        into: u64,
        /// At which end of the request.
        kind: MergeKind,
        /// Which lookup found the request.
        site: MergeSite,
    },
    /// A submitter's plug was flushed (`block_unplug`): what it held of this device arrives now.
    #[non_exhaustive]
    Unplugged {
        /// How many chains arrive.
        depth: u32,
        /// Why it was flushed.
        reason: FlushReason,
        /// How long the oldest chain of the plug had been in it.
        age: Nanos,
    },
    /// A request absorbed the one behind it.
    #[non_exhaustive]
    Absorbed {
        /// The request that was absorbed; it is gone.
        absorbed: u64,
        /// The request that absorbed it.
        into: u64,
        /// Which lookup found the request.
        site: MergeSite,
    },
    /// A request was dispatched.
    #[non_exhaustive]
    Dispatched {
        /// The request.
        rq: u64,
        /// Its key, which names it alone for as long as it exists.
        key: RequestId,
        /// Its group.
        group: GroupId,
    },
    /// The device could not take a dispatched request; it was requeued.
    #[non_exhaustive]
    Requeued {
        /// The request.
        rq: u64,
        /// Its key, which names it alone for as long as it exists.
        key: RequestId,
        /// Its group.
        group: GroupId,
    },
    /// A request completed.
    #[non_exhaustive]
    Completed {
        /// The request.
        rq: u64,
        /// Its key, which names it alone for as long as it exists.
        key: RequestId,
        /// Its group.
        group: GroupId,
        /// Its length.
        sectors: SectorCount,
    },
    /// A group has a request that waits, from now on.
    #[non_exhaustive]
    GroupWaits {
        /// The group.
        group: GroupId,
    },
    /// A group has no request that waits any more.
    #[non_exhaustive]
    GroupWaitsNoMore {
        /// The group.
        group: GroupId,
    },
    /// mq-deadline: a batch began.
    #[non_exhaustive]
    Batch {
        /// Its direction.
        direction: Direction,
        /// Its class.
        class: IoClass,
        /// How often reads were preferred over waiting writes since the last batch of writes.
        starved: u32,
        /// Why it began with this request.
        reason: BatchReason,
    },
    /// mq-deadline: a request of a lower class was dispatched, as it had waited too long.
    #[non_exhaustive]
    Aged {
        /// The class.
        class: IoClass,
    },
    /// Kyber: a percentile of a domain's latencies was computed (`kyber_latency`).
    #[non_exhaustive]
    Latency {
        /// The domain.
        domain: Domain,
        /// Of which time.
        kind: LatencyKind,
        /// The percentile.
        percent: u32,
        /// In which quarter of the domain's target it lies, 1 to 8; the 4th ends at the target.
        quarters: u32,
        /// How many latencies it was computed of.
        samples: u32,
    },
    /// Kyber: the depth of a domain has changed (`kyber_adjust`).
    #[non_exhaustive]
    DepthChanged {
        /// The domain.
        domain: Domain,
        /// How many of its requests may be in flight.
        depth: u32,
    },
    /// Kyber: requests of a domain wait, and it has no token for one (`kyber_throttled`).
    #[non_exhaustive]
    Throttled {
        /// The domain.
        domain: Domain,
    },
    /// CFQ, BFQ: a queue was created (`alloced`).
    #[non_exhaustive]
    QueueMade {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
    },
    /// CFQ, BFQ: a queue has another class or level from now on, or from its next turn on: that of
    /// its I/O context is another or, in CFQ, a request with the priority flag raised it or left.
    #[non_exhaustive]
    Priority {
        /// The queue.
        queue: QueueName,
        /// Its class and level.
        io_prio: IoPrio,
    },
    /// CFQ, BFQ: a queue becomes busy (`add_to_rr`).
    #[non_exhaustive]
    Busy {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a queue is no longer busy (`del_from_rr`).
    #[non_exhaustive]
    NotBusy {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a queue was freed: its last user and its last request are gone (`put_queue`).
    #[non_exhaustive]
    QueueFreed {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a task is in another group than at its last request (`changed cgroup`) and leaves
    /// the queues that it shares in the old one. CFQ also drops its own queue; BFQ moves it.
    #[non_exhaustive]
    GroupMoved {
        /// The task.
        ioc: IocId,
    },
    /// CFQ: a group has no busy queue any more (`del_from_rr group`).
    #[non_exhaustive]
    GroupLeft {
        /// The group.
        group: GroupId,
    },
    /// CFQ: groups share the device in another way from now on.
    #[non_exhaustive]
    HierarchySwitched {
        /// In which way.
        to: Hierarchy,
    },
    /// CFQ: the workload that a group is served with next was chosen (`workload slice`).
    #[non_exhaustive]
    Workload {
        /// The group.
        group: GroupId,
        /// The class.
        class: IoClass,
        /// The workload.
        workload: Workload,
        /// For how long.
        span: Nanos,
    },
    /// CFQ: a queue is active from now on (`set_active`); BFQ has [`Event::InService`].
    #[non_exhaustive]
    Active {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
        /// The class that is being served.
        class: IoClass,
        /// The workload that is being served.
        workload: Workload,
    },
    /// CFQ: the slice of the active queue begins (`set_slice`).
    #[non_exhaustive]
    Slice {
        /// The queue.
        queue: QueueName,
        /// Its length.
        length: Nanos,
    },
    /// CFQ: a queue's slice ends (`slice expired`, `sl_used`, `served`); BFQ: `BudgetExpired`.
    #[non_exhaustive]
    SliceExpired {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
        /// Why.
        why: SliceEnd,
        /// What is left of the slice in ns, negative if more was used; none if it is not carried
        /// over.
        residue: Option<i64>,
        /// The time of the slice that was used.
        used: Nanos,
        /// The time for which the queue was active beyond that.
        unaccounted: Nanos,
        /// Requests dispatched.
        dispatched: u32,
        /// What the group is charged: nanoseconds, or requests in IOPS mode.
        charge: u64,
        /// Whether groups are charged for requests.
        iops_mode: bool,
        /// Sectors dispatched.
        sectors: u64,
        /// The group's vdisktime after the charge: ns (or requests) × 2²⁴ / its fraction.
        vdisktime: u64,
        /// The least vdisktime of a chosen group so far.
        min_vdisktime: u64,
    },
    /// CFQ of kernels 2.6.35 to 2.6.37: what the ended slice was charged, in ticks (`sl_used`).
    #[non_exhaustive]
    SliceUsed {
        /// The queue.
        queue: QueueName,
        /// The time of the slice that was used.
        used: Ticks,
        /// Requests dispatched.
        dispatched: u32,
        /// What the group is charged: ticks, or requests in IOPS mode.
        charge: u64,
        /// Whether groups are charged for requests.
        iops_mode: bool,
        /// Sectors dispatched.
        sectors: u64,
    },
    /// CFQ of kernels 2.6.35 to 2.6.37: a queue competes in another group from now on (`moving to
    /// root group`).
    #[non_exhaustive]
    QueueMoved {
        /// The queue.
        queue: QueueName,
        /// The group that it leaves.
        from: GroupId,
        /// The group in which it competes now.
        to: GroupId,
    },
    /// CFQ: a queue earns or loses its idle window (`idle=`).
    #[non_exhaustive]
    IdleWindow {
        /// The queue.
        queue: QueueName,
        /// Whether it has one now.
        on: bool,
    },
    /// CFQ: a seeky queue loses its idle window because it ran empty early in its slice.
    #[non_exhaustive]
    WindowGivenUp {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ: the device idles for the active queue (`arm_idle`); BFQ has [`Event::BudgetIdling`].
    #[non_exhaustive]
    SliceIdling {
        /// The queue.
        queue: QueueName,
        /// For how long.
        length: Nanos,
        /// Whether the device idles for its group rather than for the queue.
        for_group: bool,
    },
    /// CFQ: the active queue ran empty, and the device does not idle for it (`Not idling`).
    #[non_exhaustive]
    NotIdling {
        /// The queue.
        queue: QueueName,
        /// Why not.
        why: NoIdleReason,
    },
    /// CFQ, BFQ: the request that the device idled for has not come (`idle timer fired`).
    IdleTimerFired,
    /// CFQ: the slice of a group's only queue was extended (`will busy wait`).
    #[non_exhaustive]
    WaitBusy {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a new request makes the active queue, or the queue in service, expire (`preempt`).
    #[non_exhaustive]
    Preempted {
        /// The queue of the request.
        by: QueueName,
        /// The queue that expires.
        over: QueueName,
        /// Why.
        why: PreemptReason,
    },
    /// CFQ, BFQ: two queues are to merge: each user of one goes to the other at its next request.
    #[non_exhaustive]
    MergePlanned {
        /// The queue.
        queue: QueueName,
        /// The other.
        into: QueueName,
    },
    /// CFQ, BFQ: a task uses the queue of another task from now on (`merging with queue`).
    #[non_exhaustive]
    QueuesMerged {
        /// The task's queue so far.
        queue: QueueName,
        /// The other.
        into: QueueName,
    },
    /// CFQ, BFQ: a shared queue is seeky, and is to be split.
    #[non_exhaustive]
    SplitPlanned {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: a task leaves a shared queue (`breaking apart`).
    #[non_exhaustive]
    QueueSplit {
        /// The queue.
        queue: QueueName,
    },
    /// CFQ, BFQ: the oldest request of a queue is overdue and goes first (`fifo=`).
    #[non_exhaustive]
    Overdue {
        /// The queue.
        queue: QueueName,
        /// The request.
        rq: u64,
    },
    /// CFQ, BFQ: the scheduler learned whether the device has native queueing.
    #[non_exhaustive]
    HardwareQueueing {
        /// What it took for true before; none if that was unknown.
        before: Option<bool>,
        /// Whether the device has native queueing, as far as is known now.
        now: bool,
    },
    /// BFQ: a queue is put in service; CFQ has [`Event::Active`].
    #[non_exhaustive]
    InService {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
        /// How many sectors it may have served.
        budget: SectorCount,
        /// Its weight, raised or not.
        weight: u32,
    },
    /// BFQ: a queue's service ends (`expire`); CFQ has [`Event::SliceExpired`].
    #[non_exhaustive]
    BudgetExpired {
        /// The queue.
        queue: QueueName,
        /// Why.
        why: BudgetEnd,
        /// Whether it was slow. Then its time is charged, unless the queue is raised.
        slow: bool,
        /// The sectors that it is charged.
        service: SectorCount,
        /// The sectors that it might have had served.
        budget: SectorCount,
        /// Its requests in flight.
        in_flight: u32,
    },
    /// BFQ: the device idles for the queue in service; CFQ has [`Event::SliceIdling`].
    #[non_exhaustive]
    BudgetIdling {
        /// The queue.
        queue: QueueName,
        /// For how long.
        length: Nanos,
    },
    /// BFQ: a request of a queue was dispatched while another queue is in service.
    #[non_exhaustive]
    Injected {
        /// The queue.
        queue: QueueName,
        /// The queue in service.
        instead_of: QueueName,
    },
    /// BFQ: a queue has a new injection limit: how many requests of other queues may be in flight
    /// while the device idles for it.
    #[non_exhaustive]
    InjectionLimit {
        /// The queue.
        queue: QueueName,
        /// The limit.
        limit: u32,
    },
    /// BFQ: a queue was found whose completions make another queue busy (`waker`).
    #[non_exhaustive]
    WakerFound {
        /// The queue that becomes busy.
        queue: QueueName,
        /// The queue whose requests complete.
        waker: QueueName,
    },
    /// BFQ: weight raising of a queue began or ended (`wrais`).
    #[non_exhaustive]
    Raised {
        /// The queue.
        queue: QueueName,
        /// The raising factor; 1 if it ended.
        factor: u32,
        /// For how long at most.
        length: Nanos,
    },
    /// BFQ: a burst became large: so many queues became busy together that none of them is raised.
    LargeBurst,
    /// BFQ: merging of queues by position was turned on or off.
    #[non_exhaustive]
    QueueMerging {
        /// Whether it is on.
        on: bool,
    },
    /// BFQ: the estimate of the device's peak rate was updated.
    #[non_exhaustive]
    PeakRate {
        /// The rate in sectors a microsecond × 2¹⁶.
        rate: u32,
    },
    /// BFQ: the greatest budget of any queue has changed.
    #[non_exhaustive]
    MaxBudget {
        /// The greatest budget now.
        sectors: SectorCount,
    },
    /// wfq: one that had nothing waiting, or only what was held back, has something now.
    #[non_exhaustive]
    FairBusy {
        /// Who.
        node: ShareOf,
        /// Its tag.
        start: Vtime,
        /// The virtual time among its siblings.
        v: Vtime,
        /// How far its tag is ahead of that, in thousandths of an op.
        lag: u64,
    },
    /// wfq: a request was chosen.
    #[non_exhaustive]
    FairDispatch {
        /// The request.
        rq: u64,
        /// The tag by which it was chosen below the root.
        start: Vtime,
        /// What it is charged, in units of which 2²⁰ are one op; 0 if it was charged before.
        charge: u64,
        /// Why it was chosen.
        why: FairWhy,
    },
    /// wfq: some of what waits below a node is held back from now on. By a cap: of the group, or
    /// for its own requests that of a group above it too.
    #[non_exhaustive]
    FairHeld {
        /// Who.
        node: ShareOf,
        /// Why.
        why: HoldReason,
        /// When the cap lets it go on, if it stays as it is; none where it is no cap.
        until: Option<Instant>,
    },
    /// wfq: no cap holds back anything that waits below a node any more.
    #[non_exhaustive]
    FairReleased {
        /// Who.
        node: ShareOf,
    },
    /// Another scheduler is there from now on, and the events of the one before are over.
    SchedulerSwitched,
    /// wfq: another depth is tried from the next window on.
    #[non_exhaustive]
    DepthTrial {
        /// The depth that holds.
        from: u32,
        /// The depth that is tried.
        to: u32,
        /// Which trial.
        kind: TrialKind,
    },
    /// wfq: a trial of another depth is over.
    #[non_exhaustive]
    DepthVerdict {
        /// The depth that held.
        from: u32,
        /// The depth that was tried.
        to: u32,
        /// By how much it was faster, in parts per million.
        mean_ppm: i64,
        /// Pairs of windows that were compared.
        pairs: u32,
        /// Whether it holds from now on.
        verdict: TrialVerdict,
    },
    /// wfq: the device has become faster or slower; a trial that ran is dropped.
    #[non_exhaustive]
    DepthJolt {
        /// Ops a second now.
        speed: u64,
        /// Ops a second before.
        was: u64,
    },
    /// wfq: a measurement of the device's speed is over.
    #[non_exhaustive]
    WindowClosed {
        /// Requests that completed.
        completions: u32,
        /// Ops a second.
        speed: u64,
        /// Whether it says something.
        why: WindowVerdict,
    },
    /// wfq: a price was wrong. In bytes that cost as much as one op, or in percent of a read.
    #[non_exhaustive]
    #[expect(missing_docs, reason = "of what, from what, to what")]
    PriceMoved { which: PriceOf, from: u64, to: u64 },
    /// wfq: a period of a group with a latency target is over, and others may have more or fewer
    /// requests in the device.
    #[non_exhaustive]
    TargetJudged {
        /// The group.
        group: GroupId,
        /// Requests of the period that took longer than the target,
        late: u32,
        /// of so many.
        requests: u32,
        /// How it was judged.
        verdict: TargetVerdict,
        /// How many requests groups with a later target or none may have in the device from now on;
        /// none where they are not held.
        held: Option<u32>,
    },
    /// Requests wait, and the scheduler dispatches none.
    #[non_exhaustive]
    Waiting {
        /// Why.
        why: WaitReason,
    },
    /// All waiting requests were taken out of the scheduler (`forced_dispatch`).
    #[non_exhaustive]
    Drained {
        /// How many there were.
        requests: u32,
    },
}
