//! One clock for all threads of a run.

use std::time::Instant as Moment;

use paternoster::{Instant, Nanos};

/// Counts from the begin of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Moment);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Moment::now())
    }

    pub(crate) fn now(self) -> Instant {
        let nanos = u64::try_from(self.0.elapsed().as_nanos()).expect("a run is short");
        Instant::START + Nanos::new(nanos)
    }
}
