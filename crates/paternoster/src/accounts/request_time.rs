//! How long a request keeps the device, for the accounts.

use crate::request::SectorCount;
use crate::time::Nanos;

/// How long a request keeps the device.
///
/// ```
/// use paternoster::{RequestTime, SectorCount};
///
/// let disk = RequestTime { request: 100_000, per_kib: 2_000, known: true };
/// assert_eq!(disk.of(SectorCount(8)), 108_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTime {
    /// The part that is the same for all: in nanoseconds if it is known, else in any unit.
    pub request: u64,
    /// What each KiB adds to it.
    pub per_kib: u64,
    /// Whether the device serves a request for just that many nanoseconds; else only proportions
    /// count.
    pub known: bool,
}

/// In bytes, where nothing is known of the device: a request costs as much as 16 KiB.
impl Default for RequestTime {
    fn default() -> Self {
        Self { request: 16 << 10, per_kib: 1 << 10, known: false }
    }
}

impl RequestTime {
    /// Returns the time of a request of that length; at least 1.
    #[inline]
    pub fn of(self, sectors: SectorCount) -> u64 {
        let further = u64::from(sectors.0).saturating_mul(self.per_kib) / 2;
        self.request.saturating_add(further).max(1)
    }
}

/// Returns `part` of `all` of something; all of it where `all` is nothing.
pub(super) fn part_of(whole: u64, part: u64, all: u64) -> u64 {
    if part == all {
        return whole;
    }
    if let Some(product) = whole.checked_mul(part) {
        return product / all;
    }
    let part = u128::from(whole) * u128::from(part) / u128::from(all);
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The same of a time.
pub(super) fn part_of_time(time: Nanos, part: u64, all: u64) -> Nanos {
    Nanos::new(part_of(time.as_nanos(), part, all))
}
