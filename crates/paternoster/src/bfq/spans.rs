//! The spans that decisions are made by, in ticks of the device's clock.

use crate::time::{Hz, Ticks};

/// Declares the spans: a name each, and its length in milliseconds.
macro_rules! spans {
    ($( $(#[$doc:meta])* $name:ident: $millis:literal; )+) => {
        /// Spans in ticks.
        #[derive(Debug)]
        pub(super) struct Spans {
            $( $(#[$doc])* pub(super) $name: Ticks, )+
        }

        impl Spans {
            pub(super) fn new(hz: Hz) -> Self {
                Self { $( $name: hz.ticks_from_millis($millis), )+ }
            }
        }
    };
}

spans! {
    /// How long a queue has to be idle to be raised as one that somebody just began to use; and
    /// for how long after a split habits are not judged.
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
    /// Queues that become busy no farther apart are of one burst, and those made no farther apart
    /// merge.
    burst: 180;
    /// After so long a queue has outlived the large burst it was in.
    burst_memory: 10_000;
    /// For so long after a split a queue is not of a burst.
    split_immunity: 10;
    /// For so long a queue stays the elder brother with which others may merge …
    elder_memory: 600;
    /// … and where they are not merged at once, they are after this long.
    merge_delay: 600;
    /// After so long the injection limit is found anew.
    injection_reset: 1000;
    /// For so long after it was reset or lowered nothing is measured.
    injection_gap: 10;
    /// For so long it is not reset for a think time that became short.
    think_change_gap: 100;
}
