//! What BFQ decides.

use super::QueueName;
use super::declare::{Value, events, reasons};
use crate::arena::GroupId;
use crate::request::SectorCount;
use crate::time::Nanos;

events! {
    /// An event of BFQ; those that it shares with CFQ are [`QueueEvent`](crate::QueueEvent)s.
    pub enum BfqEvent;

    /// A queue is put in service.
    InService => "serve" {
        /// The queue.
        queue: QueueName => "q",
        /// How many sectors it may have served.
        budget: SectorCount => "budget",
        /// Its weight, raised or not.
        weight: u32 => "weight",
        /// Its group.
        group: GroupId,
    } says "serves {queue}: {budget} sectors, weight {weight}";
    /// A queue's service ends (`expire`).
    BudgetExpired => "expire" {
        /// The queue.
        queue: QueueName => "q",
        /// Why.
        why: BudgetEnd => "why",
        /// Whether it was slow: 1 or 0. Then its time is charged, unless the queue is raised.
        slow: bool => "slow",
        /// The sectors that it is charged.
        service: SectorCount => "charged",
        /// The sectors that it might have had served.
        budget: SectorCount => "budget",
        /// Its requests in flight.
        in_flight: u32 => "in_dev",
    } says {
        slow => "the service of {queue} ends: {why}; charged {service} sectors of {budget}, it was \
                 slow",
        true => "the service of {queue} ends: {why}; charged {service} sectors of {budget}",
    };
    /// The device idles for the queue in service.
    BudgetIdling => "idle" {
        /// The queue.
        queue: QueueName => "q",
        /// For how long at most, in ns.
        length: Nanos => "ns",
    } says "idles for the next request of {queue}, up to {length}";
    /// A request of a queue was dispatched while another queue is in service.
    Injected => "inject" {
        /// The queue.
        queue: QueueName => "q",
        /// The queue in service.
        instead_of: QueueName => "for",
    } says "injects a request of {queue} for {instead_of}";
    /// A queue has a new injection limit: how many requests of other queues may be in flight while
    /// the device idles for it.
    InjectionLimit => "inject_limit" {
        /// The queue.
        queue: QueueName => "q",
        /// The limit.
        limit: u32 => "v",
    } says "while {queue} is idled for, {limit} others may be in flight";
    /// A queue was found whose completions make another queue busy (`waker`).
    WakerFound => "waker" {
        /// The queue that becomes busy.
        queue: QueueName => "q",
        /// The queue whose requests complete.
        waker: QueueName => "waker",
    } says "{queue} is woken by {waker}";
    /// Weight raising of a queue began or ended (`wrais`). Ours also at each split, which gives
    /// back the raising from before the merge, changed or not.
    Raised => "wr" {
        /// The queue.
        queue: QueueName => "q",
        /// The raising factor; 1 if it ended.
        factor: u32 => "coeff",
        /// For how long at most, in ms; says nothing if it ended.
        length: Nanos => "ms" = Value::Millis(length),
    } says {
        factor <= 1 => "the weight of {queue} is raised no more",
        true => "the weight of {queue} is raised {factor} times, {length} at most",
    };
    /// A burst became large: so many queues became busy together that none of them is raised.
    LargeBurst => "large_burst" {
        /// 1: it is large.
        is_large: bool => "v",
    } says "many queues became busy together: none of them is raised";
    /// Whether the device is one that does not rotate and queues requests itself has changed.
    /// Queues are merged by position if it is not.
    QueueMerging => "nonrot_with_queueing" {
        /// 1: it is such a device, and queues are not merged; 0: it is not, and they are.
        on: bool => "v" = Value::Flag(!on),
    } says {
        on => "merging of queues by position is on",
        true => "merging of queues by position is off",
    };
    /// The estimate of the device's peak rate was updated.
    PeakRate => "rate" {
        /// The rate in sectors a microsecond × 2¹⁶.
        rate: u32 => "v" = Value::Rate(rate),
    } says "the device's peak rate is estimated at {rate}";
    /// The greatest budget of any queue has changed.
    MaxBudget => "max_budget" {
        /// The greatest budget now, in sectors.
        sectors: SectorCount => "v",
    } says "the greatest budget is {sectors} sectors";
}

reasons! {
    /// Why BFQ ended a queue's service, as Linux's reasons.
    #[non_exhaustive]
    pub enum BudgetEnd;
    TooIdle = "TOO_IDLE", "its next request has not come";
    /// It was in service for as long as a service may last, or its task is gone, or the scheduler
    /// is drained.
    Timeout = "BUDGET_TIMEOUT", "its time is over";
    Exhausted = "BUDGET_EXHAUSTED", "its budget does not suffice for its next request";
    NoMoreRequests = "NO_MORE_REQUESTS", "it has no request, and the device does not idle for it";
    /// By a new request of another queue, or because it moves to another group.
    Preempted = "PREEMPTED", "it is preempted";
}
