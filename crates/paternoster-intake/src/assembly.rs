//! Makes one request of its events: arrival, dispatch, completion.
//!
//! ```text
//!   Q 100+8   Q 108+8     D 100+16              C 100+16
//!      │         │           │ dispatches both     │ completes both: both are given, in order
//!      ▼         ▼           ▼                     ▼
//!   waiting by sector ────────────────────────────────▶ out, in the order of arrival
//! ```
//!
//! A dispatch says which sectors it is of, not which requests: it is of all that wait there. So
//! merging is undone; and a request that was split has been dispatched with the first of its parts,
//! and has completed with the last.

use std::collections::{BTreeSet, HashMap, VecDeque};

use paternoster::Op;

use crate::error::Error;
use crate::event::{Event, Events, Point, Tally};
use crate::findings::{Findings, Warning};
use crate::request::{ContextId, Request};
use crate::survey::{Devices, Survey, Surveyed};
use crate::trace::Requests;

const SECTOR: u64 = 512;

/// How many requests are kept at most that wait for an event: the first of them will not come to
/// its end, then, as the tracer has lost that.
const OUTSTANDING: usize = 100_000;

/// The requests of a trace of events.
pub(crate) struct Assembly {
    events: Box<dyn Events>,
    survey: Survey,
    devices: Devices,
    /// Events that were read before the rest.
    read: VecDeque<Event>,
    /// In the order of arrival; the first has the number `first`.
    requests: VecDeque<Pending>,
    first: u64,
    /// Requests that are not complete, by their first sector and number.
    by_sector: BTreeSet<(u64, u64)>,
    /// Flushes that are not complete, which have no sector.
    flushes: VecDeque<u64>,
    /// The most sectors of a request so far.
    longest: u64,
    /// Of processes.
    contexts: HashMap<u32, ContextId>,
    /// Requests of an event, with the bytes that they have in common; kept for its memory.
    common: Vec<(u64, u64, u64)>,
    unpaired: Unpaired,
    has_ended: bool,
}

struct Pending {
    request: Request,
    /// Its first sector, of which its offset may be none.
    sector: u64,
    /// Bytes of it that have not been issued, and that have not completed.
    to_issue: u64,
    to_complete: u64,
    is_done: bool,
}

#[derive(Default)]
struct Unpaired {
    completions: u64,
    dispatches: u64,
    /// Completions before the first dispatch whose request was seen.
    at_the_begin: u64,
    has_paired: bool,
}

impl Assembly {
    pub(crate) fn new(events: Box<dyn Events>, surveyed: Surveyed) -> Self {
        let Surveyed { survey, devices, first: read } = surveyed;
        Self {
            events,
            survey,
            devices,
            read,
            requests: VecDeque::new(),
            first: 0,
            by_sector: BTreeSet::new(),
            flushes: VecDeque::new(),
            longest: 0,
            contexts: HashMap::new(),
            common: Vec::new(),
            unpaired: Unpaired::default(),
            has_ended: false,
        }
    }

    fn next_event(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        if let Some(event) = self.read.pop_front() {
            return Ok(Some(event));
        }
        let event = self.events.next(findings)?;
        if let Some(event) = &event {
            self.devices.add(event);
        }
        Ok(event)
    }

    fn take_first(&mut self) -> Option<Request> {
        let pending = self.requests.pop_front()?;
        if !pending.is_done {
            let dispatched = pending.request.dispatched.is_some();
            self.unpaired.dispatches += u64::from(dispatched && self.survey.completes);
            self.by_sector.remove(&(pending.sector, self.first));
            self.flushes.retain(|&number| number != self.first);
        }
        self.first += 1;
        Some(pending.request)
    }

    fn tell(&mut self, findings: &mut Findings) {
        std::mem::take(&mut self.devices).tell(self.survey, findings);
        if let Tally { lost: count @ 1.., .. } = self.events.tally() {
            findings.warn(Warning::LostEvents { count });
        }
        let Unpaired { completions, at_the_begin, .. } = self.unpaired;
        let open = |pending: &&Pending| pending.request.dispatched.is_some() && !pending.is_done;
        let open = self.requests.iter().filter(open).count() as u64;
        let dispatches = self.unpaired.dispatches + u64::from(self.survey.completes) * open;
        if at_the_begin > 0 {
            findings.warn(Warning::BegunInTheMiddle { outstanding: at_the_begin });
        }
        // A trace ends in the middle of things, too: a hundredth is allowed.
        let all = self.first + self.requests.len() as u64;
        let completions = completions - at_the_begin;
        if 100 * completions.max(dispatches) > all {
            findings.warn(Warning::Unpaired { completions, dispatches });
        }
    }

    fn follow(&mut self, event: Event, findings: &mut Findings) {
        if event.point == self.survey.arrival {
            self.arrive(event, findings);
        }
        match event.point {
            Point::Issued => self.issue(event),
            Point::Completed => self.complete(event),
            _ => {}
        }
    }

    fn arrive(&mut self, event: Event, findings: &mut Findings) {
        let number = self.first + self.requests.len() as u64;
        let is_flush = event.kind.op == Op::Flush;
        let request = Request {
            arrived: event.time.saturating_sub(self.survey.begin),
            context: self.context(event.process, findings),
            op: event.kind.op,
            flags: event.kind.flags,
            ahead: event.kind.ahead,
            offset: if is_flush { 0 } else { event.sector.saturating_mul(SECTOR) },
            len: event.len,
            dispatched: None,
            completed: None,
            error: None,
        };
        let is_done = !self.survey.completes && !self.survey.issues;
        let (to_issue, to_complete) = (event.len, event.len);
        let sector = event.sector;
        self.requests.push_back(Pending { request, sector, to_issue, to_complete, is_done });
        if is_flush {
            self.flushes.push_back(number);
        } else if !is_done {
            self.by_sector.insert((event.sector, number));
            self.longest = self.longest.max(event.len.div_ceil(SECTOR));
        }
    }

    fn context(&mut self, process: u32, findings: &mut Findings) -> ContextId {
        let new = || findings.context(process.to_string().as_bytes());
        *self.contexts.entry(process).or_insert_with(new)
    }

    fn issue(&mut self, event: Event) {
        let time = event.time.saturating_sub(self.survey.begin);
        let completes = self.survey.completes;
        let mut left = event.len;
        let of_it = |pending: &Pending| pending.to_issue > 0;
        self.each_there(event, of_it, |pending, overlap| {
            // Others of the same sectors wait for a dispatch of their own.
            if left == 0 && pending.request.len > 0 {
                return false;
            }
            pending.request.dispatched.get_or_insert(time);
            let part = overlap.min(pending.to_issue).min(left);
            pending.to_issue -= part;
            left -= part;
            !completes && pending.to_issue == 0
        });
    }

    fn complete(&mut self, event: Event) {
        let time = event.time.saturating_sub(self.survey.begin);
        let mut left = event.len;
        let issues = self.survey.issues;
        let of_it = |pending: &Pending| !issues || pending.request.dispatched.is_some();
        let found = self.each_there(event, of_it, |pending, overlap| {
            if left == 0 && pending.request.len > 0 {
                return false;
            }
            let part = overlap.min(pending.to_complete).min(left);
            pending.to_complete -= part;
            left -= part;
            if event.error != 0 {
                pending.request.error = Some(event.error);
            }
            let is_done = pending.to_complete == 0;
            if is_done {
                pending.request.completed = Some(time);
            }
            is_done
        });
        if found {
            self.unpaired.has_paired = true;
        } else {
            self.unpaired.completions += 1;
            self.unpaired.at_the_begin += u64::from(!self.unpaired.has_paired);
        }
    }

    /// Has `act` act on each request of the event's sectors that `of_it` allows, in the order of
    /// sectors; with the bytes that both have in common. It says whether the request is done.
    /// Returns whether there was any.
    fn each_there(
        &mut self,
        event: Event,
        of_it: impl Fn(&Pending) -> bool,
        mut act: impl FnMut(&mut Pending, u64) -> bool,
    ) -> bool {
        if event.kind.op == Op::Flush {
            let Some(&number) = self.flushes.iter().find(|&&number| {
                let pending = &self.requests[index(number, self.first)];
                event.point == Point::Completed || pending.request.dispatched.is_none()
            }) else {
                return false;
            };
            let pending = &mut self.requests[index(number, self.first)];
            if act(pending, 0) && event.point == Point::Completed || !self.survey.completes {
                pending.is_done = true;
                self.flushes.retain(|&other| other != number);
            }
            return true;
        }
        let end = event.sector.saturating_add(event.len.div_ceil(SECTOR));
        let from = event.sector.saturating_sub(self.longest);
        let mut found = std::mem::take(&mut self.common);
        found.clear();
        for &(sector, number) in self.by_sector.range((from, 0)..(end, 0)) {
            let pending = &self.requests[index(number, self.first)];
            let its_end = sector.saturating_add(pending.request.len.div_ceil(SECTOR));
            let is_same = pending.request.op == event.kind.op;
            if is_same && its_end > event.sector && of_it(pending) {
                let common = its_end.min(end) - sector.max(event.sector);
                found.push((sector, number, common.saturating_mul(SECTOR)));
            }
        }
        for &(sector, number, common) in &found {
            let pending = &mut self.requests[index(number, self.first)];
            if act(pending, common) {
                pending.is_done = true;
                self.by_sector.remove(&(sector, number));
            }
        }
        let is_there = !found.is_empty();
        self.common = found;
        is_there
    }
}

impl Requests for Assembly {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Request>, Error> {
        loop {
            let is_due = self.has_ended || self.requests.len() > OUTSTANDING;
            if self.requests.front().is_some_and(|pending| pending.is_done || is_due) {
                return Ok(self.take_first());
            }
            if self.has_ended {
                return Ok(None);
            }
            match self.next_event(findings)? {
                Some(event) if event.device == self.survey.device => self.follow(event, findings),
                Some(_) => {}
                None => {
                    self.has_ended = true;
                    self.tell(findings);
                }
            }
        }
    }
}

/// Where the request of that number is.
fn index(number: u64, first: u64) -> usize {
    usize::try_from(number - first).expect("it is in memory")
}
