//! Whether figures are as aimed at.

use std::fmt;

use serde::Serialize;

use crate::figures::{DEMAND, Figures};
use crate::row::{Aim, Row};

/// Worst error of a share of requests, and of the disk's time.
const ERROR: f64 = 0.03;
const ERROR_OF_TIME: f64 = 0.05;
/// Least part of the throughput of `none`; the other where clients or server fill a core.
const THROUGHPUT: f64 = 0.97;
const THROUGHPUT_FULL: f64 = 0.90;
/// The clients are a thread, and so is the server's disk: this much of a core is a full one.
const FULL: f64 = 0.9;
/// Least part of the throughput of the best fixed depth.
const OF_BEST_FIXED: f64 = 0.90;
/// Latencies in parts of the disk's own time for the request.
const P50: f64 = 2.0;
const P99: f64 = 3.0;

/// What figures say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Nothing is aimed at: it is `none`.
    Reference,
    /// All that is aimed at.
    Pass,
    /// Some tenant had nothing waiting for some of the time, and shares were not right: nothing is
    /// owed, nothing is shown.
    NotShort,
    /// What is not as aimed at.
    Missed(Vec<String>),
}

impl Verdict {
    /// Judges what a contender made of a row, beside what `none` did.
    pub(crate) fn new(row: &Row, figures: &Figures, none: &Figures) -> Self {
        let Some(of_none) = figures.of_none else { return Self::Reference };
        if row.aim == Aim::Depth {
            return Self::of_depth(figures);
        }
        let allowed = if row.aim == Aim::Times { ERROR_OF_TIME } else { ERROR };
        let all_have_theirs = figures.worst_error_of_all.is_some_and(|error| error <= allowed);
        if figures.demand < DEMAND && !all_have_theirs {
            return Self::NotShort;
        }
        let mut missed = Vec::new();
        if let Some(error) = figures.worst_error.filter(|error| *error > allowed) {
            missed.push(format!("error {:.1} % > {:.0} %", 100.0 * error, 100.0 * allowed));
        }
        let is_full = none.cores.clients >= FULL || none.cores.server >= FULL;
        let least = if is_full { THROUGHPUT_FULL } else { THROUGHPUT };
        if of_none < least {
            missed.push(format!("throughput {of_none:.3} < {least:.2}"));
        }
        if let Some(service) = row.service_of_first().filter(|_| row.aim == Aim::Soon) {
            let first = figures.first;
            for (name, took, times) in [("p50", first.p50_us, P50), ("p99", first.p99_us, P99)] {
                let most = times * service.as_secs_f64() * 1e6;
                if took > most {
                    missed.push(format!("{name} {took:.0} > {most:.0} µs"));
                }
            }
        }
        if missed.is_empty() { Self::Pass } else { Self::Missed(missed) }
    }

    /// Judges a learned depth beside fixed ones. Nothing is aimed at with those themselves.
    fn of_depth(figures: &Figures) -> Self {
        match figures.of_best_fixed {
            None => Self::Reference,
            Some(part) if part < OF_BEST_FIXED => Self::Missed(vec![format!(
                "{part:.3} < {OF_BEST_FIXED:.2} of the best fixed depth"
            )]),
            Some(_) => Self::Pass,
        }
    }

    /// Whether that is a failure where the aim holds.
    pub(crate) fn fails(&self, row: &Row) -> bool {
        match self {
            Self::Reference | Self::Pass => false,
            Self::NotShort => row.must_be_short(),
            Self::Missed(_) => true,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference => f.write_str("–"),
            Self::Pass => f.write_str("pass"),
            Self::NotShort => f.write_str("not short of the disk"),
            Self::Missed(what) => f.write_str(&what.join(", ")),
        }
    }
}
