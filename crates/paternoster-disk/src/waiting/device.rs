//! The reads and writes in the device, as the estimator of the core knows them.

use paternoster::poll::{
    Completions, Estimator, PollClass, PollPolicy, PollStatistics, Ticket, Wait,
};
use paternoster::scheduler::SideTable;
use paternoster::{Direction, Instant, Nanos, RequestId, SectorCount};

use crate::engine::{Transfer, TransferId};

/// Waiting for the device of one thread.
#[derive(Debug)]
pub(super) struct DeviceWait {
    estimator: Estimator,
    /// Whether transfers take any time. In memory they do not, and nobody waits for them.
    takes_time: bool,
    /// Those in the device that the estimator knows of.
    tickets: SideTable<RequestId, Ticket>,
    /// A sleep that is over, and the estimator has yet to hear of it: until when it was to be, and
    /// when it ended.
    slept: Option<(Instant, Instant)>,
}

impl DeviceWait {
    pub(super) fn new(policy: PollPolicy, takes_time: bool) -> Self {
        // A completion ends a sleep, so that its moment is known.
        let estimator = Estimator::new(policy, Completions::Stamped);
        Self { estimator, takes_time, tickets: SideTable::new(), slept: None }
    }

    pub(super) fn policy(&self) -> PollPolicy {
        self.estimator.policy()
    }

    pub(super) fn set_policy(&mut self, policy: PollPolicy) {
        self.estimator.set_policy(policy);
    }

    /// Reads and writes in the device, but for those that began while nobody wanted to know.
    pub(super) fn len(&self) -> usize {
        self.tickets.len()
    }

    pub(super) fn started(&mut self, id: TransferId, transfer: &Transfer, now: Instant) {
        let TransferId::Request(_, rq) = id else { return };
        if !self.takes_time || self.policy() == PollPolicy::Interrupt {
            return;
        }
        if let Some(class) = class_of(transfer) {
            self.tickets.insert(rq, self.estimator.submitted(class, now));
        }
    }

    pub(super) fn done(&mut self, id: TransferId, at: Instant) {
        let TransferId::Request(_, rq) = id else { return };
        if let Some(ticket) = self.tickets.remove(rq) {
            self.estimator.completed(ticket, at);
        }
    }

    pub(super) fn wait(&mut self, now: Instant) -> Wait {
        if self.tickets.is_empty() { Wait::Block } else { self.estimator.wait(now) }
    }

    pub(super) fn looked_until(&mut self, now: Instant) {
        self.estimator.looked_until(now);
    }

    pub(super) fn slept(&mut self, asked: Instant, at: Instant) {
        self.slept = Some((asked, at));
    }

    pub(super) fn first_look(&mut self, found: impl FnOnce() -> bool) {
        if let Some((asked, at)) = self.slept.take() {
            self.estimator.woke(asked, at, found());
        }
    }

    pub(super) fn calibration_wanted(&self) -> Option<Nanos> {
        self.estimator.calibration_wanted().filter(|_| self.takes_time)
    }

    pub(super) fn calibrated(&mut self, asked: Nanos, overshoot: Nanos, cpu: Nanos) {
        self.estimator.calibrated(asked, overshoot, cpu);
    }

    pub(super) fn statistics(&self) -> PollStatistics {
        self.estimator.statistics()
    }
}

/// The class of a read or write; the others have none, as with Linux.
fn class_of(transfer: &Transfer) -> Option<PollClass> {
    let direction = match transfer {
        Transfer::Read { .. } | Transfer::ReadInto { .. } => Direction::Read,
        Transfer::Write { .. } => Direction::Write,
        _ => return None,
    };
    let sectors = transfer.len().div_ceil(512);
    PollClass::of(direction, SectorCount(u32::try_from(sectors).unwrap_or(u32::MAX)))
}
