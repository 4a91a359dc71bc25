//! The limits of a group by their keys, and how values of them are written: in the file and in
//! `ctl`.
//!
//! ```text
//!   riops wiops         1 or more a second, "max" is none          caps, as io.max has them
//!   rbps wbps           1 byte a second or more, "max" is none
//!   min_iops            1 or more a second, 0 is none              reservations
//!   min_bps             1 byte a second or more, 0 is none
//!   latency_target      microseconds, 0 is none                    as fio has it
//! ```

use std::num::NonZeroU64;

use paternoster::{GroupLimits, Nanos};

use super::draft::Number;
use super::error::Problem;
use super::size;

/// What is written in place of a cap to have none.
const NO_CAP: &str = "max";

/// The longest latency target in microseconds: an hour.
const LONGEST_TARGET: u64 = 3_600_000_000;

/// A limit by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    ReadOps,
    WriteOps,
    ReadBytes,
    WriteBytes,
    MinOps,
    MinBytes,
    LatencyTarget,
}

impl Limit {
    pub(crate) const ALL: [Self; 7] = [
        Self::ReadOps,
        Self::WriteOps,
        Self::ReadBytes,
        Self::WriteBytes,
        Self::MinOps,
        Self::MinBytes,
        Self::LatencyTarget,
    ];

    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::ReadOps => "riops",
            Self::WriteOps => "wiops",
            Self::ReadBytes => "rbps",
            Self::WriteBytes => "wbps",
            Self::MinOps => "min_iops",
            Self::MinBytes => "min_bps",
            Self::LatencyTarget => "latency_target",
        }
    }

    /// The limit of that key.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.key() == key)
    }

    /// Its value in `limits`, in ops or bytes a second or in microseconds; none if there is none.
    pub(crate) fn of(self, limits: &GroupLimits) -> Option<NonZeroU64> {
        match self {
            Self::ReadOps => limits.riops,
            Self::WriteOps => limits.wiops,
            Self::ReadBytes => limits.rbps,
            Self::WriteBytes => limits.wbps,
            Self::MinOps => limits.min_iops,
            Self::MinBytes => limits.min_bps,
            Self::LatencyTarget => {
                limits.latency_target.and_then(|target| NonZeroU64::new(target.as_nanos() / 1000))
            }
        }
    }

    /// Sets it in `limits`, in the same unit.
    pub(crate) fn set(self, limits: &mut GroupLimits, to: Option<NonZeroU64>) {
        match self {
            Self::ReadOps => limits.riops = to,
            Self::WriteOps => limits.wiops = to,
            Self::ReadBytes => limits.rbps = to,
            Self::WriteBytes => limits.wbps = to,
            Self::MinOps => limits.min_iops = to,
            Self::MinBytes => limits.min_bps = to,
            Self::LatencyTarget => {
                limits.latency_target = to.map(|us| Nanos::from_micros(us.get()));
            }
        }
    }

    /// Reads a value. None is to have no such limit.
    pub(crate) fn read(self, found: &Number) -> Result<Option<NonZeroU64>, Problem> {
        let value = match found {
            Number::Text(text) if text == NO_CAP && self.is_cap() => return Ok(None),
            Number::Plain(value) => u64::try_from(*value).ok(),
            Number::Text(text) if self.is_of_bytes() => match size::parse(self.key(), text) {
                Err(Problem::BadSize { .. }) => None,
                bytes => Some(bytes?),
            },
            Number::Text(_) => None,
        };
        let value = value.filter(|&value| value <= self.most()).map(NonZeroU64::new);
        match value.filter(|value| value.is_some() || !self.is_cap()) {
            Some(value) => Ok(value),
            None => Err(self.refuse(match found {
                Number::Plain(value) => value.to_string(),
                Number::Text(text) => format!("{text:?}"),
            })),
        }
    }

    /// Refuses what was found, which is shown as it is.
    pub(crate) fn refuse(self, found: String) -> Problem {
        Problem::BadLimit { key: self.key(), found, allowed: self.allowed() }
    }

    fn allowed(self) -> &'static str {
        match self {
            Self::ReadOps | Self::WriteOps => "1 or more a second, or \"max\"",
            Self::ReadBytes | Self::WriteBytes => {
                "1 byte a second or more, such as \"10M\", or \"max\""
            }
            Self::MinOps => "0 or more a second",
            Self::MinBytes => "0 bytes a second or more, such as \"10M\",",
            Self::LatencyTarget => "0 to 3600000000 microseconds",
        }
    }

    fn most(self) -> u64 {
        if self == Self::LatencyTarget { LONGEST_TARGET } else { u64::MAX }
    }

    fn is_of_bytes(self) -> bool {
        matches!(self, Self::ReadBytes | Self::WriteBytes | Self::MinBytes)
    }

    fn is_cap(self) -> bool {
        matches!(self, Self::ReadOps | Self::WriteOps | Self::ReadBytes | Self::WriteBytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(limit: Limit, value: i64) -> Result<Option<u64>, String> {
        read(limit, &Number::Plain(value))
    }

    fn text(limit: Limit, text: &str) -> Result<Option<u64>, String> {
        read(limit, &Number::Text(text.to_owned()))
    }

    fn read(limit: Limit, found: &Number) -> Result<Option<u64>, String> {
        let read = limit.read(found).map_err(|problem| problem.to_string());
        read.map(|value| value.map(NonZeroU64::get))
    }

    #[test]
    fn caps_are_numbers_or_max_and_bytes_have_units() {
        for limit in Limit::ALL {
            assert_eq!(plain(limit, 7), Ok(Some(7)));
            let max = text(limit, "max");
            assert_eq!(max.is_ok(), limit.is_cap(), "none is the most of a cap: {max:?}");
            assert!(max.is_err() || max == Ok(None), "{max:?}");
        }
        assert_eq!(text(Limit::WriteBytes, "10M"), Ok(Some(10 << 20)));
        assert_eq!(plain(Limit::MinOps, 0), Ok(None));
        assert_eq!(plain(Limit::MinBytes, 0), Ok(None));
        assert_eq!(plain(Limit::LatencyTarget, 0), Ok(None));
    }

    #[test]
    fn what_is_no_limit_is_refused_with_what_is_allowed() {
        for (refused, said) in [
            (plain(Limit::ReadOps, 0), "riops = 0: 1 or more a second, or \"max\" is allowed"),
            (plain(Limit::MinOps, -1), "min_iops = -1: 0 or more a second is allowed"),
            (text(Limit::WriteOps, "10K"), "wiops = \"10K\": 1 or more a second, or \"max\" is"),
            (plain(Limit::ReadBytes, 0), "rbps = 0: 1 byte a second or more, such as \"10M\","),
            (text(Limit::ReadBytes, "ten"), "rbps = \"ten\": 1 byte a second or more, such as"),
            (text(Limit::MinBytes, "max"), "min_bps = \"max\": 0 bytes a second or more, such as"),
            (text(Limit::MinOps, "max"), "min_iops = \"max\": 0 or more a second is allowed"),
            (
                text(Limit::LatencyTarget, "2ms"),
                "latency_target = \"2ms\": 0 to 3600000000 microseconds is allowed",
            ),
            (plain(Limit::LatencyTarget, 3_600_000_001), "latency_target = 3600000001: 0 to"),
        ] {
            let refused = refused.expect_err(said);
            assert!(refused.starts_with(said), "{refused}");
        }
    }

    #[test]
    fn each_limit_has_its_key_and_its_place() {
        for (number, limit) in (1..).zip(Limit::ALL) {
            let mut limits = GroupLimits::NONE;
            limit.set(&mut limits, NonZeroU64::new(number));
            assert_eq!(limit.of(&limits), NonZeroU64::new(number));
            let others = Limit::ALL.into_iter().filter(|other| other.of(&limits).is_some());
            assert_eq!(others.collect::<Vec<_>>(), [limit]);
            assert_eq!(Limit::of_key(limit.key()), Some(limit));
        }
        assert_eq!(Limit::of_key("iops"), None);
    }
}
