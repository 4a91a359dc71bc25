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

use std::collections::BTreeMap;
use std::fmt::{self, Display, Write as _};

use crate::stat::{Figure, Kind, Number, Times};

/// What every name begins with.
const PREFIX: &str = "paternoster_";

/// The families so far by name, each with its samples.
#[derive(Debug)]
pub(super) struct Text(BTreeMap<&'static str, (&'static Figure, String)>);

impl Text {
    /// A text of these families, without samples.
    pub(super) fn new(families: Vec<(&'static Figure, &'static str)>) -> Self {
        let empty = |(figure, _): (&'static Figure, _)| (figure.metric, (figure, String::new()));
        Self(families.into_iter().map(empty).collect())
    }

    /// Adds one number to a family.
    pub(super) fn sample(&mut self, family: &str, labels: &[(&str, &str)], value: impl Display) {
        self.line(family, "", labels, None, value);
    }

    /// Adds the value of a figure to its family, if it has one.
    pub(super) fn number(&mut self, figure: &Figure, labels: &[(&str, &str)], number: Number<'_>) {
        match number {
            Number::Count(nanos) if figure.name.ends_with("_ns") => {
                self.sample(figure.metric, labels, Seconds(nanos));
            }
            Number::Count(count) => self.sample(figure.metric, labels, count),
            // A histogram has many lines.
            Number::Times(times, _) if times.is_empty() => {}
            Number::Times(times, sum_ns) => self.histogram(figure.metric, labels, times, sum_ns),
        }
    }

    /// Adds one histogram, of which all times together are so many nanoseconds.
    fn histogram(&mut self, family: &str, labels: &[(&str, &str)], times: &Times, sum_ns: u64) {
        for (bound, count) in times.cumulative() {
            let end = match bound {
                Some(bound) => Seconds(bound.as_nanos()).to_string(),
                None => "+Inf".to_owned(),
            };
            self.line(family, "_bucket", labels, Some(&end), count);
        }
        self.line(family, "_sum", labels, None, Seconds(sum_ns));
        self.line(family, "_count", labels, None, times.count());
    }

    fn line(
        &mut self,
        family: &str,
        part: &str,
        labels: &[(&str, &str)],
        end: Option<&str>,
        value: impl Display,
    ) {
        let Some((_, text)) = self.0.get_mut(family) else { return };
        let _ = write!(text, "{PREFIX}{family}{part}");
        let labels = labels.iter().copied().chain(end.map(|end| ("le", end)));
        for (index, (name, value)) in labels.enumerate() {
            let lead = if index == 0 { '{' } else { ',' };
            let _ = write!(text, "{lead}{name}=\"{}\"", Escaped(value));
        }
        let close = if text.ends_with('"') { "}" } else { "" };
        let _ = writeln!(text, "{close} {value}");
    }

    pub(super) fn into_string(self) -> String {
        let mut text = String::new();
        for (name, (family, samples)) in self.0 {
            let kind = if family.kind == Kind::Flag { Kind::Gauge } else { family.kind }.name();
            // Help texts are ours, and have nothing to escape.
            let _ = write!(
                text,
                "# HELP {PREFIX}{name} {}\n# TYPE {PREFIX}{name} {kind}\n{samples}",
                family.doc
            );
        }
        text
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

    static COUNTER: Figure = figure("a_total", Kind::Counter);
    static HISTOGRAM: Figure = figure("t_seconds", Kind::Histogram);

    const fn figure(metric: &'static str, kind: Kind) -> Figure {
        Figure { name: "a", kind, doc: "What it is.", metric, label: "", parts: &[] }
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let mut text = Text::new(vec![(&COUNTER, "")]);
        text.number(&COUNTER, &[("x", "a\\b\"c\nd"), ("y", "ü")], Number::Count(7));
        text.sample("a_total", &[], Seconds(1_000_000_001));
        let expected = "# HELP paternoster_a_total What it is.\n\
                        # TYPE paternoster_a_total counter\n\
                        paternoster_a_total{x=\"a\\\\b\\\"c\\nd\",y=\"ü\"} 7\n\
                        paternoster_a_total 1.000000001\n";
        assert_eq!(text.into_string(), expected);
    }

    #[test]
    fn buckets_of_a_histogram_add_up() {
        let mut text = Text::new(vec![(&HISTOGRAM, "")]);
        let times: Times = [(1, 2), (5000, 3), (u64::MAX, 4)].into_iter().collect();
        text.number(&HISTOGRAM, &[("d", "x")], Number::Times(&times, 1500));
        let text = text.into_string();
        for line in [
            "t_seconds_bucket{d=\"x\",le=\"0.000004095\"} 2",
            "t_seconds_bucket{d=\"x\",le=\"0.000008191\"} 5",
            "t_seconds_bucket{d=\"x\",le=\"8.589934591\"} 5",
            "t_seconds_bucket{d=\"x\",le=\"+Inf\"} 9",
            "t_seconds_sum{d=\"x\"} 0.000001500",
            "t_seconds_count{d=\"x\"} 9",
        ] {
            let line = format!("paternoster_{line}");
            assert!(text.lines().any(|written| written == line), "no {line}\n{text}");
        }
    }
}
