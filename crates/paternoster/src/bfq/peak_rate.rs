//! The peak rate of the device: sectors a microsecond × 2¹⁶, as it shows at its best.
//!
//! Dispatches are observed over intervals of about a second. An interval counts if it was long
//! enough and mostly sequential, or faster than what is known; the estimate moves towards it, the
//! more the longer and the more sequential the interval was.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::habits::is_seek;
use crate::bfq::queue::queue_of;
use crate::request::{Sector, SectorCount};
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, Trace};

const RATE_SHIFT: u32 = 16;
/// An interval of fewer requests, or shorter, says nothing.
const MIN_SAMPLES: u32 = 32;
const MIN_INTERVAL: Nanos = Nanos::from_millis(300);
/// An interval is closed after this time.
const INTERVAL: Nanos = Nanos::from_millis(1000);
/// With nothing in the device for this long, an interval ends with its last request.
const LONG_IDLE: Nanos = Nanos::from_millis(100);
/// Between requests no farther apart the device was busy; completions no farther apart were not
/// late.
pub(super) const SHORT: Nanos = Nanos::from_millis(2);
/// A rate beyond this, in sectors a microsecond, is an error.
const MAX_RATE: u32 = 20;
/// Below this part of a sector a microsecond × 2¹⁶, about 1000 sectors a second, the device was
/// held up by something else.
const SLOW_RATE: u64 = 1 << (RATE_SHIFT - 10);
/// What the reference devices do: rotational, and not.
const REFERENCE_RATE: [u32; 2] = [14_000, 33_000];

/// What is known of the rate, and the interval that is observed.
#[derive(Debug)]
pub(super) struct PeakRate {
    pub(super) rate: u32,
    /// Where the last request that was sent ended.
    pub(super) head: Sector,
    samples: u32,
    sequential: u32,
    sectors: u64,
    /// The largest of the last requests.
    largest: SectorCount,
    first_dispatch: Instant,
    last_dispatch: Instant,
    interval: Nanos,
}

impl PeakRate {
    pub(super) fn new(rotational: bool) -> Self {
        Self {
            rate: reference_rate(rotational) * 2 / 3,
            head: Sector(0),
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: SectorCount(0),
            first_dispatch: Instant::START,
            last_dispatch: Instant::START,
            interval: Nanos::ZERO,
        }
    }

    /// What the device serves in that time at its peak.
    #[allow(clippy::cast_possible_truncation)] // bounded before
    pub(super) fn sectors_in(&self, span: Nanos) -> SectorCount {
        let micros = u128::from(span.as_nanos() / 1000);
        let sectors = (u128::from(self.rate) * micros) >> RATE_SHIFT;
        SectorCount(sectors.min(u128::from(u32::MAX)) as u32)
    }

    /// Begins a new interval with a request, or with the next one.
    fn restart(&mut self, now: Instant, first: Option<SectorCount>) {
        let Some(sectors) = first else {
            self.samples = 0;
            return;
        };
        self.first_dispatch = now;
        self.last_dispatch = now;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = sectors.0.into();
        self.largest = sectors;
    }

    fn add(&mut self, now: Instant, sectors: SectorCount, sequential: bool) {
        self.samples += 1;
        self.sequential += u32::from(sequential);
        self.sectors += u64::from(sectors.0);
        self.largest = if self.samples.is_multiple_of(MIN_SAMPLES) {
            sectors
        } else {
            self.largest.max(sectors)
        };
        self.interval = now.wrapping_since(self.first_dispatch);
    }

    /// The interval is over: whether the rate has changed.
    ///
    /// If nothing has completed since it began, its end lies before its beginning and its length
    /// wraps: the device seems to stand still, as in Linux.
    #[allow(clippy::cast_possible_truncation)] // as in Linux
    fn close(&mut self, last_completion: Instant) -> bool {
        if self.samples < MIN_SAMPLES || self.interval < MIN_INTERVAL {
            return false;
        }
        self.interval = self.interval.max(last_completion.wrapping_since(self.first_dispatch));
        let interval = self.interval.as_nanos();
        let rate = ((self.sectors << RATE_SHIFT) / (interval / 1000)) as u32;
        let mostly_sequential = self.sequential >= (3 * self.samples) >> 2;
        if (!mostly_sequential && rate <= self.rate) || rate > MAX_RATE << RATE_SHIFT {
            return false;
        }
        let by_sequence = u64::from((9 * self.sequential) / self.samples);
        let by_length = by_sequence.wrapping_mul(interval) / 1_000_000_000;
        // How much is kept of what was known: from 9/10 down to 1/2.
        let parts = 10 - by_length.min(8) as u32;
        self.rate = (self.rate * (parts - 1) / parts + rate / parts).max(1);
        true
    }
}

/// What a device of that kind is taken to do.
pub(super) fn reference_rate(rotational: bool) -> u32 {
    REFERENCE_RATE[usize::from(!rotational)]
}

impl<T: Trace> Bfq<T> {
    /// A request is about to be sent.
    pub(super) fn sample_rate(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let request = &cx.requests[rq];
        let sectors = request.sectors;
        if self.peak_rate.samples == 0 {
            self.peak_rate.restart(cx.now, Some(sectors));
        } else if cx.now.wrapping_since(self.peak_rate.last_dispatch) > LONG_IDLE
            && self.in_driver == 0
        {
            self.close_rate_interval(cx, Some(sectors));
        } else {
            let busy = self.in_driver > 0 || cx.now.wrapping_since(self.last_completion) < SHORT;
            let sequential = busy && !is_seek(cx, self.peak_rate.head, request);
            self.peak_rate.add(cx.now, sectors, sequential);
            if self.peak_rate.interval >= INTERVAL {
                self.close_rate_interval(cx, Some(sectors));
            }
        }
        self.peak_rate.head = request.end();
        if self.in_service == Some(queue_of(cx.requests, rq)) {
            self.turn_head = request.end();
        }
        self.peak_rate.last_dispatch = cx.now;
    }

    /// A request has completed, long after the one before: if that was slower than any device,
    /// something else held it up, and the interval is given up.
    pub(super) fn note_late_completion(&mut self, cx: &Cx<'_>) {
        let micros = cx.now.wrapping_since(self.last_completion).as_nanos() / 1000;
        // Linux keeps it in 32 bits.
        let micros = micros & u64::from(u32::MAX);
        let short = SHORT.as_nanos() / 1000;
        let largest = u64::from(self.peak_rate.largest.0);
        if micros > short && (largest << RATE_SHIFT) / micros < SLOW_RATE {
            self.close_rate_interval(cx, None);
        }
    }

    fn close_rate_interval(&mut self, cx: &Cx<'_>, first: Option<SectorCount>) {
        if self.peak_rate.close(self.last_completion) {
            let rate = self.peak_rate.rate;
            self.trace.event(cx.now, Event::PeakRate { rate });
            if self.tunables.max_budget() == SectorCount(0) {
                self.update_max_budget(cx);
            }
        }
        self.peak_rate.restart(cx.now, first);
    }
}
