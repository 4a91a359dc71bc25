//! Before a thread sleeps it looks for a moment whether a client has something for it.
//!
//! A client that asks for one thing at a time has its next request there a few microseconds after
//! its answer. To go to sleep meanwhile, and to be woken, takes longer than that. How long to look
//! is learned from how long the waits before were:
//!
//! ```text
//!   the wait was 12 µs        ─▶ the next look takes up to 24 µs      it grows at once
//!   nothing came within 24 µs ─▶ the next look takes up to 21 µs      it shrinks slowly
//! ```
//!
//! So a thread that has nothing to do for long does not look at all.

use paternoster::Nanos;

use super::Seen;

/// A look takes so long at most. Longer waits are slept through.
const MOST: Nanos = Nanos::from_micros(50);

/// A shorter look is not worth its system call.
const LEAST: Nanos = Nanos::from_micros(2);

/// What looks for clients' commands have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookStats {
    /// Looks before a sleep.
    pub looks: u64,
    /// Looks in which something came.
    pub found: u64,
    /// The time of all looks.
    pub looked: Nanos,
    /// How long the next look takes at most.
    pub next: Nanos,
}

/// The looks of one thread.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// How long the next one would take at most.
    limit: Nanos,
    stats: LookStats,
}

impl Looks {
    /// How long the next look takes at most; none where it is not worth it.
    pub(super) fn limit(&self) -> Option<Nanos> {
        Some(self.limit).filter(|&limit| limit >= LEAST)
    }

    /// Notes what came of a look that took so long.
    pub(super) fn looked(&mut self, seen: Seen, took: Nanos) {
        self.stats.looks += 1;
        self.stats.found += u64::from(seen == Seen::Something);
        self.stats.looked += took;
    }

    /// Notes how long a wait was, whether it was looked or slept through.
    pub(super) fn waited(&mut self, wait: Nanos) {
        let shrunk = self.limit.saturating_sub(Nanos::new(self.limit.as_nanos() / 8 + 1));
        let wanted = if wait <= MOST { MOST.min(wait + wait) } else { Nanos::ZERO };
        self.limit = shrunk.max(wanted);
    }

    pub(super) fn stats(&self) -> LookStats {
        LookStats { next: self.limit().unwrap_or_default(), ..self.stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    fn after(waits: &[u64]) -> Looks {
        let mut looks = Looks::default();
        for &wait in waits {
            looks.waited(us(wait));
        }
        looks
    }

    #[test]
    fn one_short_wait_is_enough_to_look_for_twice_as_long() {
        assert_eq!(after(&[]).limit(), None);
        assert_eq!(after(&[12]).limit(), Some(us(24)));
        assert_eq!(after(&[12, 30]).limit(), Some(us(50)), "no longer than 50 µs");
        assert_eq!(after(&[51]).limit(), None, "what takes longer is slept through");
    }

    #[test]
    fn looks_in_vain_end_after_a_while() {
        let mut looks = after(&[50]);
        let mut vain = 0;
        while looks.limit().is_some() {
            looks.waited(us(1_000_000));
            vain += 1;
        }
        assert!((10..40).contains(&vain), "{vain}");
        let slow: Vec<_> = [&[25][..], &[1_000_000; 3]].concat();
        assert!(after(&slow).stats().next > us(30), "three waits do not end it");
    }
}
