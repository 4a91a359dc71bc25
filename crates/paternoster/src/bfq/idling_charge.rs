//! What it costs the others that the device idles for a queue: charged to that queue, where it is
//! tuned so. Linux charges nothing for it.
//!
//! ```text
//!   a service without idling      S sectors in the time T  ──▶  speed = Σ S / Σ T
//!   a service with idling         charge = max(its sectors, its time × speed)
//! ```
//!
//! The speed is that of the last second or so in which queues had requests all the time: what the
//! others would have got, whatever the size of their requests. CFQ's `charge_whole_turn` does the
//! same in time (`cfq/slice.rs`).

use crate::parts::service_speed::ServiceSpeed;
use crate::request::SectorCount;
use crate::time::Nanos;

/// Whether the device idled for the queue in service, and how fast queues are served for which it
/// does not.
#[derive(Debug, Default)]
pub(super) struct IdlingCharge {
    /// The queue kept the device while it was empty.
    idled: bool,
    /// What the queue had been charged of its budget before, for requests that were injected.
    before: SectorCount,
    /// What others were charged meanwhile, for requests that were injected.
    injected: SectorCount,
    /// Sectors that are charged in services without idling.
    speed: ServiceSpeed,
}

/// A service that ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) time: Nanos,
    /// What the queue has been charged of its budget.
    pub(super) service: SectorCount,
    /// The queue could have gone on, but for its budget or its time.
    pub(super) had_requests: bool,
}

impl IdlingCharge {
    /// A queue that was charged so much of its budget is put in service.
    #[inline]
    pub(super) fn begin_service(&mut self, before: SectorCount) {
        self.idled = false;
        self.before = before;
        self.injected = SectorCount(0);
    }

    /// The queue in service keeps the device though it is empty.
    #[inline]
    pub(super) fn note_idling(&mut self) {
        self.idled = true;
    }

    /// Another queue is charged so much for a request that was injected.
    #[inline]
    pub(super) fn note_injected(&mut self, charge: SectorCount) {
        self.injected = self.injected + charge;
    }

    /// The service ends. Returns up to what the queue is to be charged if the device idled for it.
    /// If not, and it could have gone on, the speed is learned from it.
    pub(super) fn end_service(&mut self, served: Served) -> Option<SectorCount> {
        let Served { time, service, had_requests } = served;
        if self.idled {
            let lost = u32::try_from(self.speed.served_in(time)).unwrap_or(u32::MAX);
            let lost = lost.saturating_sub(self.injected.0);
            return Some(SectorCount(self.before.0.saturating_add(lost)));
        }
        if had_requests {
            self.speed.learn(service.0.saturating_sub(self.before.0).into(), time);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(millis: u64, sectors: u32, had_requests: bool) -> Served {
        Served { time: Nanos::from_millis(millis), service: SectorCount(sectors), had_requests }
    }

    /// 1000 sectors in 10 ms are 100 a millisecond. So 5 ms in which the device idled cost 500, of
    /// which others had 200 by injection; 30 were charged before.
    #[test]
    fn service_with_idling_is_charged_at_the_speed_of_those_without() {
        let mut charge = IdlingCharge::default();
        charge.begin_service(SectorCount(100));
        assert_eq!(charge.end_service(served(10, 1100, true)), None);
        charge.begin_service(SectorCount(30));
        charge.note_idling();
        charge.note_injected(SectorCount(150));
        charge.note_injected(SectorCount(50));
        assert_eq!(charge.end_service(served(5, 38, false)), Some(SectorCount(330)));
        charge.begin_service(SectorCount(0));
        charge.note_idling();
        assert_eq!(charge.end_service(served(5, 38, false)), Some(SectorCount(500)), "a new one");
        charge.begin_service(SectorCount(0));
        assert_eq!(charge.end_service(served(5, 38, false)), None, "the device did not idle");
    }

    /// The queue ran empty: it might have been served faster. Where others had more by injection
    /// than what was lost, there is nothing to charge but what was charged before.
    #[test]
    fn speed_is_learned_only_from_queues_that_had_requests() {
        let mut charge = IdlingCharge::default();
        charge.begin_service(SectorCount(0));
        assert_eq!(charge.end_service(served(10, 1000, false)), None);
        charge.begin_service(SectorCount(7));
        charge.note_idling();
        charge.note_injected(SectorCount(1));
        assert_eq!(charge.end_service(served(5, 8, true)), Some(SectorCount(7)));
    }
}
