//! How the figures of `stat` are declared: once, with all that is known of them.
//!
//! [`figures!`] makes a struct of declarations like these:
//!
//! ```text
//!   /// Requests that the scheduler holds.              the sentence of metrics and documents
//!   queued: u32, Gauge, metric "disk_queued_requests";  name in the JSON, type, kind, metric
//!   /// How requests are spread over queues.
//!   spread: Option<Spread>, Figures unless none;        further ones, missing where there is none
//! ```
//!
//! From a declaration come the field and its JSON, the difference between two readings
//! ([`since`](super::Stat::since)), the metric, and the row in docs/figures.md. Its unit is the
//! last word of its name. Behind the kind may stand, of a map, `by "LABEL"`: the label in metrics
//! that has the keys; of a histogram, `of SUM`: the figure that is the sum of its times.
//!
//! A struct that stands in lists has `"LABEL" by FIELD`: it is known again by that field. One whose
//! counters begin anew together, as those of a scheduler do, has `anew if FIELD falls`.
//! `of (ARGUMENTS)` makes a constructor of what stands behind `=` in each declaration. Instead of a
//! struct there may be a `const`, of figures of metrics alone.

use std::collections::{BTreeMap, BTreeSet};

use super::Times;

/// What there is to know of a figure, whatever its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figure {
    /// Its name in the JSON.
    pub name: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it is, in a sentence or two.
    pub doc: &'static str,
    /// Its name in metrics without `paternoster_`; empty if it is in none.
    pub metric: &'static str,
    /// The label in metrics that tells its values apart; empty if it has one value.
    pub label: &'static str,
    /// The figures within it.
    pub parts: &'static [Self],
}

/// How a figure behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words.
    Text,
    /// Whether something is so.
    Flag,
    /// A number that goes up and down.
    Gauge,
    /// A number that grows. Since an earlier reading: what was added, or all if it has fallen.
    Counter,
    /// A counter that is shown whole, also of a span.
    Total,
    /// Counts of times by their length.
    Histogram,
    /// Further figures.
    Figures,
    /// Further figures that are in no metric.
    Untold,
}

impl Kind {
    /// Returns its name; empty if it is further figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Flag => "flag",
            Self::Gauge => "gauge",
            Self::Counter | Self::Total => "counter",
            Self::Histogram => "histogram",
            Self::Figures | Self::Untold => "",
        }
    }
}

/// The value of a figure that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number<'a> {
    Count(u64),
    /// Times by their length, and their sum in nanoseconds.
    Times(&'a Times, u64),
}

/// Names and values of labels.
pub(crate) type Labels<'a> = [(&'static str, &'a str)];

/// Takes numbers with their labels.
pub(crate) type Take<'a> = dyn FnMut(&'static Figure, &Labels<'_>, Number<'_>) + 'a;

/// How two values are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// What the first has counted more than the second, an earlier one.
    Since,
    /// What both have together.
    Plus,
}

/// What a figure may hold.
pub(crate) trait Value: Clone {
    /// The figures within it.
    const PARTS: &'static [Figure] = &[];

    /// Combines numbers; of all else it has its own.
    fn combined(&self, _other: &Self, _how: How) -> Self {
        self.clone()
    }

    /// The label by which it is known among others in a list.
    fn label(&self) -> Option<(&'static str, &str)> {
        None
    }

    /// Hands out its numbers.
    fn tell(&self, _figure: &'static Figure, _labels: &Labels<'_>, _take: &mut Take<'_>) {}
}

impl Value for String {}
impl Value for BTreeSet<String> {}
impl Value for i64 {}

impl Value for bool {
    fn tell(&self, figure: &'static Figure, labels: &Labels<'_>, take: &mut Take<'_>) {
        take(figure, labels, Number::Count((*self).into()));
    }
}

macro_rules! numbers {
    ($($Number:ty)+) => {
        $(impl Value for $Number {
            fn combined(&self, other: &Self, how: How) -> Self {
                match how {
                    How::Since => self.checked_sub(*other).unwrap_or(*self),
                    How::Plus => self.saturating_add(*other),
                }
            }

            fn tell(&self, figure: &'static Figure, labels: &Labels<'_>, take: &mut Take<'_>) {
                take(figure, labels, Number::Count((*self).into()));
            }
        })+
    };
}
numbers!(u32 u64);

impl<T: Value> Value for Option<T> {
    const PARTS: &'static [Figure] = T::PARTS;

    fn combined(&self, other: &Self, how: How) -> Self {
        match (self, other) {
            (Some(own), Some(other)) => Some(own.combined(other, how)),
            (None, other) if how == How::Plus => other.clone(),
            (own, _) => own.clone(),
        }
    }

    fn tell(&self, figure: &'static Figure, labels: &Labels<'_>, take: &mut Take<'_>) {
        if let Some(value) = self {
            value.tell(figure, labels, take);
        }
    }
}

/// Those of a list are combined with the ones that have the same label.
impl<T: Value> Value for Vec<T> {
    const PARTS: &'static [Figure] = T::PARTS;

    fn combined(&self, other: &Self, how: How) -> Self {
        let combined = self.iter().map(|own| {
            let is_same = |other: &&T| own.label().is_some() && own.label() == other.label();
            let same = other.iter().find(is_same);
            same.map_or_else(|| own.clone(), |same| own.combined(same, how))
        });
        combined.collect()
    }

    fn tell(&self, figure: &'static Figure, labels: &Labels<'_>, take: &mut Take<'_>) {
        for value in self {
            let labels: Vec<_> = labels.iter().copied().chain(value.label()).collect();
            value.tell(figure, &labels, take);
        }
    }
}

impl<T: Value> Value for BTreeMap<String, T> {
    const PARTS: &'static [Figure] = T::PARTS;

    fn combined(&self, other: &Self, how: How) -> Self {
        let mut combined = self.clone();
        for (key, other) in other {
            match combined.get_mut(key) {
                Some(own) => *own = own.combined(other, how),
                None if how == How::Plus => drop(combined.insert(key.clone(), other.clone())),
                None => {}
            }
        }
        combined
    }

    fn tell(&self, figure: &'static Figure, labels: &Labels<'_>, take: &mut Take<'_>) {
        for (key, value) in self {
            value.tell(figure, &[labels, &[(figure.label, key.as_str())]].concat(), take);
        }
    }
}

/// Whether a figure has nothing to say, and so is missing from the JSON.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Declares a struct of figures, as the head of this file says.
macro_rules! figures {
    (
        $(#[$outer:meta])*
        pub struct $Struct:ident
            $(, $label:literal by $key:ident)?
            $(, anew if $($fallen:ident)|+ falls)?
            $(, of $arguments:tt)?;
        $(
            $(#[doc = $doc:literal])+
            $name:ident: $Type:ty, $Kind:ident $(of $sum:ident)? $(by $by:literal)?
                $(unless $absent:ident)? $(, metric $metric:literal)? $(= $from:expr)?;
        )+
    ) => {
        $(#[$outer])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        #[allow(clippy::struct_excessive_bools, reason = "independent facts")]
        pub struct $Struct {
            $(
                $(#[doc = $doc])+
                $(
                    #[doc = concat!("\n\nMissing from the JSON if ", stringify!($absent), ".")]
                    #[serde(skip_serializing_if = "crate::stat::figures::is_default")]
                )?
                pub $name: $Type,
            )+
        }

        const _: () = {
            use $crate::stat::figures::{Figure, How, Labels, Take, Value};

            #[allow(unused_variables, reason = "of a struct without numbers")]
            impl Value for $Struct {
                const PARTS: &'static [Figure] = &[
                    $(Figure {
                        name: stringify!($name),
                        parts: <$Type as Value>::PARTS,
                        ..figures!(@figure $Kind [$($doc),+] [$($metric)?] [$($by)?])
                    },)+
                ];

                fn combined(&self, other: &Self, how: How) -> Self {
                    $(if how == How::Since && ($(self.$fallen < other.$fallen)||+) {
                        return self.clone();
                    })?
                    Self { $($name: figures!(@combined $Kind self.$name, other.$name, how),)+ }
                }

                $(fn label(&self) -> Option<(&'static str, &str)> {
                    Some(($label, &self.$key))
                })?

                fn tell(&self, _: &'static Figure, labels: &Labels<'_>, take: &mut Take<'_>) {
                    let mut parts = Self::PARTS.iter();
                    $(if let Some(figure) = parts.next() {
                        figures!(@tell $Kind [$($sum)?] self.$name, self, figure, labels, take);
                    })+
                }
            }
        };

        figures!(@of $Struct [$($arguments)?] { $($name = [$($from)?];)+ });
    };
    (
        $(#[$outer:meta])*
        const $NAME:ident;
        $(
            $(#[doc = $doc:literal])+
            $Kind:ident $(by $by:literal)?, metric $metric:literal;
        )+
    ) => {
        $(#[$outer])*
        const $NAME: &[$crate::stat::Figure] =
            &[$(figures!(@figure $Kind [$($doc),+] [$metric] [$($by)?])),+];
    };
    (@figure $Kind:ident [$($doc:literal),+] [$($metric:literal)?] [$($by:literal)?]) => {
        $crate::stat::Figure {
            name: "",
            kind: $crate::stat::Kind::$Kind,
            doc: concat!($($doc),+).trim_ascii_start(),
            metric: concat!("" $(, $metric)?),
            label: concat!("" $(, $by)?),
            parts: &[],
        }
    };
    (@of $Struct:ident [] $declared:tt) => {};
    (@of $Struct:ident [($($argument:ident: $Argument:ty),+)] {
        $($name:ident = [$from:expr];)+
    }) => {
        impl $Struct {
            /// Tells what these say.
            pub(crate) fn of($($argument: $Argument),+) -> Self {
                Self { $($name: $from,)+ }
            }
        }
    };
    (@combined Gauge $own:expr, $other:expr, $how:expr) => {
        figures!(@combined Total $own, $other, $how)
    };
    (@combined Total $own:expr, $other:expr, $how:expr) => {
        match $how {
            How::Since => Clone::clone(&$own),
            How::Plus => $own.combined(&$other, $how),
        }
    };
    (@combined $Kind:ident $own:expr, $other:expr, $how:expr) => {
        $own.combined(&$other, $how)
    };
    (@tell Untold [] $own:expr, $self:expr, $figure:expr, $labels:expr, $to:expr) => {};
    (@tell Histogram [$sum:ident] $own:expr, $self:expr, $figure:expr, $labels:expr, $to:expr) => {
        $to($figure, $labels, $crate::stat::Number::Times(&$own, $self.$sum))
    };
    (@tell $Kind:ident [] $own:expr, $self:expr, $figure:expr, $labels:expr, $to:expr) => {
        $own.tell($figure, $labels, $to)
    };
}
pub(crate) use figures;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::{
        BlkioStat, DiskStat, FarStat, GroupStat, LearnedDepth, OpStat, OvershootStat,
        PollClassStat, PollStat, Stat, ThreadsStat,
    };

    fn since<T: Value>(now: &T, earlier: &T) -> T {
        now.combined(earlier, How::Since)
    }

    fn waiting(amount: u64) -> PollStat {
        let class = PollClassStat {
            class: "read (4096 Bytes)".to_owned(),
            choice: "sleep".to_owned(),
            sleep_ns: Some(9),
            ios: amount * 31,
            slept_for: amount * 32,
            misses: amount * 33,
            ..PollClassStat::default()
        };
        PollStat {
            mode: "auto".to_owned(),
            looks: amount * 19,
            found: amount * 20,
            looked_ns: amount * 21,
            crowded: amount * 22,
            next_ns: 7,
            commands: amount * 23,
            cpu_ns: amount * 24,
            interrupts: amount * 34,
            sleeps: amount * 25,
            slept_ns: amount * 26,
            woken_early: amount * 27,
            missed: amount * 28,
            polls: amount * 29,
            polled_ns: amount * 30,
            sleep_cost_ns: Some(8),
            overshoots: vec![OvershootStat { from_ns: 1, p50_ns: 2, p99_ns: 3 }],
            classes: vec![class],
        }
    }

    fn reading(elapsed_ns: u64, amount: u64) -> Stat {
        let op = OpStat {
            bios: amount,
            bytes: amount * 2,
            merged: amount * 3,
            dispatched: amount * 4,
            completed: amount * 5,
            queued: 6,
            wait_ns: amount * 6,
            service_ns: amount * 7,
            wait: [(4096, amount)].into_iter().collect(),
            service: [(8192, amount)].into_iter().collect(),
            total: [(u64::MAX, amount)].into_iter().collect(),
        };
        let group = GroupStat {
            path: "/g".to_owned(),
            weight: 300,
            queued: 3,
            backlogged_ns: amount * 8,
            device_ns: Some(amount * 12),
            outstanding_ns: Some(amount * 13),
            behind: [("/h".to_owned(), amount * 35)].into(),
            ops: [("read".to_owned(), op)].into(),
            blkio: [("time".to_owned(), BlkioStat::Number(amount * 9))].into(),
            ..GroupStat::default()
        };
        let name = "d".to_owned();
        let groups = vec![group.clone()];
        let [switches, moved] = [amount * 10, amount * 11];
        let threads = ThreadsStat {
            threads: 2,
            commands: amount * 15,
            batches: amount * 16,
            owner_woken: amount * 17,
            threads_woken: amount * 18,
        };
        let (waits, threads) = (amount * 14, Some(threads));
        let counts = DiskStat {
            syncs: amount,
            switches,
            moved,
            waits,
            poll: waiting(amount),
            threads,
            root: GroupStat { path: "/".to_owned(), ..group.clone() },
            ..DiskStat::default()
        };
        Stat::new(vec![DiskStat { name, elapsed_ns, groups, ..counts }])
    }

    #[test]
    fn counts_are_those_between_the_readings() {
        assert_eq!(reading(5000, 110).since(&reading(2000, 100)), reading(3000, 10));
        assert_eq!(reading(5000, 110).since(&Stat::new(Vec::new())), reading(5000, 110));
    }

    #[test]
    fn scheduler_that_was_switched_to_since_has_counted_from_then() {
        let of = |amount: u64| GroupStat {
            outstanding_ns: Some(amount),
            throttled_ns: [("cap".to_owned(), amount)].into(),
            reserved: amount,
            ..GroupStat::default()
        };
        assert_eq!(since(&of(30), &of(20)), of(10));
        assert_eq!(since(&of(10), &of(20)), of(10), "it began anew");
        assert_eq!(since(&of(30), &GroupStat::default()), of(30), "another one has no such counts");
        assert_eq!(since(&GroupStat::default(), &of(20)), GroupStat::default());
    }

    #[test]
    fn windows_of_a_learned_depth_are_those_between_the_readings() {
        let of = |windows, windows_starved| {
            let learned = LearnedDepth { windows, windows_starved, ..LearnedDepth::default() };
            DiskStat { learned_depth: Some(learned), ..DiskStat::default() }
        };
        assert_eq!(since(&of(50, 7), &of(40, 4)), of(10, 3));
        assert_eq!(since(&of(41, 3), &of(40, 4)), of(41, 3), "of another scheduler");
        assert_eq!(since(&of(5, 1), &DiskStat::default()), of(5, 1));
    }

    #[test]
    fn server_that_was_started_again_is_counted_from_then() {
        assert_eq!(reading(1000, 7).since(&reading(2000, 100)), reading(1000, 7));
    }

    #[test]
    fn totals_and_states_are_in_a_span_what_they_are() {
        let of = |lost, connections| {
            let far = FarStat { lost, connections, sent_again: lost, ..FarStat::default() };
            DiskStat { far: Some(far), queued: connections, ..DiskStat::default() }
        };
        assert_eq!(since(&of(5, 2), &of(3, 9)), of(5, 2));
    }

    #[test]
    fn sum_has_what_either_has() {
        let of = |op: &str, bios: u64, queued: u32, outstanding_ns: Option<u64>| {
            let total = [(4096, bios)].into_iter().collect();
            let op = (op.to_owned(), OpStat { bios, total, ..OpStat::default() });
            GroupStat { queued, outstanding_ns, ops: [op].into(), ..GroupStat::default() }
        };
        let reads = |sum: &GroupStat| (sum.ops["read"].bios, sum.ops["read"].total.count());
        let sum = of("read", 3, 1, None).plus(&of("read", 4, 10, Some(7)));
        assert_eq!((reads(&sum), sum.queued, sum.outstanding_ns), ((7, 7), 11, Some(7)));
        let sum = of("read", 3, 1, Some(5)).plus(&of("write", 4, 10, Some(7)));
        assert_eq!((reads(&sum), sum.ops["write"].bios), ((3, 3), 4));
        assert_eq!(sum.outstanding_ns, Some(12));
    }
}
