//! What CFQ decides.

use super::QueueName;
use super::declare::{Value, events, reasons};
use crate::arena::GroupId;
use crate::hierarchy::Hierarchy;
use crate::io_context::IoClass;
use crate::time::{Nanos, Ticks};

events! {
    /// An event of CFQ; those that it shares with BFQ are [`QueueEvent`](crate::QueueEvent)s.
    pub enum CfqEvent;

    /// A group has no busy queue any more (`del_from_rr group`).
    GroupLeft {
        /// The group.
        group: GroupId,
    };
    /// Groups share the device in another way from now on.
    HierarchySwitched {
        /// In which way.
        to: Hierarchy,
    };
    /// The workload that a group is served with next was chosen (`workload slice`).
    Workload => "workload" {
        /// The class.
        class: IoClass,
        /// The class and the workload: `CLASS/KIND`.
        workload: Workload => "wl" = Value::Tree(class, workload),
        /// The path of the group.
        group: GroupId => "group",
        /// For how long, in ns.
        span: Nanos => "ns",
    } says "group {group}: {workload} are next, for {span}";
    /// A queue is active from now on (`set_active`).
    Active => "active" {
        /// The queue.
        queue: QueueName => "q",
        /// The class that is being served.
        class: IoClass,
        /// The class and the workload that are being served: `CLASS/KIND`.
        workload: Workload => "wl" = Value::Tree(class, workload),
        /// The path of its group.
        group: GroupId => "group",
    } says "serves {queue} ({workload})";
    /// The slice of the active queue begins, with its first completion (`set_slice`).
    Slice => "slice" {
        /// The queue.
        queue: QueueName => "q",
        /// The length of the slice, in ns.
        length: Nanos => "ns",
    } says "the slice of {queue} begins: {length}";
    /// A queue's slice ends (`slice expired`, `sl_used`, `served`).
    SliceExpired => "expire" {
        /// The queue.
        queue: QueueName => "q",
        /// Why.
        why: SliceEnd => "why",
        /// What is left of the slice in ns, negative if more was used; none if it is not carried
        /// over.
        residue: Option<i64> => "resid",
        /// The time of the slice that was used, in ns.
        used: Nanos => "used",
        /// Requests dispatched in the slice.
        dispatched: u32 => "disp",
        /// What the group is charged: ns, or requests in IOPS mode.
        charge: u64 => "charge",
        /// Whether groups are charged for requests: 1 or 0.
        iops_mode: bool => "iops",
        /// Sectors dispatched in the slice.
        sectors: u64 => "sect",
        /// The path of its group.
        group: GroupId => "group",
        /// The group's vdisktime after the charge: ns (or requests) × 2²⁴ / the group's fraction of
        /// the device, of which all is 2¹²; in the other hierarchies × 2¹² × 500 / its weight, and
        /// 0 for the root in `entities`; in the kernels of 2010 ticks (or requests) × 2¹² × 500 /
        /// its weight.
        vdisktime: u64 => "vt",
        /// The time for which the queue was active beyond `used`.
        unaccounted: Nanos,
        /// The least vdisktime of a chosen group so far.
        min_vdisktime: u64,
    } says {
        iops_mode => "the slice of {queue} ends: {why}; {used} used, {dispatched} requests, \
                      {sectors} sectors; {group} is charged {charge} requests",
        true => "the slice of {queue} ends: {why}; {used} used, {dispatched} requests, \
                 {sectors} sectors; {group} is charged {charge:ns}",
    };
    /// CFQ of kernels 2.6.35 to 2.6.37, behind each `expire`: what the ended slice was
    /// charged, in ticks (`sl_used`).
    SliceUsed => "slice_used" {
        /// The queue.
        queue: QueueName => "q",
        /// The time of the slice that was used, in ticks.
        used: Ticks => "sl_used",
        /// Requests dispatched in the slice.
        dispatched: u32 => "disp",
        /// What the group is charged: ticks, or requests in IOPS mode.
        charge: u64 => "charge",
        /// Whether groups are charged for requests: 1 or 0.
        iops_mode: bool => "iops",
        /// Sectors dispatched in the slice.
        sectors: u64 => "sect",
    };
    /// CFQ of kernels 2.6.35 to 2.6.37: a queue competes in another group from now on (`moving to
    /// root group`).
    QueueMoved {
        /// The queue.
        queue: QueueName,
        /// The group that it leaves.
        from: GroupId,
        /// The group in which it competes now.
        to: GroupId,
    } says "{queue} competes in {to} instead of {from}";
    /// A queue earns or loses its idle window (`idle=`).
    IdleWindow => "idle_window" {
        /// The queue.
        queue: QueueName => "q",
        /// Whether it has one now: 1 or 0.
        on: bool => "on",
    } says {
        on => "{queue} earns its idle window",
        true => "{queue} loses its idle window",
    };
    /// A seeky queue loses its idle window because it ran empty early in its slice.
    WindowGivenUp {
        /// The queue.
        queue: QueueName,
    } says "{queue} loses its idle window: it is seeky and ran empty";
    /// The device idles for the active queue, which is empty (`arm_idle`).
    SliceIdling => "arm_idle" {
        /// The queue.
        queue: QueueName => "q",
        /// For how long at most, in ns.
        length: Nanos => "ns",
        /// Whether the device idles for its group (`group_idle`) rather than for the queue: 1 or 0.
        for_group: bool => "group",
    } says {
        for_group => "idles for the next request of the group of {queue}, up to {length}",
        true => "idles for the next request of {queue}, up to {length}",
    };
    /// The active queue ran empty, and the device does not idle for it (`Not idling`).
    NotIdling {
        /// The queue.
        queue: QueueName,
        /// Why not.
        why: NoIdleReason,
    } says "does not idle for {queue}: {why}";
    /// The slice of a group's only queue was extended, so that its next request finds it (`will
    /// busy wait`).
    WaitBusy => "wait_busy" {
        /// The queue.
        queue: QueueName => "q",
    } says "extends the slice of {queue}, all that its group has";
}

reasons! {
    /// A workload of CFQ: the kind of queues that it serves within a class of a group.
    #[derive(PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Workload;
    Async = "async", "asynchronous queues";
    /// They are synchronous; the device idles for the last of them only.
    SyncNoIdle = "noidle", "queues without an idle window";
    /// They are synchronous; the device idles for each.
    Sync = "sync", "queues with an idle window";
}

reasons! {
    /// Why CFQ ended a queue's slice.
    #[non_exhaustive]
    pub enum SliceEnd;
    Empty = "empty", "it has no request, and the device does not idle for it";
    SliceUsed = "slice_used", "it is used up";
    /// The queue has to be chosen again.
    WaitBusy = "wait_busy", "the request came that its group was idled for";
    Cooperator = "cooperator", "another queue of its group has a request near";
    /// A new request of another queue did that.
    Preempted = "preempted", "it is preempted";
    IdleClass = "idle_class", "the idle class gets one request at a time";
    AsyncRequests = "async_rq", "it has dispatched as many as an asynchronous queue may";
    IdleTimer = "idle_timer", "its next request has not come";
    Exit = "exit", "its task has exited";
    Gone = "queue_gone", "its last user has left it";
    Drain = "drain", "the scheduler is drained";
    HierarchySwitched = "hierarchy", "the hierarchy is switched";
}

reasons! {
    /// Why the device does not idle for the active queue of CFQ, which ran empty.
    #[non_exhaustive]
    pub enum NoIdleReason;
    /// Groups are not idled for.
    FastDevice, "the device is not rotational and queues itself";
    NotWorthIt, "it has no idle window, and groups are not idled for";
    InFlight, "requests of it are in flight";
    TaskGone, "its task has exited";
    /// By its mean think time, and what is left of the slice.
    ThinksBeyondSlice, "its task thinks for longer than the slice lasts";
    /// The device would idle for the group only.
    GroupHasOthers, "its group has other busy queues";
    /// The device would idle for the group only; the mean think time is that on its tree.
    GroupThinksTooLong, "its group thinks for too long";
    /// In kernels that idle only if asked.
    NotAsked, "no request asks for it, and its group has other busy queues";
}
