//! The trace: one event for every decision, with its reason.
//!
//! Each scheduler has events of its own, in a file of its own. There each is declared once
//! (`declare.rs`), with its line in logs, its sentence in reports, and what they mean.
//!
//! Where one of Linux's traces has the same event, its text stands in parentheses. The elevator
//! emits the events of the block layer itself, such as dispatch and completion.
//!
//! A scheduler owns its sink and is generic over it: [`NoTrace`] costs nothing, [`Recorder`] is
//! for tests and the laboratory, and [`RingRecorder`] for what runs for long. A pair of sinks is
//! one, and so is `Option<Box<T>>`, which is there now and then. Events name a request by the bio
//! that it was made of.

mod bfq;
mod cfq;
pub(crate) mod declare;
mod elevator;
mod kyber;
mod mq_deadline;
mod queues;
mod sinks;
mod wfq;

pub use bfq::{BfqEvent, BudgetEnd};
pub use cfq::{CfqEvent, NoIdleReason, SliceEnd, Workload};
pub use declare::{EventData, EventInfo, FieldInfo, Value, Word};
pub use elevator::{ElevatorEvent, MergeKind, MergeSite, WaitReason};
pub use kyber::{Domain, KyberEvent, LatencyKind};
pub use mq_deadline::{BatchReason, DeadlineEvent};
pub use queues::{PreemptReason, QueueEvent};
pub use sinks::{NoTrace, Recorder, RingRecorder, TimedEvents};
pub use wfq::{
    FairWhy, HoldReason, PriceOf, TargetVerdict, TrialKind, TrialVerdict, WfqEvent, WindowVerdict,
};

use crate::arena::{GroupId, IocId};
use crate::time::Instant;

/// One event. Events may get further fields, so a pattern ends with `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Of the elevator, or of any scheduler.
    Elevator(ElevatorEvent),
    /// Of mq-deadline.
    Deadline(DeadlineEvent),
    /// Of Kyber.
    Kyber(KyberEvent),
    /// Of the queues of CFQ or BFQ.
    Queue(QueueEvent),
    /// Of CFQ alone.
    Cfq(CfqEvent),
    /// Of BFQ alone.
    Bfq(BfqEvent),
    /// Of wfq.
    Wfq(WfqEvent),
}

impl Event {
    /// Returns it as data, for what tells of all events alike.
    pub fn data(&self) -> &dyn EventData {
        match self {
            Self::Elevator(event) => event,
            Self::Deadline(event) => event,
            Self::Kyber(event) => event,
            Self::Queue(event) => event,
            Self::Cfq(event) => event,
            Self::Bfq(event) => event,
            Self::Wfq(event) => event,
        }
    }
}

/// Takes the events of one elevator and its scheduler.
pub trait Trace {
    /// Takes one event, which happened at `now` on the elevator's own clock
    /// ([`ElevatorClock`](crate::ElevatorClock)): it counts from [`Instant::START`].
    fn event(&mut self, now: Instant, event: Event);
}

/// The name of a scheduler's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// The I/O context that created it or, once its users were split, the last one that uses it.
    /// It may be gone.
    pub ioc: IocId,
    /// Whether its requests are synchronous.
    pub sync: bool,
}

/// Who has a share of the device under wfq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShareOf {
    /// A group, with all that is below it.
    Group(GroupId),
    /// The own requests of a group, beside its child groups.
    OwnRequests(GroupId),
    /// An I/O context, among those of its group and class.
    Context(IocId),
}
