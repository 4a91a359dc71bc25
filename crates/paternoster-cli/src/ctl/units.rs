//! Formats numbers for people.

use std::fmt;

/// What stands where there is no number.
pub(super) const NONE: &str = "-";

/// What is known, or that it is not.
pub(super) fn or_none(known: Option<impl fmt::Display>) -> String {
    known.map_or_else(|| NONE.to_owned(), |known| known.to_string())
}

/// Bytes, in the largest binary unit of which there is at least one.
pub(super) struct Bytes(pub(super) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let Some((shift, unit)) = units.into_iter().find(|(shift, _)| self.0 >> shift > 0) else {
            return write!(f, "{} B", self.0);
        };
        let tenths = (u128::from(self.0) * 10) >> shift;
        match tenths % 10 {
            0 => write!(f, "{} {unit}", tenths / 10),
            tenth => write!(f, "{}.{tenth} {unit}", tenths / 10),
        }
    }
}

/// Nanoseconds, in the largest of µs, ms and s of which there is at least one.
pub(super) struct Time(pub(super) u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit_ns, unit) = match self.0 {
            1_000_000_000.. => (1_000_000_000, "s"),
            1_000_000.. => (1_000_000, "ms"),
            _ => (1_000, "µs"),
        };
        write!(f, "{}.{} {unit}", self.0 / unit_ns, self.0 % unit_ns / (unit_ns / 10))
    }
}

/// The mean of `count` spans that last `sum_ns` together.
pub(super) fn mean(sum_ns: u64, count: u64) -> String {
    or_none(sum_ns.checked_div(count).map(Time))
}

/// A part of a whole.
pub(super) fn percent(part: u64, whole: u64) -> String {
    match (u128::from(part) * 1000).checked_div(whole.into()) {
        Some(tenths) => format!("{}.{} %", tenths / 10, tenths % 10),
        None => NONE.to_owned(),
    }
}

/// How much of `count` falls on a second of a span; none of a span of no length.
pub(super) fn per_second(count: u64, span_ns: u64) -> Option<u64> {
    let rate = (u128::from(count) * 1_000_000_000).checked_div(span_ns.into())?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// How many there were on average over a span, of the sum of their times.
pub(super) fn average(sum_ns: u64, span_ns: u64) -> String {
    match (u128::from(sum_ns) * 10).checked_div(span_ns.into()) {
        Some(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        None => NONE.to_owned(),
    }
}

/// How many of one there are for each of the other.
#[expect(clippy::cast_precision_loss, reason = "counts, shown with a few digits")]
pub(super) fn ratio(one: u64, other: u64, digits: usize) -> String {
    match other {
        0 => NONE.to_owned(),
        _ => format!("{:.digits$}", one as f64 / other as f64),
    }
}

pub(super) fn plural(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_their_unit() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), shown);
        }
    }

    #[test]
    fn times_are_shown_in_their_unit() {
        for (nanos, shown) in [
            (0, "0.0 µs"),
            (99, "0.0 µs"),
            (123_456, "123.4 µs"),
            (999_999, "999.9 µs"),
            (1_000_000, "1.0 ms"),
            (17_579_200, "17.5 ms"),
            (999_999_999, "999.9 ms"),
            (61_250_000_000, "61.2 s"),
        ] {
            assert_eq!(Time(nanos).to_string(), shown);
        }
        assert_eq!(mean(600_000, 3), "200.0 µs");
        assert_eq!(mean(0, 0), "-");
    }

    #[test]
    fn rates_are_of_a_second_and_parts_of_a_whole() {
        assert_eq!(per_second(5, 500_000_000), Some(10));
        assert_eq!(per_second(u64::MAX, 1), Some(u64::MAX));
        assert_eq!(per_second(5, 0), None);
        assert_eq!(percent(999, 1000), "99.9 %");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(average(6_999, 2_000), "3.4");
        assert_eq!(average(1, 0), "-");
    }
}
