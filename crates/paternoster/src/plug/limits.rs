//! How much a plug holds, and for how long.

use crate::time::Nanos;

/// How much a plug holds, and for how long. A 0 in any of them turns plugging off: each bio is
/// handed over at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlugLimits {
    /// Chains of one device (`plug_max_requests`): 32, as in Linux.
    pub max_requests: u32,
    /// Chains where there are several devices (`plug_max_requests_multi`), and no less than of
    /// one: 64, as in Linux.
    pub max_requests_multi: u32,
    /// The length in bytes from which on the newest chain closes the plug for the next
    /// (`plug_flush_bytes`): 128 KiB, as in Linux.
    pub flush_bytes: u64,
    /// How long a chain may be in the plug (`plug_max_age`): 50 µs. Linux 2.6 had a timer of 3 ms,
    /// later ones have no bound.
    pub max_age: Nanos,
}

impl Default for PlugLimits {
    fn default() -> Self {
        Self {
            max_requests: 32,
            max_requests_multi: 64,
            flush_bytes: 128 << 10,
            max_age: Nanos::from_micros(50),
        }
    }
}

impl PlugLimits {
    /// No plugging.
    pub const OFF: Self =
        Self { max_requests: 0, max_requests_multi: 0, flush_bytes: 0, max_age: Nanos::ZERO };

    /// Sets how many chains it holds, of one device and of several.
    #[must_use]
    pub const fn with_max_requests(self, of_one: u32, of_several: u32) -> Self {
        Self { max_requests: of_one, max_requests_multi: of_several, ..self }
    }

    /// Sets how long its newest chain may be, in bytes.
    #[must_use]
    pub const fn with_flush_bytes(self, flush_bytes: u64) -> Self {
        Self { flush_bytes, ..self }
    }

    /// Sets how long a chain may be in it.
    #[must_use]
    pub const fn with_max_age(self, max_age: Nanos) -> Self {
        Self { max_age, ..self }
    }

    /// Returns whether nothing is held back.
    pub fn is_off(&self) -> bool {
        self.max_requests == 0
            || self.max_requests_multi == 0
            || self.flush_bytes == 0
            || self.max_age == Nanos::ZERO
    }

    pub(super) fn chains(&self, several: bool) -> usize {
        let of_several = self.max_requests_multi.max(self.max_requests);
        (if several { of_several } else { self.max_requests }) as usize
    }
}
