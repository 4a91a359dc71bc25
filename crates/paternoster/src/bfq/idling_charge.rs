//! What it costs the others that the device idles for a queue: charged to that queue, where it is
//! tuned so. Linux charges nothing for it.
//!
//! ```text
//!   a service with idling     charge = its sectors + what the device did not serve meanwhile
//! ```
//!
//! What the device would have served follows from its speed (`parts/service_speed.rs`), whatever
//! the size of the requests; what it served for others by injection is not lost. CFQ's
//! `charge_whole_turn` does the same by requests (`cfq/expire.rs`).

use crate::parts::service_speed::{Mark, ServiceSpeed, Unjudged};
use crate::request::SectorCount;
use crate::time::Instant;

/// Whether the device idled for the queue in service, and how fast it serves.
#[derive(Debug, Default)]
pub(super) struct IdlingCharge {
    /// The queue kept the device while it was empty, and others had requests.
    idled: bool,
    /// The queue dispatched its last request.
    ran_empty: bool,
    /// When the service began; valid while there is one.
    since: Option<Mark>,
    /// The sectors that the device completes, as far as they are charged.
    speed: ServiceSpeed,
}

impl IdlingCharge {
    /// A queue is put in service.
    #[inline]
    pub(super) fn begin_service(&mut self, now: Instant) {
        self.idled = false;
        self.ran_empty = false;
        self.since = Some(self.speed.mark(now));
    }

    /// The queue in service keeps the device though it is empty.
    #[inline]
    pub(super) fn note_idling(&mut self) {
        self.idled = true;
    }

    /// The queue in service dispatched its last request.
    #[inline]
    pub(super) fn note_empty(&mut self) {
        self.ran_empty = true;
    }

    /// The device has completed a request of so many sectors that are charged.
    #[inline]
    pub(super) fn complete(&mut self, sectors: SectorCount) {
        self.speed.complete(sectors.0.into());
    }

    /// The service ends. Returns what the others lost if the device idled for the queue. `of_group`
    /// is of its group.
    pub(super) fn end_service(&mut self, now: Instant, of_group: &mut Unjudged) -> SectorCount {
        let since = self.since.take().expect("a service that ends has begun");
        let served = self.speed.since(since, now);
        self.speed.learn(of_group, served, self.ran_empty);
        let lost = if self.idled { self.speed.lost(served) } else { 0 };
        SectorCount(u32::try_from(lost).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    fn at(ms: u64) -> Instant {
        Instant::START + Nanos::from_millis(ms)
    }

    /// A service from 0 on in which the device completes so many sectors, and what is lost in it.
    fn service(charge: &mut IdlingCharge, sectors: u32, ms: u64) -> u32 {
        charge.complete(SectorCount(sectors));
        charge.end_service(at(ms), &mut Unjudged::default()).0
    }

    /// 1000 sectors in 10 ms are 100 a millisecond. So 5 ms in which the device idled and completed
    /// 38 cost 462.
    #[test]
    fn service_with_idling_is_charged_what_the_device_did_not_serve() {
        let mut charge = IdlingCharge::default();
        charge.begin_service(at(0));
        assert_eq!(service(&mut charge, 1000, 10), 0);
        charge.begin_service(at(0));
        charge.note_empty();
        charge.note_idling();
        assert_eq!(service(&mut charge, 38, 5), 462);
        charge.begin_service(at(0));
        charge.note_empty();
        assert_eq!(service(&mut charge, 38, 5), 0, "nobody waited");
    }

    /// A queue that thinks until its time is over had been taken for one that always has requests:
    /// the device was as slow as it was, and idling cost nothing.
    #[test]
    fn queue_that_ran_empty_does_not_teach_that_the_device_is_slow() {
        let mut charge = IdlingCharge::default();
        charge.begin_service(at(0));
        assert_eq!(service(&mut charge, 1000, 10), 0);
        for _ in 0..1000 {
            charge.begin_service(at(0));
            charge.note_empty();
            assert_eq!(service(&mut charge, 40, 5), 0);
        }
        charge.begin_service(at(0));
        charge.note_empty();
        charge.note_idling();
        assert_eq!(service(&mut charge, 40, 5), 460);
    }
}
