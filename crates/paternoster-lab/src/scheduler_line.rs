//! The lines of a log in which a scheduler tells of itself, in the words of the recordings. They
//! help to find where two runs part.

use paternoster::{Direction, Event, ExpireReason, IoClass, Nanos, Workload};
use serde::Serialize;

use crate::log::Names;

/// One such line.
#[derive(Serialize)]
#[serde(tag = "ev", rename_all = "snake_case")]
pub(crate) enum SchedulerLine<'a> {
    Batch {
        dir: &'static str,
        prio: u8,
        starved: u32,
    },
    Workload {
        wl: String,
        group: &'a str,
        ns: u64,
    },
    Active {
        q: String,
        wl: String,
        group: &'a str,
    },
    Slice {
        q: String,
        ns: u64,
    },
    Fifo {
        q: String,
        rq: &'a str,
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
        group: &'a str,
        vt: u64,
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
}

impl<'a> SchedulerLine<'a> {
    /// The line of an event, if the recordings have such lines.
    pub(crate) fn new(event: Event, names: &'a Names) -> Option<Self> {
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
            Event::Workload { group, class, workload, span } => {
                Self::Workload { wl: wl(class, workload), group: names.group(group), ns: ns(span) }
            }
            Event::Active { queue, group, class, workload } => Self::Active {
                q: names.queue(queue),
                wl: wl(class, workload),
                group: names.group(group),
            },
            Event::Slice { queue, length } => Self::Slice { q: names.queue(queue), ns: ns(length) },
            Event::Overdue { queue, rq } => {
                Self::Fifo { q: names.queue(queue), rq: names.request(rq) }
            }
            Event::Expired { .. } => Self::expire(event, names)?,
            Event::Preempted { by, over, .. } => {
                Self::Preempt { q: names.queue(by), over: names.queue(over) }
            }
            Event::IdleArmed { queue, length, for_group } => {
                Self::ArmIdle { q: names.queue(queue), ns: ns(length), group: for_group.into() }
            }
            Event::IdleTimerFired => Self::IdleTimer,
            Event::IdleWindow { queue, on } => {
                Self::IdleWindow { q: names.queue(queue), on: on.into() }
            }
            Event::WaitBusy { queue } => Self::WaitBusy { q: names.queue(queue) },
            Event::QueuesMerged { queue, into } => {
                Self::MergeQueues { q: names.queue(queue), into: names.queue(into) }
            }
            Event::QueueSplit { queue } => Self::SplitQueue { q: names.queue(queue) },
            Event::HardwareQueueing { before, now } => {
                Self::HwTag { from: before.map_or(-1, i8::from), to: now.into() }
            }
            _ => return None,
        })
    }

    fn expire(event: Event, names: &'a Names) -> Option<Self> {
        let Event::Expired {
            queue,
            group,
            why,
            residue,
            used,
            sent,
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
            disp: sent,
            charge,
            iops: iops_mode.into(),
            sect: sectors,
            group: names.group(group),
            vt: vdisktime,
        })
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

fn reason(why: ExpireReason) -> &'static str {
    match why {
        ExpireReason::Empty => "empty",
        ExpireReason::SliceUsed => "slice_used",
        ExpireReason::WaitBusy => "wait_busy",
        ExpireReason::Cooperator => "cooperator",
        ExpireReason::Preempted => "preempted",
        ExpireReason::IdleClass => "idle_class",
        ExpireReason::AsyncRequests => "async_rq",
        ExpireReason::IdleTimer => "idle_timer",
        ExpireReason::Exit => "exit",
        ExpireReason::Gone => "queue_gone",
        ExpireReason::Drain => "drain",
        _ => "other",
    }
}
