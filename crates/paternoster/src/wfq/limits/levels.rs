//! What is in the device by the latency targets of its groups, and what they hold of it.
//!
//! ```text
//!   served within   1 ms   2 ms   10 ms   any time
//!   in the device      2      3       4          9
//!   held               –     13       –          –     13 of later targets: no more of those
//! ```
//!
//! To enter and to leave is a search among the different targets that there are; whether one has
//! to wait is a walk over them, and only while some target holds others.

use crate::time::Nanos;
use crate::wfq::limits::NO_TARGET;

/// The different targets, the tightest first, and behind them none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    levels: Vec<Level>,
    /// At how many of them others are held.
    holding: u32,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// The time within which its requests shall be served.
    within: Nanos,
    /// How many of its requests are in the device.
    in_device: u32,
    /// How many of later targets or none may be there; none where they are not held.
    held: Option<u32>,
}

impl Levels {
    /// Makes those of targets, of which each may hold others. Nothing is in the device.
    pub(super) fn of(targets: impl Iterator<Item = (Nanos, Option<u32>)>) -> Self {
        let mut targets: Vec<_> = targets.collect();
        if targets.is_empty() {
            return Self::default();
        }
        targets.push((NO_TARGET, None));
        // The least first of those that hold others.
        targets.sort_by_key(|&(within, held)| (within, held.is_none(), held));
        targets.dedup_by_key(|&mut (within, _)| within);
        let holding = targets.iter().filter(|(_, held)| held.is_some()).count();
        let level = |(within, held)| Level { within, in_device: 0, held };
        Self {
            levels: targets.into_iter().map(level).collect(),
            holding: u32::try_from(holding).expect("fewer targets than groups"),
        }
    }

    #[inline]
    pub(super) fn hold_some(&self) -> bool {
        self.holding > 0
    }

    pub(super) fn enter(&mut self, within: Nanos) {
        let at = self.place(within);
        self.levels[at].in_device += 1;
    }

    pub(super) fn leave(&mut self, within: Nanos) {
        let at = self.place(within);
        self.levels[at].in_device -= 1;
    }

    /// Returns whether some tighter target has as many of later ones in the device as it allows.
    pub(super) fn must_wait(&self, within: Nanos) -> bool {
        let (tighter, others) = self.levels.split_at(self.place(within));
        let mut later: u32 = others.iter().map(|level| level.in_device).sum();
        for level in tighter.iter().rev() {
            if level.held.is_some_and(|held| later >= held) {
                return true;
            }
            later += level.in_device;
        }
        false
    }

    /// Holds requests of targets later than that one to so many.
    pub(super) fn hold(&mut self, within: Nanos, to: Option<u32>) {
        let at = self.place(within);
        let held = &mut self.levels[at].held;
        self.holding -= u32::from(held.is_some());
        self.holding += u32::from(to.is_some());
        *held = to;
    }

    /// The place of a target, or that of the next later one.
    fn place(&self, within: Nanos) -> usize {
        self.levels.partition_point(|level| level.within < within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the definition: a tighter target holds others to as many as there are of those
        /// later than it.
        #[test]
        fn one_has_to_wait_if_some_tighter_target_allows_no_more_of_later_ones(
            targets in proptest::collection::vec((1..6_u64, proptest::option::of(0..8_u32)), 1..8),
            in_device in proptest::collection::vec(1..8_u64, 0..12),
        ) {
            let within = |at: u64| if at == 7 { NO_TARGET } else { Nanos::from_millis(at) };
            let targets = || targets.iter().map(|&(at, held)| (within(at), held));
            let mut levels = Levels::of(targets());
            for &at in &in_device {
                levels.enter(within(at));
            }
            for asked in (1..8).map(within) {
                let expected = targets().any(|(target, held)| {
                    let later = in_device.iter().filter(|&&at| within(at) > target).count();
                    target < asked && held.is_some_and(|held| later >= held as usize)
                });
                prop_assert_eq!(levels.must_wait(asked), expected);
            }
            prop_assert_eq!(levels.hold_some(), targets().any(|(_, held)| held.is_some()));
            for &at in &in_device {
                levels.leave(within(at));
            }
            prop_assert_eq!(levels, Levels::of(targets()));
        }
    }
}
