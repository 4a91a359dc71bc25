//! The events of the trace as text: a line for each decision.
//!
//! ```text
//!   active a                                   slice a: 100 ms
//!   workload /a: Be Sync for 150 ms            window a: off
//!   idles a: 8 ms                              idles a: 8 ms for its group
//!   expired a: Empty, used 9 ms, charged 9 ms, residue 0 ms, dispatched 9, vdisktime 36864000000
//! ```
//!
//! A service of BFQ has a budget in sectors, and BFQ does more:
//!
//! ```text
//!   in service a, budget 1024, weight 1200     raised a: 30, for 10500 ms
//!   expired a: Timeout, charged 104 of 16384, slow, in flight 0
//!   injected b for a                           limit a: 2
//! ```
//!
//! Kyber has domains:
//!
//! ```text
//!   latency Read Total p99: 3/4 of 500         depth Read: 192
//!   throttled Write
//! ```
//!
//! wfq has tags, in thousandths of an op a weight:
//!
//! ```text
//!   fair busy /a: 10 at 10                     fair dispatch a: 1000, 10
//! ```
//!
//! A queue goes by the task that made it, an async one as `async a`.
//!
//! A test may expect that a line is *not* emitted. Such a test would always pass if no event could
//! make that line. Therefore the lines are a table: it makes the text of each event, and it knows
//! how a line may begin. A beginning that no line of the rig's schedulers can have fails the test.

use paternoster::Event::{Bfq, Cfq, Elevator, Kyber, Queue, Wfq};
use paternoster::{
    BfqEvent, BudgetEnd, CfqEvent, Domain, ElevatorEvent, Event, FairWhy, GroupId, Hierarchy,
    HoldReason, Instant, IoClass, IoPrio, KyberEvent, LatencyKind, Nanos, PreemptReason,
    QueueEvent, QueueName, SchedulerKind, SectorCount, ShareOf, SliceEnd, Ticks, Vtime, WaitReason,
    WfqEvent, Workload,
};

use super::words::{
    Charge, ForGroup, Hole, Ops, RequestName, Residue, Slow, Switch, Word, begins, can_begin,
};
use super::{Outcome, Rig};

const ALL: &[SchedulerKind] = &SchedulerKind::ALL;
const KYBER: &[SchedulerKind] = &[SchedulerKind::Kyber];
const CFQ: &[SchedulerKind] = &[SchedulerKind::Cfq];
const BFQ: &[SchedulerKind] = &[SchedulerKind::Bfq];
const WFQ: &[SchedulerKind] = &[SchedulerKind::Wfq];
const BOTH: &[SchedulerKind] = &[SchedulerKind::Cfq, SchedulerKind::Bfq];

/// A line: the schedulers that emit it, its text with holes, and what each hole takes.
pub struct Line {
    by: &'static [SchedulerKind],
    template: &'static str,
    holes: &'static [Hole],
}

impl Line {
    /// Does something for each scheduler that emits it.
    pub fn by(&self, each: impl Fn(SchedulerKind)) {
        self.by.iter().copied().for_each(each);
    }

    /// Its text up to where it names something.
    pub fn first_words(&self) -> &'static str {
        let (words, _) = self.template.split_once(['{', ':']).unwrap_or((self.template, ""));
        words.trim_end()
    }
}

/// Makes a table `by: event => line { hole: type }` into the list of lines and the function that
/// writes an event as its line. A hole's value is the event's field of that name, or stands behind
/// the type.
macro_rules! lines {
    (@value $hole:ident) => { $hole };
    (@value $hole:ident $value:expr) => { $value };
    ($($by:ident: $event:pat => $line:literal
        { $($hole:ident: $kind:ty $(= $value:expr)?),* };)*) => {
        /// All lines that events can make.
        pub const LINES: &[Line] = &[$(
            Line {
                by: $by,
                template: $line,
                holes: &[$((stringify!($hole), <$kind as Word>::is_one)),*],
            },
        )*];

        /// The line of an event.
        fn line(rig: &Rig, event: &Event) -> Option<String> {
            Some(match *event {
                $($event => {
                    $(let $hole: $kind = lines!(@value $hole $($value)?);)*
                    $(let $hole = Word::word(&$hole, rig);)*
                    format!($line)
                })*
                _ => return None,
            })
        }
    };
}

lines! {
    ALL: Elevator(ElevatorEvent::Waiting { why, .. }) => "waiting: {why}" { why: WaitReason };
    BOTH: Queue(QueueEvent::QueueMade { queue, group, .. }) => "made {queue} in {group}"
        { queue: QueueName, group: GroupId };
    BOTH: Queue(QueueEvent::Priority { queue, io_prio, .. }) => "priority {queue}: {io_prio}"
        { queue: QueueName, io_prio: IoPrio };
    BOTH: Queue(QueueEvent::Busy { queue, .. }) => "busy {queue}" { queue: QueueName };
    BOTH: Queue(QueueEvent::NotBusy { queue, .. }) => "not busy {queue}" { queue: QueueName };
    BOTH: Queue(QueueEvent::QueueFreed { queue, .. }) => "freed {queue}" { queue: QueueName };
    BOTH: Queue(QueueEvent::GroupMoved { ioc, .. }) => "moved {queue}"
        { queue: QueueName = QueueName { ioc, sync: true } };
    BOTH: Queue(QueueEvent::IdleTimerFired) => "timer" {};
    BOTH: Queue(QueueEvent::Preempted { by, over, why, .. }) => "preempted {over} by {by}: {why}"
        { by: QueueName, over: QueueName, why: PreemptReason };
    BOTH: Queue(QueueEvent::MergePlanned { queue, into, .. }) => "to merge {queue} into {into}"
        { queue: QueueName, into: QueueName };
    BOTH: Queue(QueueEvent::QueuesMerged { queue, into, .. }) => "merged {queue} into {into}"
        { queue: QueueName, into: QueueName };
    BOTH: Queue(QueueEvent::SplitPlanned { queue, .. }) => "to split {queue}" { queue: QueueName };
    BOTH: Queue(QueueEvent::QueueSplit { queue, .. }) => "split {queue}" { queue: QueueName };
    BOTH: Queue(QueueEvent::Overdue { rq, .. }) => "overdue {rq}"
        { rq: RequestName = RequestName(rq) };
    BOTH: Queue(QueueEvent::HardwareQueueing { now, .. }) => "hardware queueing: {now}"
        { now: bool };
    BOTH: Elevator(ElevatorEvent::Drained { requests, .. }) => "drained {requests}"
        { requests: u32 };

    KYBER: Kyber(KyberEvent::Latency { domain, kind, percent, quarters, samples, .. }) =>
        "latency {domain} {kind} p{percent}: {quarters}/4 of {samples}"
        { domain: Domain, kind: LatencyKind, percent: u32, quarters: u32, samples: u32 };
    KYBER: Kyber(KyberEvent::DepthChanged { domain, depth, .. }) => "depth {domain}: {depth}"
        { domain: Domain, depth: u32 };
    KYBER: Kyber(KyberEvent::Throttled { domain, .. }) => "throttled {domain}" { domain: Domain };

    CFQ: Cfq(CfqEvent::GroupLeft { group, .. }) => "left {group}" { group: GroupId };
    CFQ: Cfq(CfqEvent::HierarchySwitched { to, .. }) => "hierarchy {to}" { to: Hierarchy };
    CFQ: Cfq(CfqEvent::Workload { group, class, workload, span, .. }) =>
        "workload {group}: {class} {workload} for {span}"
        { group: GroupId, class: IoClass, workload: Workload, span: Nanos };
    CFQ: Cfq(CfqEvent::Active { queue, .. }) => "active {queue}" { queue: QueueName };
    CFQ: Cfq(CfqEvent::Slice { queue, length, .. }) => "slice {queue}: {length}"
        { queue: QueueName, length: Nanos };
    CFQ: Cfq(CfqEvent::SliceExpired {
        queue, why, residue, used, unaccounted, dispatched, charge, iops_mode, vdisktime, ..
    }) =>
        "expired {queue}: {why}, used {used}, charged {charge}, {residue}, \
         dispatched {dispatched}, \
         vdisktime {vdisktime}, unaccounted {unaccounted}"
        {
            queue: QueueName, why: SliceEnd, used: Nanos,
            charge: Charge = Charge { charge, iops_mode }, residue: Residue = Residue(residue),
            dispatched: u32, vdisktime: u64, unaccounted: Nanos
        };
    CFQ: Cfq(CfqEvent::SliceUsed { queue, used, dispatched, charge, iops_mode, sectors, .. }) =>
        "sl_used {queue}: {used}, disp {dispatched}, charge {charge}, iops {iops_mode}, \
         sect {sectors}"
        {
            queue: QueueName, used: Ticks, dispatched: u32, charge: u64, iops_mode: bool,
            sectors: u64
        };
    CFQ: Cfq(CfqEvent::QueueMoved { queue, from, to, .. }) => "queue moved {queue}: {from} to {to}"
        { queue: QueueName, from: GroupId, to: GroupId };
    CFQ: Cfq(CfqEvent::IdleWindow { queue, on, .. }) => "window {queue}: {on}"
        { queue: QueueName, on: Switch = Switch(on) };
    CFQ: Cfq(CfqEvent::WindowGivenUp { queue, .. }) => "window {queue}: given up"
        { queue: QueueName };
    CFQ: Cfq(CfqEvent::SliceIdling { queue, length, for_group, .. }) =>
        "idles {queue}: {length}{whose}"
        { queue: QueueName, length: Nanos, whose: ForGroup = ForGroup(for_group) };
    CFQ: Cfq(CfqEvent::WaitBusy { queue, .. }) => "wait busy {queue}" { queue: QueueName };

    BFQ: Bfq(BfqEvent::InService { queue, budget, weight, .. }) =>
        "in service {queue}, budget {budget}, weight {weight}"
        { queue: QueueName, budget: SectorCount, weight: u32 };
    BFQ: Bfq(BfqEvent::BudgetExpired { queue, why, slow, service, budget, in_flight, .. }) =>
        "expired {queue}: {why}, charged {service} of {budget}, {pace}, in flight {in_flight}"
        {
            queue: QueueName, why: BudgetEnd, service: SectorCount, budget: SectorCount,
            pace: Slow = Slow(slow), in_flight: u32
        };
    BFQ: Bfq(BfqEvent::BudgetIdling { queue, length, .. }) => "idles {queue}: {length}"
        { queue: QueueName, length: Nanos };
    BFQ: Bfq(BfqEvent::Injected { queue, instead_of, .. }) => "injected {queue} for {instead_of}"
        { queue: QueueName, instead_of: QueueName };
    BFQ: Bfq(BfqEvent::InjectionLimit { queue, limit, .. }) => "limit {queue}: {limit}"
        { queue: QueueName, limit: u32 };
    BFQ: Bfq(BfqEvent::WakerFound { queue, waker, .. }) => "waker of {queue}: {waker}"
        { queue: QueueName, waker: QueueName };
    BFQ: Bfq(BfqEvent::Raised { queue, factor, length, .. }) =>
        "raised {queue}: {factor}, for {length}"
        { queue: QueueName, factor: u32, length: Nanos };
    BFQ: Bfq(BfqEvent::LargeBurst { .. }) => "large burst" {};
    BFQ: Bfq(BfqEvent::QueueMerging { on, .. }) => "queue merging: {on}"
        { on: Switch = Switch(on) };
    BFQ: Bfq(BfqEvent::PeakRate { rate, .. }) => "peak rate {rate}" { rate: u32 };
    WFQ: Wfq(WfqEvent::Busy { node, start, v, .. }) => "fair busy {node}: {start} at {v}"
        { node: ShareOf, start: Vtime, v: Vtime };
    WFQ: Wfq(WfqEvent::Chosen { rq, start, charge, why, .. }) =>
        "fair dispatch {rq}: {charge}, {start}, {why}"
        {
            rq: RequestName = RequestName(rq), start: Vtime, charge: Ops = Ops(charge),
            why: FairWhy
        };
    WFQ: Wfq(WfqEvent::Held { node, why, .. }) => "fair held {node}: {why}"
        { node: ShareOf, why: HoldReason };
    WFQ: Wfq(WfqEvent::Released { node, .. }) => "fair released {node}" { node: ShareOf };
    BFQ: Bfq(BfqEvent::MaxBudget { sectors, .. }) => "max budget {sectors}"
        { sectors: SectorCount };
}

impl Rig {
    /// The line of an event; none for those of the elevator, which say what a test did itself.
    pub fn line_of(&self, event: &Event) -> Option<String> {
        line(self, event)
    }

    /// Panics where no line of a scheduler of this rig can begin so.
    pub fn assert_can_be_emitted(&self, text: &str) {
        let by = |line: &&Line| line.by.iter().any(|kind| self.kinds.contains(kind));
        let mut lines = LINES.iter().filter(by);
        let known = lines.clone().map(|line| line.template).collect::<Vec<_>>();
        assert!(
            lines.any(|line| can_begin(self, line.template, line.holes, text)),
            "no line can begin with {text:?}; they are\n    {}",
            known.join("\n    ")
        );
    }

    pub(super) fn expect_emitted(&mut self, line: &str) -> Outcome {
        self.assert_can_be_emitted(line);
        let unread = self.unread();
        let Some(at) = unread.iter().position(|(_, emitted)| is_emitted(emitted, line)) else {
            return Err(format!("emitted instead: {}", lines_of(&unread)));
        };
        let looked_at = unread[at].0;
        self.events.drain(..=looked_at);
        Ok(())
    }

    pub(super) fn expect_not_emitted(&mut self, line: &str) -> Outcome {
        self.assert_can_be_emitted(line);
        let unread = self.unread();
        if unread.iter().any(|(_, emitted)| begins(emitted, line)) {
            return Err(format!("it is emitted: {}", lines_of(&unread)));
        }
        Ok(())
    }

    /// Lines that were not looked at, with their places among the events.
    fn unread(&mut self) -> Vec<(usize, String)> {
        self.collect_events();
        let emitted =
            |(at, (_, event)): (usize, &(Instant, Event))| Some((at, self.line_of(event)?));
        self.events.iter().enumerate().filter_map(emitted).collect()
    }
}

/// Returns whether `emitted` is `line`, or goes on behind a comma.
fn is_emitted(emitted: &str, line: &str) -> bool {
    emitted.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
}

fn lines_of(unread: &[(usize, String)]) -> String {
    let lines: Vec<_> = unread.iter().map(|(_, emitted)| emitted.as_str()).collect();
    format!("\n    {}", lines.join("\n    "))
}
