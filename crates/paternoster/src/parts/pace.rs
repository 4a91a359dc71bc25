//! How fast the device serves who keeps it busy, of late: what others lose while it is kept free.

use crate::time::Nanos;

/// What is older counts half, and so on.
const MEMORY: Nanos = Nanos::from_millis(1000);

/// What was served in turns in which a queue had requests all the time, and their time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    amount: u64,
    time: Nanos,
}

impl Pace {
    /// In a turn without waiting that took so long, so much was served.
    pub(crate) fn learn(&mut self, amount: u64, time: Nanos) {
        self.amount += amount;
        self.time += time;
        if self.time > MEMORY {
            self.amount /= 2;
            self.time = Nanos::new(self.time.as_nanos() / 2);
        }
    }

    /// What is served in that time, to the nearest whole; nothing while that is not known.
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
    fn pace_is_the_mean_of_turns_by_their_time() {
        let mut pace = Pace::default();
        assert_eq!(pace.served_in(Nanos::from_millis(5)), 0, "nothing is known");
        pace.learn(40, Nanos::from_millis(5));
        pace.learn(10, Nanos::from_millis(5));
        assert_eq!(pace.served_in(Nanos::from_millis(3)), 15);
        assert_eq!(pace.served_in(Nanos::from_micros(300)), 2, "1.5 is rounded");
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let mut pace = Pace::default();
        pace.learn(1_000_000, Nanos::from_millis(1000));
        for _ in 0..40 {
            pace.learn(500, Nanos::from_millis(500));
        }
        assert_eq!(pace.served_in(Nanos::from_millis(500)), 500);
    }
}
