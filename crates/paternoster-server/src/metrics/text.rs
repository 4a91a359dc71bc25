//! Prometheus' text format, version 0.0.4: families of samples, each with its help and its type.
//!
//! ```text
//!   # HELP paternoster_disk_queued_requests Requests that the scheduler holds.
//!   # TYPE paternoster_disk_queued_requests gauge
//!   paternoster_disk_queued_requests{disk="fast"} 3
//! ```
//!
//! Written here as it is three rules long; the crates for it keep the metrics too, and ours are
//! counted where they happen and asked for by message.

use std::fmt::{self, Display, Write as _};

use crate::stat::Times;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Names and values of labels.
pub(super) type Labels<'a> = [(&'a str, &'a str)];

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a family; all of its samples follow.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        // Help texts are ours, and have nothing to escape.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        Family { text: &mut self.0, name }
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// A family that is being written.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Adds one number.
    pub(super) fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds one histogram, of which all times together are so many nanoseconds.
    pub(super) fn histogram(&mut self, labels: &Labels<'_>, times: &Times, sum_ns: u64) {
        for (bound, count) in times.cumulative() {
            let end = match bound {
                Some(bound) => Seconds(bound.as_nanos()).to_string(),
                None => "+Inf".to_owned(),
            };
            self.line("_bucket", labels, Some(&end), count);
        }
        self.line("_sum", labels, None, Seconds(sum_ns));
        self.line("_count", labels, None, times.count());
    }

    fn line(&mut self, part: &str, labels: &Labels<'_>, end: Option<&str>, value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(part);
        let labels = labels.iter().copied().chain(end.map(|end| ("le", end)));
        for (index, (name, value)) in labels.enumerate() {
            let lead = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{lead}{name}=\"{}\"", Escaped(value));
        }
        let close = if self.text.ends_with('"') { "}" } else { "" };
        let _ = writeln!(self.text, "{close} {value}");
    }
}

/// Nanoseconds, in seconds and exact.
pub(super) struct Seconds(pub(super) u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NANOS: u64 = 1_000_000_000;
        write!(f, "{}.{:09}", self.0 / NANOS, self.0 % NANOS)
    }
}

/// The value of a label, as it stands between quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' | '"' => write!(f, "\\{c}"),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        let mut text = Text::default();
        let mut family = text.family("a_total", Kind::Counter, "What it is.");
        family.sample(&[("x", "a\\b\"c\nd"), ("y", "ü")], 7);
        family.sample(&[], Seconds(1_000_000_001));
        let expected = "# HELP a_total What it is.\n# TYPE a_total counter\n\
                        a_total{x=\"a\\\\b\\\"c\\nd\",y=\"ü\"} 7\na_total 1.000000001\n";
        assert_eq!(text.into_string(), expected);
    }

    #[test]
    fn buckets_of_a_histogram_add_up() {
        let mut text = Text::default();
        let times: Times = [(1, 2), (5000, 3), (u64::MAX, 4)].into_iter().collect();
        text.family("t_seconds", Kind::Histogram, "H.").histogram(&[("d", "x")], &times, 1500);
        let text = text.into_string();
        for line in [
            "t_seconds_bucket{d=\"x\",le=\"0.000004095\"} 2",
            "t_seconds_bucket{d=\"x\",le=\"0.000008191\"} 5",
            "t_seconds_bucket{d=\"x\",le=\"8.589934591\"} 5",
            "t_seconds_bucket{d=\"x\",le=\"+Inf\"} 9",
            "t_seconds_sum{d=\"x\"} 0.000001500",
            "t_seconds_count{d=\"x\"} 9",
        ] {
            assert!(text.lines().any(|written| written == line), "no {line}\n{text}");
        }
    }
}
