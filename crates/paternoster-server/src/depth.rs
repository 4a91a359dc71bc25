//! What `depth` of a disk means under its scheduler.
//!
//! ```text
//!               depth = N                      no depth, or (wfq alone) depth = "learned"
//!   wfq         N, and nothing is learned      learned, up to 1024
//!   cfq, bfq    N at most                      what keeps the back end busy where it is shared
//!   others      N at most                      what keeps it busy where it is not
//! ```
//!
//! The elevator's bound is never exceeded. wfq has a tunable `depth` besides, in which 0 is
//! learned; the server sets it by the disk's `depth`, and does not show it beside that.

use paternoster::{SchedulerKind, TunableError, TunableInfo};
use paternoster_disk::BusyDepth;
use serde_json::Value;

use crate::config::DEPTH_MAX;

/// The tunable of wfq.
pub(crate) const TUNABLE: &str = "depth";

/// What is written and shown in place of a depth that is learned.
pub(crate) const LEARNED: &str = "learned";

/// A depth as it is written, in force, or to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// So many requests.
    Fixed(u32),
    /// As many as wfq learns.
    Learned,
}

impl Depth {
    /// Returns what follows from what is written. `busy` is how many keep the back end busy.
    pub(crate) fn in_force(
        scheduler: SchedulerKind,
        written: Option<Self>,
        busy: BusyDepth,
    ) -> Self {
        if let Some(Self::Fixed(depth)) = written {
            return Self::Fixed(depth);
        }
        match scheduler {
            _ if learns(scheduler) => Self::Learned,
            SchedulerKind::None | SchedulerKind::MqDeadline | SchedulerKind::Kyber => {
                Self::Fixed(busy.unshared)
            }
            // CFQ and BFQ: what is in flight can no longer be ordered.
            _ => Self::Fixed(busy.shared),
        }
    }

    /// Returns the elevator's bound.
    pub(crate) fn bound(self) -> u32 {
        self.fixed().unwrap_or(DEPTH_MAX)
    }

    /// Returns the number, if it is not learned.
    pub(crate) fn fixed(self) -> Option<u32> {
        match self {
            Self::Fixed(depth) => Some(depth),
            Self::Learned => None,
        }
    }
}

impl From<Depth> for Value {
    fn from(depth: Depth) -> Self {
        depth.fixed().map_or_else(|| LEARNED.into(), Into::into)
    }
}

/// Returns whether this is the scheduler's tunable that the disk's `depth` sets.
pub(crate) fn is_tunable(scheduler: SchedulerKind, name: &str) -> bool {
    name == TUNABLE && learns(scheduler)
}

/// Returns the scheduler's tunables without that which the disk's `depth` sets.
pub(crate) fn other_tunables(
    scheduler: SchedulerKind,
) -> impl Iterator<Item = &'static TunableInfo> {
    scheduler.tunables().iter().filter(move |info| !is_tunable(scheduler, info.name))
}

/// Returns the one of that name among them; the error names these alone.
pub(crate) fn other_tunable(
    scheduler: SchedulerKind,
    name: &str,
) -> Result<&'static TunableInfo, TunableError> {
    if let Some(info) = other_tunables(scheduler).find(|info| info.name == name) {
        return Ok(info);
    }
    match scheduler.tunable(name) {
        Err(error) if !learns(scheduler) => Err(error),
        _ => {
            let names: Vec<_> = other_tunables(scheduler).map(|info| info.name).collect();
            let allowed = format!("it has: {}", names.join(", "));
            let (scheduler, name) = (scheduler.name(), name.to_owned());
            Err(TunableError::Unknown { scheduler, name, allowed })
        }
    }
}

/// Returns the tunables with that of the depth, if the scheduler has one and a depth is written.
pub(crate) fn with_tunable(
    scheduler: SchedulerKind,
    written: Option<Depth>,
    tunables: &[(String, i64)],
) -> Vec<(String, i64)> {
    let depth = written.and_then(Depth::fixed).filter(|_| learns(scheduler));
    let depth = depth.map(|depth| (TUNABLE.to_owned(), i64::from(depth)));
    tunables.iter().cloned().chain(depth).collect()
}

/// Returns whether the scheduler learns the depth if it is not told.
pub(crate) const fn learns(scheduler: SchedulerKind) -> bool {
    matches!(scheduler, SchedulerKind::Wfq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wfq_has_the_written_depth_alone_and_learns_it_otherwise() {
        let (learned, three) = (Some(Depth::Learned), Some(Depth::Fixed(3)));
        let busy = BusyDepth { shared: 16, unshared: 32 };
        let bound = |kind, written| Depth::in_force(kind, written, busy).bound();
        let [wfq, cfq] = [SchedulerKind::Wfq, SchedulerKind::Cfq];
        assert_eq!([None, learned, three].map(|written| bound(wfq, written)), [1024, 1024, 3]);
        assert_eq!([None, learned, three].map(|written| bound(cfq, written)), [16, 16, 3]);
        for kind in [SchedulerKind::None, SchedulerKind::MqDeadline, SchedulerKind::Kyber] {
            assert_eq!([None, three].map(|written| bound(kind, written)), [32, 3], "{kind}");
        }
        let set = [("cost".to_owned(), 1)];
        let with = |kind, written| with_tunable(kind, written, &set).len();
        assert_eq!((with(wfq, three), with(wfq, learned), with(cfq, three)), (2, 1, 1));
    }
}
