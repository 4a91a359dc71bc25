//! Why a job ended with an error.

use std::fmt;

use paternoster::Nanos;

use super::short_time;
use crate::fio::{DataDirection, LeastRate};

/// Why a job ended with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// An I/O took longer than `max_latency` allows.
    Latency {
        /// Its direction.
        direction: DataDirection,
        /// How long it took.
        took: Nanos,
        /// How long it might.
        allowed: Nanos,
    },
    /// The rate of a direction was below `rate_min` or `rate_iops_min`.
    Rate {
        /// The direction.
        direction: DataDirection,
        /// The rate that it had over a cycle, in the unit of the least one.
        found: u64,
        /// The least rate.
        least: LeastRate,
    },
}

impl JobError {
    /// The number by which fio tells of it: ETIMEDOUT or EIO of Linux.
    pub fn number(&self) -> u32 {
        match self {
            Self::Latency { .. } => 110,
            Self::Rate { .. } => 5,
        }
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |direction| ["read", "write", "trim"][direction as usize];
        match *self {
            Self::Latency { direction, took, allowed } => {
                let (took, allowed) = (short_time(took), short_time(allowed));
                write!(f, "a {} took {took}: max_latency allows {allowed}", name(direction))
            }
            Self::Rate { direction, found, least } => {
                let (what, option, least) = match least {
                    LeastRate::Bytes(least) => ("bytes", "rate_min", least),
                    LeastRate::Ios(least) => ("I/Os", "rate_iops_min", least),
                };
                let name = name(direction);
                write!(f, "{name}s had {found} {what} a second: {option} wants {least}")
            }
        }
    }
}
