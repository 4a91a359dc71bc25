//! The time constants that decisions are made by, in ticks of the device's clock. What can be tuned
//! is in `tunables.rs`; what counts in nanoseconds stands beside its use.

use crate::time::{Hz, Ticks};

/// Declares the time constants by name and length. Lengths in milliseconds are rounded up to ticks;
/// those that are parts of a second are rounded down, as Linux divides.
macro_rules! time_constants {
    (
        milliseconds { $( $(#[$doc:meta])* $name:ident: $millis:literal; )+ }
        parts of a second { $( $(#[$part_doc:meta])* $part:ident: $parts:literal; )+ }
    ) => {
        /// Times in ticks.
        #[derive(Debug)]
        pub(super) struct TimeConstants {
            $( $(#[$doc])* pub(super) $name: Ticks, )+
            $( $(#[$part_doc])* pub(super) $part: Ticks, )+
        }

        impl TimeConstants {
            pub(super) fn new(hz: Hz) -> Self {
                Self {
                    $( $name: hz.ticks_from_millis($millis), )+
                    $( $part: hz.part_of_second($parts), )+
                }
            }
        }
    };
}

time_constants! {
    milliseconds {
        /// How long a queue has to be idle to be raised as interactive; and for how long after a
        /// split its think time is not judged.
        raise_min_idle: 2000;
        /// How long a busy async queue has to be without a request to be raised.
        raise_async_gap: 500;
        /// How long a queue is raised as soft real time.
        soft_rt: 300;
        /// The least and the longest that a queue is raised as interactive.
        raise_min: 3000;
        raise_max: 25_000;
        /// How long the reference devices take to start a large application: rotational …
        reference_rotational: 7000;
        /// … and not.
        reference_solid: 2500;
        /// Queues that become busy no farther apart are of one burst, and those made no farther
        /// apart merge.
        burst: 180;
        /// After so long a queue has outlived the large burst it was in.
        burst_memory: 10_000;
        /// For so long after a split a queue is not of a burst.
        split_immunity: 10;
        /// How long a queue stays the stable-merge candidate of its group.
        candidate_memory: 600;
        /// How long after their creation queues merge where they do not merge at once.
        merge_delay: 600;
        /// After so long the injection limit is reset.
        injection_reset: 1000;
        /// For so long after it was reset or lowered nothing is probed.
        injection_gap: 10;
        /// For so long after it was reset or lowered it is not reset for a think time that became
        /// short.
        think_change_gap: 100;
    }

    parts of a second {
        /// Queues that have been served for longer begin to work on the same part of the device by
        /// chance.
        merge_window: 10;
    }
}
