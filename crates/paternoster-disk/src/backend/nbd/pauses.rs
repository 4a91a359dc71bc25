//! The pauses between attempts to connect: they grow, and fall back only after a connection that
//! was of use.
//!
//! ```text
//!   50 ms, 100 ms, 200 ms … 1 s, 1 s …     whether an attempt fails, or its connection is lost
//!   after a second of useful life: none, 50 ms, 100 ms …
//! ```

use std::time::Duration;

use paternoster::Nanos;

/// How long after its first answer to a request a connection has to live to have been of use.
pub(super) const USEFUL_LIFE: Nanos = Nanos::from_millis(1_000);

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

/// The next pause.
#[derive(Debug)]
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) fn new() -> Self {
        Self(FIRST)
    }

    /// The pause before the next attempt.
    pub(super) fn take(&mut self) -> Duration {
        let next = (self.0 * 2).clamp(FIRST, LONGEST);
        std::mem::replace(&mut self.0, next)
    }

    /// A connection that was of use is lost: the first attempt is made at once.
    pub(super) fn fall_back(&mut self) {
        self.0 = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_fall_back_after_a_useful_life_alone() {
        let mut pauses = Pauses::new();
        let mut take =
            |count| -> Vec<u128> { (0..count).map(|_| pauses.take().as_millis()).collect() };
        assert_eq!(take(7), [50, 100, 200, 400, 800, 1000, 1000]);
        pauses.fall_back();
        let taken: Vec<_> = (0..4).map(|_| pauses.take().as_millis()).collect();
        assert_eq!(taken, [0, 50, 100, 200]);
    }
}
