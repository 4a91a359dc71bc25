//! What the trace tells, in words: a line for each decision.
//!
//! ```text
//!   active a                                   slice a: 100 ms
//!   workload /a: Be Sync for 150 ms            window a: off
//!   idles a: 8 ms                              idles a: 8 ms for its group
//!   expired a: SliceUsed, used 10 ms, charged 10 ms, residue 0 ms, sent 9, vdisktime 40960000000
//! ```
//!
//! BFQ's turns have budgets in sectors, and it does more:
//!
//! ```text
//!   in service a, budget 1024, weight 1200     raised a: 30, for 10500 ms
//!   expired a: Timeout, charged 104 of 16384, slow, in flight 0
//!   injected b for a                           limit a: 2
//! ```
//!
//! A queue goes by the task that made it, an async one as `async a`.

use paternoster::{Event, Instant, QueueName, SectorCount};

use super::{Outcome, Rig};

/// Nanoseconds in milliseconds: `38.5 ms`.
pub fn in_ms(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (nanos.unsigned_abs() / 1_000_000, nanos.unsigned_abs() % 1_000_000);
    if rest == 0 {
        return format!("{sign}{whole} ms");
    }
    let rest = format!("{rest:06}");
    format!("{sign}{whole}.{} ms", rest.trim_end_matches('0'))
}

fn ms_of(nanos: u64) -> String {
    in_ms(i64::try_from(nanos).expect("less than 292 years"))
}

impl Rig {
    /// The line of an event; none for those of the elevator, which say what a test did itself.
    pub fn tell(&self, event: &Event) -> Option<String> {
        let q = |queue| self.queue_name(queue);
        Some(match *event {
            Event::Listed { queue } => format!("listed {}", q(queue)),
            Event::Unlisted { queue } => format!("unlisted {}", q(queue)),
            Event::QueueFreed { queue } => format!("freed {}", q(queue)),
            Event::GroupMoved { ioc } => format!("moved {}", q(QueueName { ioc, sync: true })),
            Event::GroupLeft { group } => format!("left {}", self.path(group)),
            Event::Workload { group, class, workload, span } => {
                let span = ms_of(span.as_nanos());
                format!("workload {}: {class:?} {workload:?} for {span}", self.path(group))
            }
            Event::Active { queue, .. } => format!("active {}", q(queue)),
            Event::Slice { queue, length } => {
                format!("slice {}: {}", q(queue), ms_of(length.as_nanos()))
            }
            Event::Expired { .. } => self.tell_expired(event),
            Event::WindowGivenUp { queue } => format!("window {}: given up", q(queue)),
            Event::IdleWindow { queue, on } => {
                format!("window {}: {}", q(queue), if on { "on" } else { "off" })
            }
            Event::IdleArmed { queue, length, for_group } => {
                let whose = if for_group { " for its group" } else { "" };
                format!("idles {}: {}{whose}", q(queue), ms_of(length.as_nanos()))
            }
            Event::IdleTimerFired => "timer".to_owned(),
            Event::WaitBusy { queue } => format!("wait busy {}", q(queue)),
            Event::Preempted { by, over, why } => {
                format!("preempted {} by {}: {why:?}", q(over), q(by))
            }
            Event::QueuesMerged { queue, into } => format!("merged {} into {}", q(queue), q(into)),
            Event::QueueSplit { queue } => format!("split {}", q(queue)),
            Event::Overdue { rq, .. } => format!("overdue {}", self.names(&[rq])[0]),
            Event::HardwareQueueing { now, .. } => format!("hardware queueing: {now}"),
            Event::Waiting { why } => format!("waiting: {why:?}"),
            Event::Drained { requests } => format!("drained {requests}"),
            _ => return self.tell_of_bfq(event),
        })
    }

    /// The line of an event of BFQ alone, or one that says more of BFQ than of CFQ.
    fn tell_of_bfq(&self, event: &Event) -> Option<String> {
        let q = |queue| self.queue_name(queue);
        Some(match *event {
            Event::QueueMade { queue, group } => {
                format!("made {} in {}", q(queue), self.path(group))
            }
            Event::Priority { queue, io_prio } => format!("priority {}: {io_prio}", q(queue)),
            Event::InService { queue, budget: SectorCount(budget), weight } => {
                format!("in service {}, budget {budget}, weight {weight}", q(queue))
            }
            Event::BudgetExpired { queue, why, slow, service, budget, in_flight } => {
                let (service, budget) = (service.0, budget.0);
                let pace = if slow { "slow" } else { "fast" };
                format!(
                    "expired {}: {why:?}, charged {service} of {budget}, {pace}, \
                     in flight {in_flight}",
                    q(queue)
                )
            }
            Event::Idling { queue, length } => {
                format!("idles {}: {}", q(queue), ms_of(length.as_nanos()))
            }
            Event::Injected { queue, instead_of } => {
                format!("injected {} for {}", q(queue), q(instead_of))
            }
            Event::InjectionLimit { queue, limit } => format!("limit {}: {limit}", q(queue)),
            Event::WakerFound { queue, waker } => format!("waker of {}: {}", q(queue), q(waker)),
            Event::Raised { queue, factor, length } => {
                format!("raised {}: {factor}, for {}", q(queue), ms_of(length.as_nanos()))
            }
            Event::LargeBurst => "large burst".to_owned(),
            Event::MergePlanned { queue, into } => {
                format!("to merge {} into {}", q(queue), q(into))
            }
            Event::SplitPlanned { queue } => format!("to split {}", q(queue)),
            Event::QueueMerging { on } => {
                format!("queue merging: {}", if on { "on" } else { "off" })
            }
            Event::PeakRate { rate } => format!("peak rate {rate}"),
            Event::MaxBudget { sectors } => format!("max budget {}", sectors.0),
            _ => return None,
        })
    }

    fn tell_expired(&self, event: &Event) -> String {
        let Event::Expired {
            queue,
            why,
            residue,
            used,
            unaccounted,
            sent,
            charge,
            iops_mode,
            vdisktime,
            ..
        } = *event
        else {
            unreachable!("of an expiry")
        };
        let queue = self.queue_name(queue);
        let used = ms_of(used.as_nanos());
        let charge = if iops_mode { format!("{charge} requests") } else { ms_of(charge) };
        let residue =
            residue.map_or("no residue".to_owned(), |ns| format!("residue {}", in_ms(ns)));
        let unaccounted = ms_of(unaccounted.as_nanos());
        format!(
            "expired {queue}: {why:?}, used {used}, charged {charge}, {residue}, sent {sent}, \
             vdisktime {vdisktime}, unaccounted {unaccounted}"
        )
    }

    fn queue_name(&self, queue: QueueName) -> String {
        let mut tasks = self.tasks.iter();
        let task = tasks.find(|(_, ioc)| **ioc == queue.ioc).map_or("?", |(name, _)| name);
        if queue.sync { task.to_owned() } else { format!("async {task}") }
    }

    fn path(&self, group: paternoster::GroupId) -> &str {
        self.groups.iter().find(|(_, id)| **id == group).map_or("?", |(path, _)| path)
    }

    pub(super) fn expect_told(&mut self, line: &str) -> Outcome {
        let unread = self.unread();
        let Some(at) = unread.iter().position(|(_, told)| begins_with(told, line)) else {
            return Err(format!("told instead: {}", listed(&unread)));
        };
        let looked_at = unread[at].0;
        self.events.drain(..=looked_at);
        Ok(())
    }

    pub(super) fn expect_untold(&mut self, line: &str) -> Outcome {
        let unread = self.unread();
        if unread.iter().any(|(_, told)| told.starts_with(line)) {
            return Err(format!("it is told: {}", listed(&unread)));
        }
        Ok(())
    }

    /// Lines that were not looked at, with their places among the events.
    fn unread(&mut self) -> Vec<(usize, String)> {
        self.collect_events();
        let told = |(at, (_, event)): (usize, &(Instant, Event))| Some((at, self.tell(event)?));
        self.events.iter().enumerate().filter_map(told).collect()
    }
}

/// Whether `told` is `line`, or goes on behind a comma.
fn begins_with(told: &str, line: &str) -> bool {
    told.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
}

fn listed(unread: &[(usize, String)]) -> String {
    let lines: Vec<_> = unread.iter().map(|(_, told)| told.as_str()).collect();
    format!("\n    {}", lines.join("\n    "))
}
