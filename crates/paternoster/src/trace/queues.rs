//! What CFQ and BFQ both decide of their queues.

use super::QueueName;
use super::declare::{Value, events, reasons};
use crate::arena::{GroupId, IocId};
use crate::io_context::IoPrio;

events! {
    /// An event of CFQ or BFQ, which both have queues of requests by their I/O context.
    pub enum QueueEvent;

    /// A queue was created (`alloced`).
    QueueMade {
        /// The queue.
        queue: QueueName,
        /// Its group.
        group: GroupId,
    };
    /// A queue has another class or level from now on, or from its next turn on: that of its I/O
    /// context is another or, in CFQ, a request with the priority flag raised it or left.
    Priority {
        /// The queue.
        queue: QueueName,
        /// Its class and level.
        io_prio: IoPrio,
    };
    /// A queue becomes busy (`add_to_rr`).
    Busy {
        /// The queue.
        queue: QueueName,
    } says "{queue} becomes busy";
    /// A queue is no longer busy (`del_from_rr`).
    NotBusy {
        /// The queue.
        queue: QueueName,
    } says "{queue} is no longer busy";
    /// A queue was freed: its last user and its last request are gone (`put_queue`).
    QueueFreed {
        /// The queue.
        queue: QueueName,
    };
    /// A task is in another group than at its last request (`changed cgroup`) and leaves the queues
    /// that it shares in the old one. CFQ also drops its own queue; BFQ moves it.
    GroupMoved {
        /// The task.
        ioc: IocId,
    };
    /// The request that the device idled for has not come in time (`idle timer fired`).
    IdleTimerFired => "idle_timer"
        says "the request that the device idled for has not come";
    /// A new request makes the active queue, or the queue in service, expire (`preempt`).
    Preempted => "preempt" {
        /// The queue of the request.
        by: QueueName => "q",
        /// The queue that expires.
        over: QueueName => "over",
        /// Why.
        why: PreemptReason,
    } says "{by} preempts {over}: {why}";
    /// Two queues are to merge: each user of one goes to the other at its next request.
    MergePlanned {
        /// The queue.
        queue: QueueName,
        /// The other.
        into: QueueName,
    };
    /// A task uses the queue of another task from now on (`merging with queue`).
    QueuesMerged => "merge_queues" {
        /// The task's queue so far.
        queue: QueueName => "q",
        /// The other.
        into: QueueName => "into",
    } says "the queue of {queue} merges into that of {into}";
    /// A shared queue is seeky, and is to be split.
    SplitPlanned {
        /// The queue.
        queue: QueueName,
    };
    /// A task leaves a shared queue (`breaking apart`).
    QueueSplit => "split_queue" {
        /// The queue.
        queue: QueueName => "q",
    } says "{queue} leaves a shared queue";
    /// The oldest request of a queue is overdue and goes first (`fifo=`).
    Overdue => "fifo" {
        /// The queue.
        queue: QueueName => "q",
        /// The request.
        rq: u64 => "rq" = Value::Request(rq),
    } says "the oldest request of {queue} is overdue and goes first";
    /// The scheduler learned whether the device has native queueing.
    HardwareQueueing => "hw_tag" {
        /// What it took for true before: 1 it has, 0 it does not, −1 not known.
        before: Option<bool> => "from",
        /// Whether the device has native queueing, as far as is known now: 1 or 0.
        now: bool => "to",
    } says {
        now => "the device seems to queue requests itself",
        true => "the device seems not to queue requests itself",
    };
}

reasons! {
    /// Why a new request of one queue preempted another queue in CFQ or BFQ.
    #[non_exhaustive]
    pub enum PreemptReason;
    OverIdleClass, "the other is of the idle class";
    SyncOverAsync, "its request is synchronous, the other is not";
    SliceOver, "the slice of the other is over";
    /// The other queue is of a less urgent class.
    RealTime, "it is of the real-time class";
    /// They are served together.
    NoIdleWorkload, "neither has an idle window";
    /// No request of the other queue has it.
    Priority, "its request has the priority flag";
    NotIdling, "the other is empty and has no idle window";
    /// The device idles for the other queue.
    Close, "its request is near the last one of the other";
    /// Of BFQ.
    InTime, "it is back in time to go on with its budget";
    /// Of BFQ.
    Class, "it is of a more urgent class";
    /// Of BFQ.
    Weight, "it, or its group, has more weight";
}
