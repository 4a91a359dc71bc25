//! How long a request keeps the device, for the accounts.

use crate::request::SectorCount;
use crate::time::Nanos;

/// How long a request keeps the device, in any unit: only proportions count.
///
/// ```
/// use paternoster::{RequestTime, SectorCount};
///
/// let disk = RequestTime { request: 100_000, per_kib: 2_000 }; // in nanoseconds
/// assert_eq!(disk.of(SectorCount(8)), 108_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTime {
    /// The part that is the same for all.
    pub request: u64,
    /// What each KiB adds to it.
    pub per_kib: u64,
}

/// In bytes, where nothing is known of the device: a request costs as much as 16 KiB.
impl Default for RequestTime {
    fn default() -> Self {
        Self { request: 16 << 10, per_kib: 1 << 10 }
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

/// Returns `part` of `all` of a time; all of it where `all` is nothing.
pub(super) fn part_of(time: Nanos, part: u64, all: u64) -> Nanos {
    if part == all {
        return time;
    }
    if part == 0 {
        return Nanos::ZERO;
    }
    let time = u128::from(time.as_nanos()) * u128::from(part) / u128::from(all);
    Nanos::new(u64::try_from(time).expect("a part is at most the whole"))
}
