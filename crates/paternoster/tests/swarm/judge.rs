//! What a trace must say: why nothing is given though requests wait, and that everything that a
//! scheduler can do has been done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use paternoster::{Event, Instant, RequestId, WaitReason};

/// What CFQ does only now and then, by the names of events and reasons.
const RARE: [&str; 46] = [
    "Active",
    "Drained",
    "Expired AsyncRequests",
    "Expired Cooperator",
    "Expired Drain",
    "Expired Empty",
    "Expired Exit",
    "Expired Gone",
    "Expired IdleClass",
    "Expired IdleTimer",
    "Expired Preempted",
    "Expired SliceUsed",
    "Expired WaitBusy",
    "GroupLeft",
    "GroupMoved",
    "HardwareQueueing false",
    "HardwareQueueing true",
    "IdleArmed false",
    "IdleArmed true",
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
    "QueueSplit",
    "QueuesMerged",
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

/// How often each thing happened.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// Counts an event, which is told by that text.
    fn count(&mut self, event: &Event, text: &str) {
        let name = text.split(' ').next().expect("an event has a name");
        let why: Option<&dyn Debug> = match event {
            Event::Waiting { why } => Some(why),
            Event::Expired { why, .. } => Some(why),
            Event::Preempted { why, .. } => Some(why),
            Event::Workload { workload, .. } => Some(workload),
            Event::IdleArmed { for_group, .. } => Some(for_group),
            Event::IdleWindow { on, .. } => Some(on),
            Event::HardwareQueueing { now, .. } => Some(now),
            _ => None,
        };
        match why {
            Some(why) => self.add(format!("{name} {why:?}"), 1),
            None => self.add(name.to_owned(), 1),
        }
        if matches!(event, Event::Expired { iops_mode: true, .. }) {
            self.add("charged in requests".to_owned(), 1);
        }
    }

    fn add(&mut self, what: String, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        for (what, times) in other.0 {
            self.add(what, times);
        }
    }

    /// What never happened though CFQ can do it.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        RARE.into_iter().filter(|&what| !self.0.contains_key(what)).collect()
    }
}

/// What has been seen of a trace.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    pub(crate) tally: Tally,
    pub(crate) digest: u64,
}

impl Witness {
    pub(crate) fn see(&mut self, events: &[(Instant, Event)]) {
        for (at, event) in events {
            let text = format!("{event:?}");
            self.tally.count(event, &text);
            for byte in format!("{at:?}").bytes().chain(text.bytes()) {
                self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
    }
}

/// The device, when its elevator gave nothing though requests waited.
pub(crate) struct Silence {
    /// Requests in the device.
    pub(crate) in_device: u32,
    pub(crate) queue_depth: u32,
    /// Of what is in the device, what the scheduler gave.
    pub(crate) given: u32,
    pub(crate) timeout: Option<Instant>,
}

impl Silence {
    /// Asserts that the trace of the asking says why, once, and that it is so.
    pub(crate) fn judge(&self, asked: &[(Instant, Event)]) {
        let reasons = asked.iter().filter_map(|&(_, event)| match event {
            Event::Waiting { why } => Some(why),
            _ => None,
        });
        let reasons: Vec<WaitReason> = reasons.collect();
        let &[why] = reasons.as_slice() else {
            panic!("one reason is given for giving nothing, not {reasons:?}");
        };
        assert_eq!(asked.last().map(|&(_, event)| event), Some(Event::Waiting { why }), "at last");
        match why {
            WaitReason::DeviceFull => assert!(self.in_device >= self.queue_depth, "it is full"),
            WaitReason::IdleTimer => assert!(self.timeout.is_some(), "a timer is armed"),
            _ => assert!(self.given > 0, "{why:?}: something is in flight"),
        }
    }
}

/// Which of the requests in the device their scheduler gave, and will hear of.
#[derive(Debug, Default)]
pub(crate) struct Given(BTreeSet<RequestId>);

impl Given {
    pub(crate) fn note(&mut self, rq: RequestId) {
        self.0.insert(rq);
    }

    pub(crate) fn forget(&mut self, rq: RequestId) {
        self.0.remove(&rq);
    }

    /// Another scheduler comes: what is in the device is none of its.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many of `in_device`.
    pub(crate) fn of(&self, in_device: &[RequestId]) -> u32 {
        let count = in_device.iter().filter(|rq| self.0.contains(rq)).count();
        u32::try_from(count).expect("a few requests")
    }
}
