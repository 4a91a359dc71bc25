//! Puts requests in the order of their arrival, and finds what makes a trace doubtful.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use paternoster::Op;

use crate::error::{Error, Place};
use crate::findings::{Findings, Warning};
use crate::request::Request;

/// By how much a time may go back, in ns: tracers write what several processors tell.
const LATE: u64 = 10_000_000;
const SECTOR: u64 = 512;
/// From so many requests on times between arrivals have a 99th percentile that says something.
const ENOUGH: u64 = 1_000;

/// Holds requests back until none can come before them.
pub(crate) struct Checks {
    /// By arrival; those of one time in the order of the trace.
    held: VecDeque<Request>,
    read: u64,
    /// The latest arrival that was read, and the last that was given.
    latest: u64,
    given: Option<u64>,
    /// What is time 0.
    base: Option<u64>,
    back: (u64, u64),
    parts_of_sectors: u64,
    empty: u64,
    same_time: u64,
    between: Histogram<u64>,
}

impl Checks {
    /// Times are since `base`, or else since the first arrival.
    pub(crate) fn new(base: Option<u64>) -> Self {
        Self {
            held: VecDeque::new(),
            read: 0,
            latest: 0,
            given: None,
            base,
            back: (0, 0),
            parts_of_sectors: 0,
            empty: 0,
            same_time: 0,
            between: Histogram::new(2).expect("two digits are allowed"),
        }
    }

    /// Takes the next request of the trace.
    pub(crate) fn add(&mut self, request: Request) -> Result<(), Error> {
        let arrived = request.arrived;
        if request.len == 0 && request.op != Op::Flush {
            self.empty += 1;
            return Ok(());
        }
        if arrived < self.latest {
            let by = self.latest - arrived;
            if by > LATE {
                let what = format!(
                    "request {} arrives {by} ns before another that stands before it: at most \
                     {LATE} ns are allowed",
                    self.read + 1
                );
                return Err(Error::at(Place::File, what));
            }
            self.back = (self.back.0 + 1, self.back.1.max(by));
        }
        self.latest = self.latest.max(arrived);
        let is_whole = request.offset.is_multiple_of(SECTOR) && request.len.is_multiple_of(SECTOR);
        self.parts_of_sectors += u64::from(!is_whole && request.op != Op::Flush);
        // Nearly all come in order.
        let at = self.held.iter().rposition(|held| held.arrived <= arrived);
        self.held.insert(at.map_or(0, |at| at + 1), request);
        self.read += 1;
        Ok(())
    }

    /// The next one in order, if none can come before it any more.
    pub(crate) fn take(&mut self, is_over: bool) -> Option<Request> {
        let arrived = self.held.front()?.arrived;
        if !is_over && arrived.saturating_add(LATE) >= self.latest {
            return None;
        }
        let mut request = self.held.pop_front()?;
        if let Some(before) = self.given.replace(arrived) {
            let between = arrived - before;
            self.same_time += u64::from(between == 0);
            self.between.record(between).expect("it grows as far as needed");
        }
        let base = *self.base.get_or_insert(arrived);
        let since = |time: u64| time.saturating_sub(base);
        request.dispatched = request.dispatched.map(since);
        request.completed = request.completed.map(since);
        request.arrived = arrived.saturating_sub(base);
        Some(request)
    }

    /// Says what it has found, at the end.
    pub(crate) fn tell(&self, findings: &mut Findings) {
        if let (count @ 1.., worst_ns) = self.back {
            findings.warn(Warning::TimesGoBack { count, worst_ns });
        }
        if 100 * self.same_time > self.read {
            findings.warn(Warning::CoarseClock { count: self.same_time });
        }
        if self.parts_of_sectors > 0 {
            findings.warn(Warning::PartsOfSectors { count: self.parts_of_sectors });
        }
        if self.empty > 0 {
            findings.warn(Warning::Empty { count: self.empty });
        }
        let usual = self.between.value_at_quantile(0.99).saturating_mul(10);
        let longest_ns = self.between.max();
        if self.read >= ENOUGH && usual > 0 && longest_ns > usual {
            let long = self.between.iter_recorded().filter(|it| it.value_iterated_to() > usual);
            let count = long.map(|it| it.count_at_value()).sum();
            findings.warn(Warning::Gap { count, longest_ns });
        }
    }
}
