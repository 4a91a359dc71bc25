//! Who had the device: at each moment those that have commands in it share it by their number.

#![allow(clippy::cast_precision_loss, reason = "parts are told with 53 bits")]

use paternoster::Instant;

/// The time of the device that each lane had.
#[derive(Debug)]
pub(super) struct DeviceShares {
    /// Up to when it is counted; at first, from when on.
    since: Instant,
    /// In ns.
    had: Vec<f64>,
}

impl DeviceShares {
    pub(super) fn new(lanes: usize, from: Instant) -> Self {
        Self { since: from, had: vec![0.0; lanes] }
    }

    /// Counts the time up to `now`, in which so many commands of each lane were in the device.
    pub(super) fn advance(&mut self, now: Instant, in_device: &[u32]) {
        let span = now.saturating_since(self.since).as_nanos();
        self.since = self.since.max(now);
        let all: u32 = in_device.iter().sum();
        if span == 0 || all == 0 {
            return;
        }
        for (had, own) in self.had.iter_mut().zip(in_device) {
            *had += span as f64 * f64::from(*own) / f64::from(all);
        }
    }

    /// The part of the busy time that each lane had.
    pub(super) fn parts(&self) -> Vec<f64> {
        let all: f64 = self.had.iter().sum();
        self.had.iter().map(|had| if all > 0.0 { had / all } else { 0.0 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster::Nanos;

    /// Nothing before 100; 100 to 200 a alone, 200 to 300 a : b as 1 : 3, then nobody.
    #[test]
    fn commands_in_the_device_share_its_time() {
        let at = |ns| Instant::START + Nanos::new(ns);
        let mut shares = DeviceShares::new(2, at(100));
        shares.advance(at(50), &[0, 5]);
        shares.advance(at(200), &[1, 0]);
        shares.advance(at(300), &[1, 3]);
        shares.advance(at(900), &[0, 0]);
        assert_eq!(shares.parts(), [125.0 / 200.0, 75.0 / 200.0]);
    }
}
