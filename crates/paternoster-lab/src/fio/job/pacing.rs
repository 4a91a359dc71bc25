//! How fast a job goes.

use paternoster::Nanos;

use crate::fio::value::PerDirection;

/// How fast a job goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// It pauses between blocks of I/O.
    pub think: Option<ThinkTime>,
    /// How many bytes a second it submits at most.
    pub rate_bytes_per_s: PerDirection<Option<u64>>,
    /// The least size of each direction, for which the gaps of [`RateProcess::Poisson`] are.
    pub least_bytes: PerDirection<u64>,
    /// How moments are chosen where there is a rate.
    pub rate_process: RateProcess,
    /// What was missed while thinking is not caught up.
    pub rate_ignores_think: bool,
}

/// A pause, `thinktime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTime {
    /// How long.
    pub pause: Nanos,
    /// How much of it the processor is busy.
    pub spin: Nanos,
    /// After how many I/Os, if they count.
    pub ios: Option<u32>,
    /// What counts as one.
    pub trigger: ThinkTrigger,
    /// Also after so much time of I/O.
    pub after: Option<Nanos>,
}

/// What `thinktime_blocks` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkTrigger {
    /// I/Os that completed.
    Complete,
    /// I/Os that were submitted.
    Issue,
}

/// How the moments of a rate are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly: a larger I/O holds the next one back for longer.
    Linear,
    /// The time between two is drawn, as of a Poisson process. As in fio, the sizes of I/Os do not
    /// matter: there are as many as if all were of the least size.
    Poisson,
}
