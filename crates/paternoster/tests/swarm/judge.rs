//! What a trace must say: why nothing is given though requests wait.

use std::collections::{BTreeMap, BTreeSet};

use paternoster::{Event, Instant, RequestId, SchedulerKind, WaitReason};

use crate::tally::Tally;

/// What has been seen of a trace.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    pub(crate) tally: Tally,
    pub(crate) digest: u64,
    /// The queue in service, by the trace.
    service: Service,
}

/// Whose turn it is under BFQ.
#[derive(Debug, Default)]
struct Service {
    /// A queue is in service.
    begun: bool,
    /// The device is kept free for it, since then and until then.
    idling: Option<(Instant, Instant)>,
}

impl Service {
    fn hear(&mut self, at: Instant, event: Event) {
        match event {
            Event::InService { .. } => *self = Self { begun: true, idling: None },
            Event::BudgetExpired { .. } => *self = Self::default(),
            Event::Idling { length, .. } => {
                assert!(self.begun, "the device is kept free for the queue in service");
                self.idling = Some((at, at + length));
            }
            Event::IdleTimerFired => {
                let (_, until) = self.idling.take().expect("the device was kept free");
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
            if kind == SchedulerKind::Bfq {
                self.service.hear(*at, *event);
            }
            for byte in format!("{at:?}").bytes().chain(text.bytes()) {
                self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
    }
}

/// The device, when its elevator gave nothing though requests waited.
pub(crate) struct Silence {
    pub(crate) kind: SchedulerKind,
    pub(crate) now: Instant,
    /// Requests in the device.
    pub(crate) in_device: u32,
    pub(crate) queue_depth: u32,
    /// Of what is in the device, what the scheduler gave.
    pub(crate) given: u32,
    pub(crate) timeout: Option<Instant>,
    /// A timeout that has passed, and of which the elevator has not been told.
    pub(crate) overdue: Option<Instant>,
    /// BFQ is to give one request at a time.
    pub(crate) one_at_a_time: bool,
}

impl Silence {
    /// Asserts that the trace of the asking says why, once, and that it is so.
    pub(crate) fn judge(&self, asked: &[(Instant, Event)], witness: &Witness) {
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
            WaitReason::IdleTimer if self.kind == SchedulerKind::Bfq => {
                self.judge_idling(&witness.service);
            }
            WaitReason::IdleTimer => assert!(self.timeout.is_some(), "a timer is armed"),
            WaitReason::OneAtATime => assert!(self.one_at_a_time && self.given > 0, "it is alone"),
            WaitReason::InFlight if self.kind == SchedulerKind::Bfq => {
                assert!(self.given > 0 && witness.service.begun, "requests may be of its queue");
            }
            _ => assert!(self.given > 0, "{why:?}: something is in flight"),
        }
    }
}

impl Silence {
    /// The timer runs that the trace told of; unless nobody told that it is over, or it was armed
    /// for no time at all.
    fn judge_idling(&self, service: &Service) {
        assert!(!self.one_at_a_time || self.given == 0, "that is not why");
        let (since, until) = service.idling.expect("a queue is waited for");
        assert_eq!(self.timeout, Some(until), "the timer is armed");
        let runs = until > self.now || self.overdue == Some(until) || since == until;
        assert!(runs, "the time is not over");
    }
}

/// Which of the requests in the device their scheduler gave, and will hear of.
#[derive(Debug, Default)]
pub(crate) struct Given {
    in_device: BTreeSet<RequestId>,
    /// Those that were handed back and that the elevator keeps: whether the scheduler will hear of
    /// them again.
    handed_back: BTreeMap<RequestId, bool>,
}

impl Given {
    /// A request goes to the device; one that is new there is the scheduler's unless it bypasses.
    pub(crate) fn note(&mut self, rq: RequestId, bypasses: bool) {
        if self.handed_back.remove(&rq).unwrap_or(!bypasses) {
            self.in_device.insert(rq);
        }
    }

    pub(crate) fn forget(&mut self, rq: RequestId) {
        self.in_device.remove(&rq);
    }

    /// CFQ and BFQ leave to the elevator what the device hands back, others take it in again.
    pub(crate) fn hand_back(&mut self, rq: RequestId, kind: SchedulerKind) {
        let known = self.in_device.remove(&rq);
        if !known || matches!(kind, SchedulerKind::Cfq | SchedulerKind::Bfq) {
            self.handed_back.insert(rq, known);
        }
    }

    /// Another scheduler comes: what is in the device is none of its.
    pub(crate) fn clear(&mut self) {
        self.in_device.clear();
        self.handed_back.values_mut().for_each(|known| *known = false);
    }

    /// How many.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.in_device.len()).expect("a few requests")
    }
}
