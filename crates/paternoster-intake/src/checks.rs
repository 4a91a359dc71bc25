//! Puts requests in the order of their arrival, and finds what makes a trace doubtful.

use std::collections::{BTreeMap, VecDeque};

use hdrhistogram::Histogram;
use paternoster::Op;

use crate::error::{Error, Place};
use crate::findings::{Findings, Warning};
use crate::request::{Replied, Request};

/// By how much a time may go back, in ns: tracers write what several processors tell.
const LATE: u64 = 10_000_000;
/// How many requests are held back at most.
const MOST: usize = 65_536;
const SECTOR: u64 = 512;
/// From so many requests on times between arrivals have a 99th percentile that says something.
const ENOUGH: u64 = 1_000;

/// Holds requests back until none can come before them.
pub(crate) struct Checks {
    /// Those that came in order, and those that were late, by arrival and order.
    held: VecDeque<Request>,
    late: BTreeMap<(u64, u64), Request>,
    read: u64,
    /// The latest arrival that was read, and the last that was given.
    latest: u64,
    given: Option<u64>,
    /// What is time 0.
    base: Option<u64>,
    back: (u64, u64),
    parts_of_sectors: u64,
    empty: u64,
    early_ends: u64,
    same_time: u64,
    between: Histogram<u64>,
}

impl Checks {
    /// Times are since `base`, or else since the first arrival.
    pub(crate) fn new(base: Option<u64>) -> Self {
        Self {
            held: VecDeque::new(),
            late: BTreeMap::new(),
            read: 0,
            latest: 0,
            given: None,
            base,
            back: (0, 0),
            parts_of_sectors: 0,
            empty: 0,
            early_ends: 0,
            same_time: 0,
            between: Histogram::new(2).expect("two digits are allowed"),
        }
    }

    /// Takes the next request of the trace.
    pub(crate) fn add(&mut self, mut request: Request) -> Result<(), Error> {
        let arrived = request.arrived;
        if request.len == 0 && request.op != Op::Flush {
            self.empty += 1;
            return Ok(());
        }
        let ends = [request.dispatched, request.completed].into_iter().flatten();
        if ends.min().is_some_and(|end| end < arrived) {
            self.early_ends += 1;
            request.dispatched = request.dispatched.map(|at| at.max(arrived));
            request.completed = request.completed.map(|at| at.max(arrived));
        }
        let is_late = arrived < self.latest;
        if is_late {
            let by = self.latest - arrived;
            let is_given = self.given.is_some_and(|given| arrived < given);
            if by > LATE || is_given {
                let what = format!(
                    "request {} arrives {by} ns before another that stands before it: at most \
                     {LATE} ns are allowed, and {MOST} requests",
                    self.read + 1
                );
                return Err(Error::at(Place::File, what));
            }
            self.back = (self.back.0 + 1, self.back.1.max(by));
        }
        self.latest = self.latest.max(arrived);
        let is_whole = request.offset.is_multiple_of(SECTOR) && request.len.is_multiple_of(SECTOR);
        self.parts_of_sectors += u64::from(!is_whole && request.op != Op::Flush);
        if is_late {
            self.late.insert((arrived, self.read), request);
        } else {
            self.held.push_back(request);
        }
        self.read += 1;
        Ok(())
    }

    /// The next one in order, if none can come before it any more.
    pub(crate) fn take(&mut self, is_over: bool) -> Option<Request> {
        let first = self.held.front().map(|request| request.arrived);
        let late = self.late.first_key_value().map(|(&(arrived, _), _)| arrived);
        let arrived = first.into_iter().chain(late).min()?;
        let is_full = self.held.len() + self.late.len() > MOST;
        if !is_over && !is_full && arrived.saturating_add(LATE) >= self.latest {
            return None;
        }
        let mut request =
            if first == Some(arrived) { self.held.pop_front()? } else { self.late.pop_first()?.1 };
        if let Some(before) = self.given.replace(arrived) {
            let between = arrived - before;
            self.same_time += u64::from(between == 0);
            self.between.record(between).expect("it grows as far as needed");
        }
        let base = *self.base.get_or_insert(arrived);
        let since = |time: u64| time.saturating_sub(base);
        request.dispatched = request.dispatched.map(since);
        request.completed = request.completed.map(since);
        request.replied = request.replied.map(|it| Replied { at: since(it.at), ..it });
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
        if self.early_ends > 0 {
            findings.warn(Warning::EndsBeforeArrival { count: self.early_ends });
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
