//! Classes, kinds of queues and the reasons of a scheduler's decisions, in words.

use paternoster::{
    BudgetEnd, Domain, IoClass, NoIdleReason, PreemptReason, SliceEnd, WaitReason, Workload,
};

pub(super) fn class_name(class: IoClass) -> &'static str {
    match class {
        IoClass::Rt => "real-time",
        IoClass::Be => "best effort",
        IoClass::Idle => "idle class",
    }
}

pub(super) fn kind_of(workload: Workload) -> &'static str {
    match workload {
        Workload::Async => "asynchronous queues",
        Workload::SyncNoIdle => "queues without an idle window",
        Workload::Sync => "queues with an idle window",
    }
}

pub(super) fn domain_name(domain: Domain) -> &'static str {
    match domain {
        Domain::Read => "reads",
        Domain::Write => "writes",
        Domain::Discard => "discards",
        Domain::Other => "others",
    }
}

pub(super) fn slice_end_reason(why: SliceEnd) -> &'static str {
    match why {
        SliceEnd::Empty => "it has no request, and the device does not idle for it",
        SliceEnd::SliceUsed => "it is used up",
        SliceEnd::WaitBusy => "the request came that its group was idled for",
        SliceEnd::Cooperator => "another queue of its group has a request near",
        SliceEnd::Preempted => "it is preempted",
        SliceEnd::IdleClass => "the idle class gets one request at a time",
        SliceEnd::AsyncRequests => "it has dispatched as many as an asynchronous queue may",
        SliceEnd::IdleTimer => "its next request has not come",
        SliceEnd::Exit => "its task has exited",
        SliceEnd::Gone => "its last user has left it",
        SliceEnd::Drain => "the scheduler is drained",
        SliceEnd::HierarchySwitched => "the hierarchy is switched",
        _ => "for another reason",
    }
}

pub(super) fn budget_end_reason(why: BudgetEnd) -> &'static str {
    match why {
        BudgetEnd::TooIdle => "its next request has not come",
        BudgetEnd::Timeout => "its time is over",
        BudgetEnd::Exhausted => "its budget does not suffice for its next request",
        BudgetEnd::NoMoreRequests => "it has no request, and the device does not idle for it",
        BudgetEnd::Preempted => "it is preempted",
        _ => "for another reason",
    }
}

pub(super) fn preempt_reason(why: PreemptReason) -> &'static str {
    match why {
        PreemptReason::OverIdleClass => "the other is of the idle class",
        PreemptReason::SyncOverAsync => "its request is synchronous, the other is not",
        PreemptReason::SliceOver => "the slice of the other is over",
        PreemptReason::RealTime => "it is of the real-time class",
        PreemptReason::NoIdleWorkload => "neither has an idle window",
        PreemptReason::Priority => "its request has the priority flag",
        PreemptReason::NotIdling => "the other is empty and has no idle window",
        PreemptReason::Close => "its request is near the last one of the other",
        PreemptReason::InTime => "it is back in time to go on with its budget",
        PreemptReason::Class => "it is of a more urgent class",
        PreemptReason::Weight => "it, or its group, has more weight",
        _ => "for another reason",
    }
}

pub(super) fn no_idling(why: NoIdleReason) -> &'static str {
    match why {
        NoIdleReason::FastDevice => "the device is not rotational and queues itself",
        NoIdleReason::NotWorthIt => "it has no idle window, and groups are not idled for",
        NoIdleReason::InFlight => "requests of it are in flight",
        NoIdleReason::TaskGone => "its task has exited",
        NoIdleReason::ThinksBeyondSlice => "its task thinks for longer than the slice lasts",
        NoIdleReason::GroupHasOthers => "its group has other busy queues",
        NoIdleReason::GroupThinksTooLong => "its group thinks for too long",
        NoIdleReason::NotAsked => "no request asks for it, and its group has other busy queues",
        _ => "for another reason",
    }
}

pub(super) fn wait_reason(why: WaitReason) -> &'static str {
    match why {
        WaitReason::IdleTimer => "the device idles for the active queue",
        WaitReason::InFlight => "requests of the active queue are in flight, and it is idled for",
        WaitReason::GroupInFlight => "requests of the active group are in flight",
        WaitReason::GateAsyncDrains => "asynchronous requests have to complete first",
        WaitReason::GateSyncDrains => "synchronous requests have to complete first",
        WaitReason::GateDepth => "the active queue has as many in flight as it may",
        WaitReason::OneAtATime => "strict_guarantees has one dispatched at a time",
        WaitReason::Kept => "the room is kept for another tenant",
        WaitReason::NoToken => "as many of their kind are in the device as may be",
        WaitReason::Target => "another group misses its latency target",
        WaitReason::Capped => "caps of groups hold all that waits",
        _ => "for another reason",
    }
}
