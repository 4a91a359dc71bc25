//! Whether time goes by while a thread works.
//!
//! An I/O may take no time at all: with `ioengine=null`, or on a device whose parameters are 0. A
//! thread that is to run for a while would then do I/O at one instant for ever.

use paternoster::Instant;

use crate::fio::{Job, Place};

/// How many I/Os a thread may begin at one instant, if it is to run for a while.
pub(super) const MOST_IOS: u32 = 1_000_000;

/// Counts the I/Os of a thread that begin at one instant.
#[derive(Debug)]
pub(super) struct StandStill {
    /// The thread has a runtime; without one its work ends it, however little time that takes. So
    /// does the end of the log that it replays.
    is_bounded: bool,
    at: Instant,
    ios: u32,
    place: Place,
    job: String,
}

impl StandStill {
    pub(super) fn new(job: &Job) -> Self {
        Self {
            is_bounded: job.run.runtime.is_some() && job.replay.is_none(),
            at: Instant::from_nanos(0),
            ios: 0,
            place: job.place.clone(),
            job: job.name.clone(),
        }
    }

    /// An I/O begins. Returns whether it is one too many for this instant.
    pub(super) fn begins(&mut self, now: Instant) -> bool {
        if now != self.at {
            (self.at, self.ios) = (now, 0);
        }
        self.ios = self.ios.saturating_add(1);
        self.is_over()
    }

    /// Whether there were too many.
    pub(super) fn is_over(&self) -> bool {
        self.is_bounded && self.ios > MOST_IOS
    }

    /// Where the job says what its I/O does, and what it is called.
    pub(super) fn job(&self) -> (&Place, &str) {
        (&self.place, &self.job)
    }
}
