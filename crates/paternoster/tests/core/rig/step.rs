//! What a test does and what it expects, a step each.

use std::ops::Range;

use paternoster::{Hierarchy, Limits, Nanos, NoMerges, SchedulerKind};

use super::Io;

/// What a test does, or says must hold.
#[derive(Clone, Debug)]
pub enum Step {
    /// Time passes.
    Advance(Nanos),
    /// The timeout that the elevator asked for has come.
    TimerFires,
    /// A bio arrives and becomes a request.
    Submit(&'static str, Io),
    /// A bio arrives and becomes part of the request that holds that other bio, behind it.
    BackMerge(&'static str, Io, &'static str),
    /// The same, before it.
    FrontMerge(&'static str, Io, &'static str),
    /// A bio arrives and may not enter now.
    TurnAway(&'static str, Io),
    /// A bio that was turned away is submitted again and becomes a request.
    Retry(&'static str, Io),
    /// Each is dispatched, in this order, and completes at once.
    Serve(&'static [&'static str]),
    /// A request completes.
    Complete(&'static str),
    /// A request is requeued.
    Requeue(&'static str),
    /// All waiting requests are cancelled: these bios, in this order.
    Cancel(&'static [&'static str]),
    /// A tunable of the scheduler.
    Set(&'static str, i64),
    SetNoMerges(NoMerges),
    SetLimits(Limits),
    SetScanDepth(u32),
    SetNrRequests(Option<u32>),
    SetDepth(u32),
    /// A task's I/O priority.
    SetPriority(&'static str, &'static str),
    /// A group's weight and leaf weight, both the same.
    SetWeight(&'static str, u32),
    /// A group's weight and leaf weight.
    SetWeights(&'static str, u32, u32),
    /// The weight and the leaf weight that a group has on this device alone, if any.
    SetDeviceWeights(&'static str, Option<u32>, Option<u32>),
    /// A task goes to a group.
    Move(&'static str, &'static str),
    Exit(&'static str),
    RemoveGroup(&'static str),
    SwitchTo(SchedulerKind),
    SetHierarchy(Hierarchy),
    Expect(Expected),
}

/// What a test expects.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// One dispatch gives the request of this bio.
    Dispatched(&'static str),
    /// One dispatch gives no request.
    Nothing,
    /// The last completion was of these bios, in this order.
    Done(&'static [&'static str]),
    /// The last completion said whether submitters that were turned away should try again.
    WaitersCalled(bool),
    /// Both bios are of one request.
    Together(&'static str, &'static str),
    /// The bios are of different requests.
    Apart(&'static str, &'static str),
    /// The range of the bio's request.
    Sectors(&'static str, u64, u64),
    /// The deadline of the bio's request.
    Deadline(&'static str, Nanos),
    /// When the elevator wants to be called for a timeout.
    Timeout(Option<Nanos>),
    /// An internal number of the scheduler, by its name in debugfs.
    Number(&'static str, i64),
    /// Requests that wait.
    Waiting(u32),
    /// The trace has this line, after those that were looked at before (`lines.rs` has the words).
    /// What the line has beyond it, from a comma on, may be anything.
    Emitted(&'static str),
    /// The trace has no line that begins so, after those that were looked at before.
    NotEmitted(&'static str),
}

pub const fn dispatched(bio: &'static str) -> Expected {
    Expected::Dispatched(bio)
}

pub const fn together(a: &'static str, b: &'static str) -> Expected {
    Expected::Together(a, b)
}

pub const fn apart(a: &'static str, b: &'static str) -> Expected {
    Expected::Apart(a, b)
}

pub const fn sectors(bio: &'static str, range: Range<u64>) -> Expected {
    Expected::Sectors(bio, range.start, range.end)
}
