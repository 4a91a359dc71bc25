//! The trace: one event for every decision, with its reason.
//!
//! Where one of Linux's traces has the same event, its text stands in parentheses. The elevator
//! emits the events of the block layer itself, such as dispatch and completion.
//!
//! A scheduler owns its sink and is generic over it: [`NoTrace`] costs nothing, [`Recorder`] is
//! for tests and the laboratory, and [`RingRecorder`] for what runs for long. A pair of sinks is
//! one, and so is `Option<Box<T>>`, which is there now and then. Events name a request by the bio
//! that it was made of.

mod event;
mod reasons;
mod sinks;

pub use event::Event;
pub use reasons::{
    BatchReason, BudgetEnd, Domain, FairWhy, HoldReason, LatencyKind, MergeKind, MergeSite,
    NoIdleReason, PreemptReason, PriceOf, SliceEnd, TargetVerdict, TrialKind, TrialVerdict,
    WaitReason, WindowVerdict, Workload,
};
pub use sinks::{NoTrace, Recorder, RingRecorder, TimedEvents};

use crate::arena::{GroupId, IocId};
use crate::time::Instant;

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
