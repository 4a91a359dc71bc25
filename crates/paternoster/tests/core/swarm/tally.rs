//! Everything that a scheduler can do has been done: how often each thing was, by its events.

use std::collections::BTreeMap;
use std::fmt::Debug;

use paternoster::{
    BfqEvent, CfqEvent, ElevatorEvent, Event, IocId, QueueEvent, QueueName, SchedulerKind,
};

/// What CFQ does only now and then, by the names of events and reasons.
const RARE_OF_CFQ: [&str; 50] = [
    "Active",
    "Drained",
    "SliceExpired AsyncRequests",
    "SliceExpired Cooperator",
    "SliceExpired Drain",
    "SliceExpired Empty",
    "SliceExpired Exit",
    "SliceExpired Gone",
    "SliceExpired HierarchySwitched",
    "SliceExpired IdleClass",
    "SliceExpired IdleTimer",
    "SliceExpired Preempted",
    "SliceExpired SliceUsed",
    "SliceExpired WaitBusy",
    "GroupLeft",
    "GroupMoved",
    "HierarchySwitched",
    "HardwareQueueing false",
    "HardwareQueueing true",
    "SliceIdling false",
    "SliceIdling true",
    "IdleTimerFired",
    "IdleWindow false",
    "IdleWindow true",
    "Overdue",
    "Preempted Close",
    "Preempted NoIdleWorkload",
    "Preempted NotIdling",
    "Preempted OverIdleClass",
    "Preempted Priority",
    "Preempted RealTime",
    "Preempted SliceOver",
    "Preempted SyncOverAsync",
    "QueueFreed",
    "QueueMoved",
    "QueueSplit",
    "QueuesMerged",
    "SliceUsed",
    "WaitBusy",
    "Waiting DeviceFull",
    "Waiting GateAsyncDrains",
    "Waiting GateDepth",
    "Waiting GateSyncDrains",
    "Waiting GroupInFlight",
    "Waiting IdleTimer",
    "Waiting InFlight",
    "Workload Async",
    "Workload Sync",
    "Workload SyncNoIdle",
    "charged in requests",
];

/// What BFQ does only now and then.
const RARE_OF_BFQ: [&str; 47] = [
    "BudgetExpired Exhausted",
    "BudgetExpired NoMoreRequests",
    "BudgetExpired Preempted",
    "BudgetExpired Timeout",
    "BudgetExpired TooIdle",
    "Drained",
    "GroupMoved",
    "HardwareQueueing false",
    "HardwareQueueing true",
    "IdleTimerFired",
    "BudgetIdling",
    "Injected",
    "InjectionLimit down",
    "InjectionLimit of 2",
    "InjectionLimit up",
    "LargeBurst",
    "MaxBudget",
    "MergePlanned at creation",
    "MergePlanned into older",
    "MergePlanned into younger",
    "Overdue",
    "PeakRate",
    "Preempted Class",
    "Preempted InTime",
    "Preempted NotIdling",
    "Preempted Weight",
    "Priority",
    "QueueFreed",
    "QueueMerging false",
    "QueueMerging true",
    "QueueSplit",
    "QueuesMerged",
    "Raised for starving",
    "Raised from 1 to 30",
    "Raised from 1 to 3000",
    "Raised from 30 to 1",
    "Raised from 30 to 3000",
    "Raised from 3000 to 1",
    "Raised from 3000 to 30",
    "SplitPlanned",
    "NotBusy",
    "Waiting DeviceFull",
    "Waiting IdleTimer",
    "Waiting InFlight",
    "Waiting OneAtATime",
    "WakerFound",
    "charged for time",
];

/// How often each thing happened.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    times: BTreeMap<String, u64>,
    /// The raising factor and the injection limit of each queue, as last reported.
    raised: BTreeMap<(IocId, bool), u32>,
    limits: BTreeMap<(IocId, bool), u32>,
    /// The number of queues created, the number of each, and the queue created by the last event.
    created: u64,
    made: BTreeMap<(IocId, bool), u64>,
    new_queue: Option<QueueName>,
}

impl Tally {
    /// Counts an event of a scheduler; `text` is its debug text.
    pub(crate) fn count(&mut self, kind: SchedulerKind, event: &Event, text: &str) {
        let (_, own) = text.split_once('(').expect("whose event it is stands before the event");
        let name = own.split([' ', ')']).next().expect("an event has a name");
        let why: Option<&dyn Debug> = match event {
            Event::Elevator(ElevatorEvent::Waiting { why, .. }) => Some(why),
            Event::Cfq(CfqEvent::SliceExpired { why, .. }) => Some(why),
            Event::Bfq(BfqEvent::BudgetExpired { why, .. }) => Some(why),
            Event::Queue(QueueEvent::Preempted { why, .. }) => Some(why),
            Event::Cfq(CfqEvent::Workload { workload, .. }) => Some(workload),
            Event::Cfq(CfqEvent::SliceIdling { for_group, .. }) => Some(for_group),
            Event::Cfq(CfqEvent::IdleWindow { on, .. })
            | Event::Bfq(BfqEvent::QueueMerging { on, .. }) => Some(on),
            Event::Queue(QueueEvent::HardwareQueueing { now, .. }) => Some(now),
            _ => None,
        };
        match why {
            Some(why) => self.add(kind, &format!("{name} {why:?}")),
            None => self.add(kind, name),
        }
        match *event {
            Event::Cfq(CfqEvent::SliceExpired { iops_mode: true, .. }) => {
                self.add(kind, "charged in requests");
            }
            Event::Bfq(BfqEvent::BudgetExpired { slow: true, .. }) => {
                self.add(kind, "charged for time");
            }
            Event::Queue(QueueEvent::QueueMade { queue, .. }) => {
                self.created += 1;
                self.made.insert((queue.ioc, queue.sync), self.created);
            }
            Event::Queue(QueueEvent::MergePlanned { queue, into, .. }) => {
                self.count_merge(kind, queue, into);
            }
            Event::Bfq(BfqEvent::Raised { queue, factor, .. }) => {
                self.count_raising(kind, queue, factor);
            }
            Event::Bfq(BfqEvent::InjectionLimit { queue, limit, .. }) => {
                let before = self.limits.insert((queue.ioc, queue.sync), limit).unwrap_or(0);
                let change = if limit > before { "up" } else { "down" };
                self.add(kind, &format!("InjectionLimit {change}"));
                self.add(kind, &format!("InjectionLimit of {limit}"));
            }
            _ => {}
        }
        self.new_queue = match *event {
            Event::Queue(QueueEvent::QueueMade { queue, .. }) => Some(queue),
            _ => None,
        };
    }

    fn count_merge(&mut self, kind: SchedulerKind, queue: QueueName, into: QueueName) {
        let [from, to] = [queue, into].map(|name| self.made[&(name.ioc, name.sync)]);
        let other = if to < from { "older" } else { "younger" };
        self.add(kind, &format!("MergePlanned into {other}"));
        if self.new_queue == Some(queue) {
            self.add(kind, "MergePlanned at creation");
        }
    }

    fn count_raising(&mut self, kind: SchedulerKind, queue: QueueName, factor: u32) {
        let before = self.raised.insert((queue.ioc, queue.sync), factor).unwrap_or(1);
        self.add(kind, &format!("Raised from {before} to {factor}"));
        if !queue.sync && factor > 1 {
            self.add(kind, "Raised for starving");
        }
    }

    fn add(&mut self, kind: SchedulerKind, what: &str) {
        *self.times.entry(format!("{kind:?} {what}")).or_default() += 1;
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        for (what, times) in other.times {
            *self.times.entry(what).or_default() += times;
        }
    }

    /// What CFQ or BFQ can do and never did.
    pub(crate) fn missing(&self) -> Vec<String> {
        let names = [("Cfq", RARE_OF_CFQ.as_slice()), ("Bfq", RARE_OF_BFQ.as_slice())];
        let all = names.into_iter().flat_map(|(scheduler, rare)| {
            rare.iter().map(move |what| format!("{scheduler} {what}"))
        });
        all.filter(|what| !self.times.contains_key(what)).collect()
    }
}
