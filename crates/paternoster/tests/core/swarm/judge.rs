//! What a trace must say: why nothing is given though requests wait.
//!
//! What is in the device, which of it the scheduler gave, and what the timer is set to is known
//! from outside. The trace says which queue is in service, and for which the device idles.

use std::collections::{BTreeMap, BTreeSet};

use paternoster::scheduler::{Dump, Scheduler};
use paternoster::{
    BfqEvent, CfqEvent, ElevatorEvent, Event, GroupId, Instant, QueueEvent, Request, RequestId,
    SchedulerKind, WaitReason,
};

use crate::swarm::tally::Tally;

/// What has been seen of a trace.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    pub(crate) tally: Tally,
    pub(crate) digest: u64,
    /// The queue in service, by the trace.
    service: Service,
    /// The active queue of CFQ, by the trace.
    active: Option<Active>,
    /// The groups that CFQ's queues left and came to: what is in flight of them is not known.
    pub(crate) moved_among: BTreeSet<GroupId>,
}

/// The active queue under CFQ.
#[derive(Clone, Copy, Debug)]
struct Active {
    group: GroupId,
    sync: bool,
    /// The device idles for it.
    idling: bool,
}

impl Active {
    fn hear(active: &mut Option<Self>, event: Event) {
        match event {
            Event::Cfq(CfqEvent::Active { queue, group, .. }) => {
                *active = Some(Self { group, sync: queue.sync, idling: false });
            }
            Event::Cfq(CfqEvent::SliceExpired { .. }) => *active = None,
            Event::Cfq(CfqEvent::SliceIdling { .. }) => {
                active.as_mut().expect("the device idles for the active queue").idling = true;
            }
            Event::Queue(QueueEvent::IdleTimerFired) => {
                if let Some(active) = active {
                    active.idling = false;
                }
            }
            _ => {}
        }
    }
}

/// The queue in service under BFQ.
#[derive(Debug, Default)]
struct Service {
    /// A queue is in service.
    begun: bool,
    /// The device idles for it, since then and until then.
    idling: Option<(Instant, Instant)>,
}

impl Service {
    fn hear(&mut self, at: Instant, event: Event) {
        match event {
            Event::Bfq(BfqEvent::InService { .. }) => *self = Self { begun: true, idling: None },
            Event::Bfq(BfqEvent::BudgetExpired { .. }) => *self = Self::default(),
            Event::Bfq(BfqEvent::BudgetIdling { length, .. }) => {
                assert!(self.begun, "the device idles for the queue in service");
                self.idling = Some((at, at + length));
            }
            Event::Queue(QueueEvent::IdleTimerFired) => {
                let (_, until) = self.idling.take().expect("the device idled");
                assert!(until <= at, "the timer fires in time");
            }
            _ => {}
        }
    }
}

impl Witness {
    /// Events of a scheduler and its elevator.
    pub(crate) fn see(&mut self, kind: SchedulerKind, events: &[(Instant, Event)]) {
        for (at, event) in events {
            let text = format!("{event:?}");
            self.tally.count(kind, event, &text);
            match kind {
                SchedulerKind::Bfq => self.service.hear(*at, *event),
                SchedulerKind::Cfq => {
                    Active::hear(&mut self.active, *event);
                    if let Event::Cfq(CfqEvent::QueueMoved { from, to, .. }) = *event {
                        self.moved_among.extend([from, to]);
                    }
                }
                _ => {}
            }
            for byte in format!("{at:?}").bytes().chain(text.bytes()) {
                self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
    }
}

/// How many wfq lets be in the device at once, as it says; none if it is not the scheduler.
pub(crate) fn depth_of_wfq(scheduler: &impl Scheduler) -> Option<u32> {
    let mut found = DepthInForce(None);
    scheduler.dump(&mut found);
    found.0
}

struct DepthInForce(Option<u32>);

impl Dump for DepthInForce {
    fn number(&mut self, name: &'static str, value: i64) {
        if name == "depth_in_force" {
            self.0 = Some(u32::try_from(value).expect("a depth"));
        }
    }
}

/// The device, when its elevator gave nothing though requests waited.
pub(crate) struct Silence<'a> {
    pub(crate) kind: SchedulerKind,
    pub(crate) now: Instant,
    /// Requests in the device.
    pub(crate) in_flight: u32,
    pub(crate) queue_depth: u32,
    /// How many wfq lets be in the device, if it is the scheduler.
    pub(crate) depth_of_wfq: Option<u32>,
    /// Of what is in the device, what the scheduler gave.
    pub(crate) given: &'a Given,
    pub(crate) timeout: Option<Instant>,
    /// A timeout that has passed, and of which the elevator was not notified.
    pub(crate) overdue: Option<Instant>,
    /// BFQ is to give one request at a time.
    pub(crate) one_at_a_time: bool,
    /// The group in which CFQ has all asynchronous queues, if it does.
    pub(crate) group_of_async: Option<GroupId>,
}

impl Silence<'_> {
    /// Asserts that the trace of the asking says why, once, and that it is so.
    pub(crate) fn judge(&self, asked: &[(Instant, Event)], witness: &Witness) {
        let reasons = asked.iter().filter_map(|&(_, event)| match event {
            Event::Elevator(ElevatorEvent::Waiting { why, .. }) => Some(why),
            _ => None,
        });
        let reasons: Vec<WaitReason> = reasons.collect();
        let &[why] = reasons.as_slice() else {
            panic!("one reason is given for giving nothing, not {reasons:?}");
        };
        let last = asked.last().map(|&(_, event)| event);
        assert!(matches!(last, Some(Event::Elevator(ElevatorEvent::Waiting { .. }))), "at last");
        match (self.kind, why) {
            (SchedulerKind::Wfq, WaitReason::DeviceFull) => {
                assert!(self.in_flight >= self.depth(), "as many are in it as wfq lets in");
            }
            (_, WaitReason::DeviceFull) => {
                assert!(self.in_flight >= self.queue_depth, "it is full");
            }
            (SchedulerKind::Wfq, _) => {
                assert_eq!(why, WaitReason::Kept, "wfq waits for nothing else");
                assert!(self.in_flight < self.depth(), "what is kept is room");
            }
            (SchedulerKind::Kyber, _) => {
                assert_eq!(why, WaitReason::NoToken, "Kyber waits for nothing else");
                assert!(self.given.count(|_| true) > 0, "requests have the tokens");
            }
            (SchedulerKind::Bfq, _) => self.judge_of_bfq(why, &witness.service),
            (_, _) => self.judge_of_cfq(why, witness),
        }
    }

    /// How many may be in the device under wfq.
    fn depth(&self) -> u32 {
        let depth = self.depth_of_wfq.expect("wfq says how many it lets in");
        depth.min(self.queue_depth)
    }

    fn judge_of_bfq(&self, why: WaitReason, service: &Service) {
        let given = self.given.count(|_| true);
        match why {
            WaitReason::IdleTimer => self.judge_idling(service),
            WaitReason::OneAtATime => assert!(self.one_at_a_time && given > 0, "it is alone"),
            WaitReason::InFlight => {
                assert!(service.begun, "a queue is in service");
                assert!(given > 0, "requests may be of it");
            }
            _ => panic!("BFQ never waits for {why:?}"),
        }
    }

    /// Queues are merged and change hands, so what is in flight is not known by queue here, but
    /// by synchrony and by group; not by group either once queues of that group have moved.
    fn judge_of_cfq(&self, why: WaitReason, witness: &Witness) {
        let active = witness.active.expect("a queue is active");
        let [others, own] =
            [!active.sync, active.sync].map(|sync| self.given.count(|one| one.sync == sync));
        match why {
            WaitReason::IdleTimer => {
                assert!(self.timeout.is_some() && active.idling, "a timer is armed: {active:?}");
            }
            WaitReason::InFlight => {
                assert!(active.sync && own > 0, "requests may be of its queue: {active:?}");
            }
            WaitReason::GroupInFlight => {
                let moved = witness.moved_among.contains(&active.group);
                let of_group = self.given.count(|one| moved || self.group_of(one) == active.group);
                assert!(of_group > 0, "requests are of its group: {active:?}");
            }
            WaitReason::GateAsyncDrains => {
                assert!(active.sync && others > 0, "async ones have to leave: {active:?}");
            }
            WaitReason::GateSyncDrains => {
                assert!(!active.sync && others > 0, "sync ones have to leave: {active:?}");
            }
            WaitReason::GateDepth => assert!(own > 0, "requests may be of it: {active:?}"),
            _ => panic!("CFQ never waits for {why:?}"),
        }
    }

    /// The group that counts the request, if its queue has not moved.
    fn group_of(&self, one: &InFlight) -> GroupId {
        self.group_of_async.filter(|_| !one.sync).unwrap_or(one.group)
    }

    /// The timer that the trace reported runs; unless nobody reported that it is over, or it was
    /// armed for no time at all.
    fn judge_idling(&self, service: &Service) {
        assert!(!self.one_at_a_time || self.given.count(|_| true) == 0, "that is not why");
        let (since, until) = service.idling.expect("the device idles for a queue");
        assert_eq!(self.timeout, Some(until), "the timer is armed");
        let runs = until > self.now || self.overdue == Some(until) || since == until;
        assert!(runs, "the time is not over");
    }
}

/// A request in the device.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    sync: bool,
    group: GroupId,
}

/// Which of the requests in the device their scheduler gave, and will hear of.
#[derive(Debug, Default)]
pub(crate) struct Given {
    in_flight: BTreeMap<RequestId, InFlight>,
    /// Those that were requeued and that the elevator keeps: whether the scheduler will hear of
    /// them again.
    requeued: BTreeMap<RequestId, bool>,
}

impl Given {
    /// A request goes to the device; one that is new there is the scheduler's unless it bypasses.
    pub(crate) fn note(&mut self, rq: RequestId, request: &Request, bypasses: bool) {
        if self.requeued.remove(&rq).unwrap_or(!bypasses) {
            let one = InFlight { sync: request.is_sync(), group: request.group };
            self.in_flight.insert(rq, one);
        }
    }

    pub(crate) fn forget(&mut self, rq: RequestId) {
        self.in_flight.remove(&rq);
    }

    /// CFQ and BFQ leave a requeued request to the elevator, others take it in again.
    pub(crate) fn requeue(&mut self, rq: RequestId, kind: SchedulerKind) {
        let known = self.in_flight.remove(&rq).is_some();
        if !known || matches!(kind, SchedulerKind::Cfq | SchedulerKind::Bfq) {
            self.requeued.insert(rq, known);
        }
    }

    /// Another scheduler comes: what is in the device is none of its.
    pub(crate) fn clear(&mut self) {
        self.in_flight.clear();
        self.requeued.values_mut().for_each(|known| *known = false);
    }

    /// How many of a kind.
    fn count(&self, is_of_kind: impl Fn(&InFlight) -> bool) -> usize {
        self.in_flight.values().filter(|one| is_of_kind(one)).count()
    }
}
