//! What a run has shown of the scheduler, beside what the tenants got.

#![allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

use std::ops::Deref;

use paternoster::Nanos;
use paternoster_scene::Outcome;

/// What requests cost by a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// So many bytes cost as much as one op.
    pub op_bytes: i64,
    /// What a write costs, in percent of a read.
    pub write_percent: i64,
    /// What a write with FUA costs, likewise.
    pub fua_percent: i64,
}

/// The scheduler at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the start of the run.
    pub at: Nanos,
    /// How many requests it lets into the device; none where it does not say.
    pub depth: Option<i64>,
    /// What requests cost by it; none where it does not say.
    pub prices: Option<Prices>,
    /// How many are there.
    pub in_flight: u32,
    /// How many have completed so far.
    pub completed: u64,
}

/// A run that was watched.
#[derive(Clone, Debug)]
pub struct Watched {
    /// What the tenants got.
    pub outcome: Outcome,
    /// The scheduler from the start of the run on, each 10 ms.
    pub samples: Vec<Sample>,
    /// When it began to count, since the start of the run.
    pub counted_from: Nanos,
}

impl Deref for Watched {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

impl Watched {
    /// The mean depth while it counted, and the last; none where the scheduler does not say.
    pub fn depth(&self) -> Option<(f64, i64)> {
        let counted = self.samples.iter().filter(|sample| sample.at >= self.counted_from);
        let depths: Vec<i64> = counted.filter_map(|sample| sample.depth).collect();
        let last = *depths.last()?;
        Some((depths.iter().sum::<i64>() as f64 / depths.len() as f64, last))
    }
}
