//! How fast the device has recently served queues that kept it busy. Idling costs that much.

use crate::time::Nanos;

/// Once the sums span more time than this, both are halved.
const MEMORY: Nanos = Nanos::from_millis(1000);

/// The amount and the time of services in which the queue had requests all the time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServiceSpeed {
    amount: u64,
    time: Nanos,
}

impl ServiceSpeed {
    /// Adds a service without idling: the device served `amount` in `time`.
    pub(crate) fn learn(&mut self, amount: u64, time: Nanos) {
        self.amount += amount;
        self.time += time;
        if self.time > MEMORY {
            self.amount /= 2;
            self.time = Nanos::new(self.time.as_nanos() / 2);
        }
    }

    /// Returns the amount that the device serves in `time`, rounded; 0 before the first sample.
    pub(crate) fn served_in(&self, time: Nanos) -> u64 {
        let of = u128::from(self.time.as_nanos().max(1));
        let served = (u128::from(self.amount) * u128::from(time.as_nanos()) + of / 2) / of;
        u64::try_from(served).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_the_mean_of_services_by_their_time() {
        let mut speed = ServiceSpeed::default();
        assert_eq!(speed.served_in(Nanos::from_millis(5)), 0, "nothing is known");
        speed.learn(40, Nanos::from_millis(5));
        speed.learn(10, Nanos::from_millis(5));
        assert_eq!(speed.served_in(Nanos::from_millis(3)), 15);
        assert_eq!(speed.served_in(Nanos::from_micros(300)), 2, "1.5 is rounded");
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut speed = ServiceSpeed::default();
        speed.learn(1_000_000, Nanos::from_millis(1000));
        for _ in 0..40 {
            speed.learn(500, Nanos::from_millis(500));
        }
        assert_eq!(speed.served_in(Nanos::from_millis(500)), 500);
    }
}
