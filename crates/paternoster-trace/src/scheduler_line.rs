//! The lines of a log about a scheduler's own decisions, in the words of the recordings. They help
//! to find where two runs part.

use std::borrow::Cow;

use paternoster::{
    BudgetEnd, Direction, Domain, Event, FairWhy, IoClass, LatencyKind, Nanos, SliceEnd, Vtime,
    Workload,
};
use serde::Serialize;

use crate::names::Names;

/// One such line.
#[derive(Serialize)]
#[serde(tag = "ev", rename_all = "snake_case")]
pub(crate) enum SchedulerLine<'a> {
    Batch {
        dir: &'static str,
        prio: u8,
        starved: u32,
    },
    Latency {
        dom: &'static str,
        #[serde(rename = "type")]
        kind: &'static str,
        pct: u32,
        bucket: u32,
        samples: u32,
    },
    Depth {
        dom: &'static str,
        v: u32,
    },
    Workload {
        wl: String,
        group: Cow<'a, str>,
        ns: u64,
    },
    Active {
        q: String,
        wl: String,
        group: Cow<'a, str>,
    },
    Slice {
        q: String,
        ns: u64,
    },
    Fifo {
        q: String,
        rq: Cow<'a, str>,
    },
    Expire {
        q: String,
        why: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        resid: Option<i64>,
        used: u64,
        disp: u32,
        charge: u64,
        iops: u8,
        sect: u64,
        group: Cow<'a, str>,
        vt: u64,
    },
    SliceUsed {
        q: String,
        sl_used: i64,
        disp: u32,
        charge: u64,
        iops: u8,
        sect: u64,
    },
    Preempt {
        q: String,
        over: String,
    },
    ArmIdle {
        q: String,
        ns: u64,
        group: u8,
    },
    IdleTimer,
    IdleWindow {
        q: String,
        on: u8,
    },
    WaitBusy {
        q: String,
    },
    MergeQueues {
        q: String,
        into: String,
    },
    SplitQueue {
        q: String,
    },
    HwTag {
        from: i8,
        to: i8,
    },
    Serve {
        q: String,
        budget: u32,
        weight: u32,
    },
    #[serde(rename = "expire")]
    BudgetExpire {
        q: String,
        why: &'static str,
        slow: u8,
        charged: u32,
        budget: u32,
        in_dev: u32,
    },
    Idle {
        q: String,
        ns: u64,
    },
    Inject {
        q: String,
        #[serde(rename = "for")]
        instead_of: String,
    },
    InjectLimit {
        q: String,
        v: u32,
    },
    Waker {
        q: String,
        waker: String,
    },
    Wr {
        q: String,
        coeff: u32,
        ms: u64,
    },
    LargeBurst {
        v: u8,
    },
    NonrotWithQueueing {
        v: u8,
    },
    Rate {
        v: u32,
    },
    MaxBudget {
        v: u32,
    },
    FairBusy {
        node: String,
        start: String,
        v: String,
    },
    FairDispatch {
        rq: Cow<'a, str>,
        start: String,
        charge: u64,
        why: &'static str,
    },
}

impl<'a> SchedulerLine<'a> {
    /// The line of an event, if the recordings have such lines.
    pub(crate) fn new(event: Event, names: &'a impl Names) -> Option<Self> {
        let ns = |span: Nanos| span.as_nanos();
        Some(match event {
            Event::Batch { direction, class, starved, .. } => Self::Batch {
                dir: match direction {
                    Direction::Read => "R",
                    Direction::Write => "W",
                },
                prio: class as u8,
                starved,
            },
            Event::Latency { domain, kind, percent, quarters, samples, .. } => Self::Latency {
                dom: domain_name(domain),
                kind: match kind {
                    LatencyKind::Total => "total",
                    LatencyKind::Device => "I/O",
                },
                pct: percent,
                bucket: quarters,
                samples,
            },
            Event::DepthChanged { domain, depth, .. } => {
                Self::Depth { dom: domain_name(domain), v: depth }
            }
            Event::Workload { group, class, workload, span, .. } => {
                Self::Workload { wl: wl(class, workload), group: names.group(group), ns: ns(span) }
            }
            Event::Active { queue, group, class, workload, .. } => Self::Active {
                q: names.queue(queue),
                wl: wl(class, workload),
                group: names.group(group),
            },
            Event::Slice { queue, length, .. } => {
                Self::Slice { q: names.queue(queue), ns: ns(length) }
            }
            Event::Overdue { queue, rq, .. } => {
                Self::Fifo { q: names.queue(queue), rq: names.request(rq) }
            }
            Event::SliceExpired { .. } => Self::expire(event, names)?,
            Event::SliceUsed { queue, used, dispatched, charge, iops_mode, sectors, .. } => {
                Self::SliceUsed {
                    q: names.queue(queue),
                    sl_used: used.count(),
                    disp: dispatched,
                    charge,
                    iops: iops_mode.into(),
                    sect: sectors,
                }
            }
            Event::Preempted { by, over, .. } => {
                Self::Preempt { q: names.queue(by), over: names.queue(over) }
            }
            Event::SliceIdling { queue, length, for_group, .. } => {
                Self::ArmIdle { q: names.queue(queue), ns: ns(length), group: for_group.into() }
            }
            Event::IdleTimerFired => Self::IdleTimer,
            Event::IdleWindow { queue, on, .. } => {
                Self::IdleWindow { q: names.queue(queue), on: on.into() }
            }
            Event::WaitBusy { queue, .. } => Self::WaitBusy { q: names.queue(queue) },
            Event::QueuesMerged { queue, into, .. } => {
                Self::MergeQueues { q: names.queue(queue), into: names.queue(into) }
            }
            Event::QueueSplit { queue, .. } => Self::SplitQueue { q: names.queue(queue) },
            Event::HardwareQueueing { before, now, .. } => {
                Self::HwTag { from: before.map_or(-1, i8::from), to: now.into() }
            }
            event => return Self::of_bfq(event, names),
        })
    }

    /// A line of BFQ. A queue keeps the name of its maker when it is merged with others, where the
    /// recordings count the shared ones.
    fn of_bfq(event: Event, names: &'a impl Names) -> Option<Self> {
        Some(match event {
            Event::InService { queue, budget, weight, .. } => {
                Self::Serve { q: names.queue(queue), budget: budget.0, weight }
            }
            Event::BudgetExpired { queue, why, slow, service, budget, in_flight, .. } => {
                Self::BudgetExpire {
                    q: names.queue(queue),
                    why: budget_end(why),
                    slow: slow.into(),
                    charged: service.0,
                    budget: budget.0,
                    in_dev: in_flight,
                }
            }
            Event::BudgetIdling { queue, length, .. } => {
                Self::Idle { q: names.queue(queue), ns: length.as_nanos() }
            }
            Event::Injected { queue, instead_of, .. } => {
                Self::Inject { q: names.queue(queue), instead_of: names.queue(instead_of) }
            }
            Event::InjectionLimit { queue, limit, .. } => {
                Self::InjectLimit { q: names.queue(queue), v: limit }
            }
            Event::WakerFound { queue, waker, .. } => {
                Self::Waker { q: names.queue(queue), waker: names.queue(waker) }
            }
            Event::Raised { queue, factor, length, .. } => {
                Self::Wr { q: names.queue(queue), coeff: factor, ms: length.as_nanos() / 1_000_000 }
            }
            Event::LargeBurst => Self::LargeBurst { v: 1 },
            Event::QueueMerging { on, .. } => Self::NonrotWithQueueing { v: (!on).into() },
            Event::PeakRate { rate, .. } => Self::Rate { v: rate },
            Event::MaxBudget { sectors, .. } => Self::MaxBudget { v: sectors.0 },
            event => return Self::of_wfq(event, names),
        })
    }

    fn of_wfq(event: Event, names: &'a impl Names) -> Option<Self> {
        Some(match event {
            Event::FairBusy { node, start, v, .. } => {
                Self::FairBusy { node: names.share(node), start: tag(start), v: tag(v) }
            }
            Event::FairDispatch { rq, start, charge, why, .. } => {
                let why = fair_why(why);
                Self::FairDispatch { rq: names.request(rq), start: tag(start), charge, why }
            }
            _ => return None,
        })
    }

    fn expire(event: Event, names: &'a impl Names) -> Option<Self> {
        let Event::SliceExpired {
            queue,
            group,
            why,
            residue,
            used,
            dispatched,
            charge,
            iops_mode,
            sectors,
            vdisktime,
            ..
        } = event
        else {
            return None;
        };
        Some(Self::Expire {
            q: names.queue(queue),
            why: reason(why),
            resid: residue,
            used: used.as_nanos(),
            disp: dispatched,
            charge,
            iops: iops_mode.into(),
            sect: sectors,
            group: names.group(group),
            vt: vdisktime,
        })
    }
}

fn domain_name(domain: Domain) -> &'static str {
    match domain {
        Domain::Read => "READ",
        Domain::Write => "WRITE",
        Domain::Discard => "DISCARD",
        Domain::Other => "OTHER",
    }
}

fn wl(class: IoClass, workload: Workload) -> String {
    let class = match class {
        IoClass::Rt => "rt",
        IoClass::Be => "be",
        IoClass::Idle => "idle",
    };
    let workload = match workload {
        Workload::Async => "async",
        Workload::SyncNoIdle => "noidle",
        Workload::Sync => "sync",
    };
    format!("{class}/{workload}")
}

fn budget_end(why: BudgetEnd) -> &'static str {
    match why {
        BudgetEnd::TooIdle => "TOO_IDLE",
        BudgetEnd::Timeout => "BUDGET_TIMEOUT",
        BudgetEnd::Exhausted => "BUDGET_EXHAUSTED",
        BudgetEnd::NoMoreRequests => "NO_MORE_REQUESTS",
        BudgetEnd::Preempted => "PREEMPTED",
        _ => "OTHER",
    }
}

/// A tag as a text, since numbers of JSON do not hold it.
fn tag(tag: Vtime) -> String {
    tag.raw().to_string()
}

fn fair_why(why: FairWhy) -> &'static str {
    match why {
        FairWhy::Weight => "weight",
        _ => "other",
    }
}

fn reason(why: SliceEnd) -> &'static str {
    match why {
        SliceEnd::Empty => "empty",
        SliceEnd::SliceUsed => "slice_used",
        SliceEnd::WaitBusy => "wait_busy",
        SliceEnd::Cooperator => "cooperator",
        SliceEnd::Preempted => "preempted",
        SliceEnd::IdleClass => "idle_class",
        SliceEnd::AsyncRequests => "async_rq",
        SliceEnd::IdleTimer => "idle_timer",
        SliceEnd::Exit => "exit",
        SliceEnd::Gone => "queue_gone",
        SliceEnd::Drain => "drain",
        SliceEnd::HierarchySwitched => "hierarchy",
        _ => "other",
    }
}
