//! A scheduler's decisions, in words: what it does, for whom, and why.

use paternoster::{
    BatchReason, Direction, Event, LatencyKind, Nanos, PriceOf, QueueName, WaitReason,
};
use serde::Serialize;

use super::names::Names;
use super::reasons::{
    budget_end_reason, class_name, domain_name, kind_of, no_idling, preempt_reason,
    slice_end_reason, wait_reason,
};
use crate::result::short_time as time;

/// What a decision means on a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// Somebody is served from now on, and nobody else.
    Begin,
    /// Nobody is served from now on.
    End,
    /// The device idles for somebody, up to the next dispatch.
    Idle,
    /// Anything else.
    Mark,
}

impl Role {
    /// The role of an event of a scheduler.
    pub(super) fn of(event: Event) -> Self {
        match event {
            Event::Active { .. } | Event::InService { .. } | Event::Batch { .. } => Self::Begin,
            Event::SliceExpired { .. } | Event::BudgetExpired { .. } | Event::Drained { .. } => {
                Self::End
            }
            Event::SliceIdling { .. } | Event::BudgetIdling { .. } => Self::Idle,
            _ => Self::Mark,
        }
    }
}

/// A decision in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// Whom it is about; nobody in particular if absent.
    pub(super) job: Option<usize>,
    pub(super) text: String,
}

impl Decision {
    /// The decision that an event tells of; none where it tells of requests alone.
    pub(super) fn of(event: Event, names: &Names) -> Option<Self> {
        let of_scheduler = of_cfq(event, names).or_else(|| of_bfq(event, names));
        of_scheduler.or_else(|| of_queues(event, names)).or_else(|| of_others(event))
    }

    fn about(queue: QueueName, names: &Names, text: String) -> Self {
        Self { job: names.job_of(queue), text }
    }

    fn of_all(text: String) -> Self {
        Self { job: None, text }
    }
}

fn of_cfq(event: Event, names: &Names) -> Option<Decision> {
    let say = |queue, text| Some(Decision::about(queue, names, text));
    match event {
        Event::Workload { group, class, workload, span, .. } => {
            let (group, class, kind) = (names.group(group), class_name(class), kind_of(workload));
            let text = format!("group {group}: {class}, {kind} are next, for {}", time(span));
            Some(Decision::of_all(text))
        }
        Event::Active { queue, class, workload, .. } => {
            let (class, kind) = (class_name(class), kind_of(workload));
            say(queue, format!("serves {} ({class}, {kind})", names.queue(queue)))
        }
        Event::Slice { queue, length, .. } => {
            let text = format!("the slice of {} begins: {}", names.queue(queue), time(length));
            say(queue, text)
        }
        Event::SliceExpired { queue, .. } => say(queue, slice_end(event, names)?),
        Event::SliceIdling { queue, length, for_group, .. } => {
            let whom = names.queue(queue);
            let whom = if for_group { format!("the group of {whom}") } else { whom };
            let text = format!("idles for the next request of {whom}, up to {}", time(length));
            say(queue, text)
        }
        Event::NotIdling { queue, why, .. } => {
            let text = format!("does not idle for {}: {}", names.queue(queue), no_idling(why));
            say(queue, text)
        }
        Event::IdleWindow { queue, on, .. } => {
            let verb = if on { "earns" } else { "loses" };
            let text = format!("{} {verb} its idle window", names.queue(queue));
            say(queue, text)
        }
        Event::WindowGivenUp { queue, .. } => {
            let whom = names.queue(queue);
            say(queue, format!("{whom} loses its idle window: it is seeky and ran empty"))
        }
        Event::WaitBusy { queue, .. } => {
            let whom = names.queue(queue);
            say(queue, format!("extends the slice of {whom}, all that its group has"))
        }
        Event::QueueMoved { queue, from, to, .. } => {
            let (from, to) = (names.group(from), names.group(to));
            let text = format!("{} competes in {to} instead of {from}", names.queue(queue));
            say(queue, text)
        }
        _ => None,
    }
}

fn slice_end(event: Event, names: &Names) -> Option<String> {
    let Event::SliceExpired {
        queue, group, why, used, dispatched, charge, iops_mode, sectors, ..
    } = event
    else {
        return None;
    };
    let charged = if iops_mode { format!("{charge} requests") } else { time(Nanos::new(charge)) };
    Some(format!(
        "the slice of {} ends: {}; {} used, {dispatched} requests, {sectors} sectors; {} is \
         charged {charged}",
        names.queue(queue),
        slice_end_reason(why),
        time(used),
        names.group(group),
    ))
}

fn of_bfq(event: Event, names: &Names) -> Option<Decision> {
    let name = |queue| names.queue(queue);
    let say = |queue, text| Some(Decision::about(queue, names, text));
    match event {
        Event::InService { queue, budget, weight, .. } => {
            let text = format!("serves {}: {} sectors, weight {weight}", name(queue), budget.0);
            say(queue, text)
        }
        Event::BudgetExpired { queue, why, slow, service, budget, .. } => {
            let slow = if slow { ", it was slow" } else { "" };
            let (used, of) = (service.0, budget.0);
            let why = budget_end_reason(why);
            let text = format!(
                "the service of {} ends: {why}; charged {used} sectors of {of}{slow}",
                name(queue)
            );
            say(queue, text)
        }
        Event::BudgetIdling { queue, length, .. } => {
            let text =
                format!("idles for the next request of {}, up to {}", name(queue), time(length));
            say(queue, text)
        }
        Event::Injected { queue, instead_of, .. } => {
            let text = format!("injects a request of {} for {}", name(queue), name(instead_of));
            say(queue, text)
        }
        Event::InjectionLimit { queue, limit, .. } => {
            let text =
                format!("while {} is idled for, {limit} others may be in flight", name(queue));
            say(queue, text)
        }
        Event::WakerFound { queue, waker, .. } => {
            let text = format!("{} is woken by {}", name(queue), name(waker));
            say(queue, text)
        }
        Event::Raised { queue, factor: 0..=1, .. } => {
            say(queue, format!("the weight of {} is raised no more", name(queue)))
        }
        Event::Raised { queue, factor, length, .. } => {
            let (whom, length) = (name(queue), time(length));
            let text = format!("the weight of {whom} is raised {factor} times, {length} at most");
            say(queue, text)
        }
        Event::LargeBurst => {
            let text = "many queues became busy together: none of them is raised";
            Some(Decision::of_all(text.to_owned()))
        }
        Event::QueueMerging { on, .. } => {
            let state = if on { "on" } else { "off" };
            let text = format!("merging of queues by position is {state}");
            Some(Decision::of_all(text))
        }
        Event::PeakRate { rate, .. } => {
            let mib_per_s = u64::from(rate) * 512 * 1_000_000 / (1 << 36);
            let text = format!("the device's peak rate is estimated at {mib_per_s} MiB/s");
            Some(Decision::of_all(text))
        }
        Event::MaxBudget { sectors, .. } => {
            let text = format!("the greatest budget is {} sectors", sectors.0);
            Some(Decision::of_all(text))
        }
        _ => None,
    }
}

/// What CFQ and BFQ have in common.
fn of_queues(event: Event, names: &Names) -> Option<Decision> {
    let name = |queue| names.queue(queue);
    let say = |queue, text| Some(Decision::about(queue, names, text));
    match event {
        Event::Busy { queue, .. } => say(queue, format!("{} becomes busy", name(queue))),
        Event::NotBusy { queue, .. } => say(queue, format!("{} is no longer busy", name(queue))),
        Event::IdleTimerFired => {
            let text = "the request that the device idled for has not come".to_owned();
            Some(Decision::of_all(text))
        }
        Event::Preempted { by, over, why, .. } => {
            say(by, format!("{} preempts {}: {}", name(by), name(over), preempt_reason(why)))
        }
        Event::QueuesMerged { queue, into, .. } => {
            say(queue, format!("the queue of {} merges into that of {}", name(queue), name(into)))
        }
        Event::QueueSplit { queue, .. } => {
            say(queue, format!("{} leaves a shared queue", name(queue)))
        }
        Event::Overdue { queue, .. } => {
            say(queue, format!("the oldest request of {} is overdue and goes first", name(queue)))
        }
        Event::HardwareQueueing { now, .. } => {
            let verb = if now { "seems to queue" } else { "seems not to queue" };
            Some(Decision::of_all(format!("the device {verb} requests itself")))
        }
        _ => None,
    }
}

fn of_others(event: Event) -> Option<Decision> {
    let text = match event {
        Event::Batch { direction, class, starved, reason, .. } => {
            let what = match direction {
                Direction::Read => "reads",
                Direction::Write => "writes",
            };
            let why = match reason {
                BatchReason::Start => "nothing to continue from",
                BatchReason::Expired => "the oldest is overdue",
                BatchReason::Onward => "it goes on where they stopped",
                _ => "for another reason",
            };
            let class = class_name(class);
            format!("{what} ({class}): {why}; writes were passed over {starved} times")
        }
        Event::Aged { class, .. } => {
            let class = class_name(class);
            format!("a request of class {class} has waited too long and goes first")
        }
        Event::Latency { domain, kind, percent, quarters, samples, .. } => {
            let what = domain_name(domain);
            let time = match kind {
                LatencyKind::Total => "under way",
                LatencyKind::Device => "in the device",
            };
            let where_it_is = match quarters {
                8.. => "longer than 7/4 of the target".to_owned(),
                quarters => format!("at most {quarters}/4 of the target"),
            };
            format!("{what}: {percent} % of {samples} were {time} for {where_it_is}")
        }
        Event::DepthChanged { domain, depth, .. } => {
            format!("{}: {depth} may be in the device", domain_name(domain))
        }
        Event::Throttled { domain, .. } => {
            let what = domain_name(domain);
            format!("{what} wait: as many are in the device as may be")
        }
        Event::PriceMoved { which, from, to, .. } => match which {
            PriceOf::Bytes => format!("{to} bytes cost as much as an op; {from} did before"),
            PriceOf::Writes => format!("a write costs {to} % of a read; {from} % before"),
            PriceOf::Fua => format!("a FUA write costs {to} % of a read; {from} % before"),
            _ => return None,
        },
        // That is no decision.
        Event::Waiting { why: WaitReason::DeviceFull, .. } => return None,
        Event::Waiting { why, .. } => {
            format!("requests wait, none is dispatched: {}", wait_reason(why))
        }
        Event::Drained { requests, .. } => {
            format!("all {requests} requests that wait are taken out")
        }
        _ => return None,
    };
    Some(Decision::of_all(text))
}
