//! Makes one request of its events: arrival, dispatch, completion.
//!
//! ```text
//!   Q 100+8   Q 108+8     D 100+16              C 100+16
//!      │         │           │ dispatches both     │ completes both: both are given, in order
//!      ▼         ▼           ▼                     ▼
//!   waiting by sector ────────────────────────────────▶ out, in the order of arrival
//! ```
//!
//! A dispatch says which sectors it is of, not which requests. It is of the one that has these
//! sectors; else of all that wait there. So merging is undone; and a request that was split has
//! been dispatched with the first of its parts, and has completed with the last.
//!
//! The block layer flushes of its own accord, too: before and behind a write that has to be
//! durable. Such a flush is nobody's, and is left out where there are arrivals.
//!
//! A recording of the server has commands that no device got: flushes, trims of less than the disk
//! trims, what was refused. Its sidecar says of each request that it has had its reply, and when.

use std::collections::{BTreeSet, HashMap, VecDeque};

use paternoster::Op;

use crate::companion::Companion;
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

/// How many wait for the first until the sidecar is asked whether it has had its reply.
const WAITING: usize = 1_000;

/// The requests of a trace of events.
pub(crate) struct Assembly {
    events: Box<dyn Events>,
    survey: Survey,
    devices: Devices,
    /// Events that were read before the rest.
    read: VecDeque<Event>,
    companion: Option<Companion>,
    /// Requests that have completed, and that it does not have.
    missing: u64,
    /// In the order of arrival; the first has the number `first`.
    requests: VecDeque<Pending>,
    first: u64,
    /// Requests that are not complete, by their first sector and number.
    by_sector: BTreeSet<(u64, u64)>,
    /// Flushes that were not dispatched, and those that were; they have no sector.
    new_flushes: BTreeSet<u64>,
    flushes: BTreeSet<u64>,
    /// The most sectors of a request so far.
    longest: u64,
    /// Of processes.
    contexts: HashMap<u32, ContextId>,
    /// Requests of an event, with the bytes that they have in common; kept for its memory.
    common: Vec<(u64, u64)>,
    unpaired: Unpaired,
    /// The time of the last event, and the longest time of a request in the device.
    last: u64,
    longest_time: u64,
    has_ended: bool,
}

struct Pending {
    request: Request,
    /// The number of the event with which it arrived.
    sequence: u32,
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
    /// Dispatched requests that will not complete any more.
    dispatches: u64,
    /// Completions before the first dispatch whose request was seen.
    at_the_begin: u64,
    has_paired: bool,
}

impl Assembly {
    pub(crate) fn new(
        events: Box<dyn Events>,
        surveyed: Surveyed,
        companion: Option<Companion>,
    ) -> Self {
        let Surveyed { survey, devices, first: read } = surveyed;
        let companion = companion.map(|companion| companion.since(survey.begin));
        Self {
            events,
            survey,
            devices,
            read,
            companion,
            missing: 0,
            requests: VecDeque::new(),
            first: 0,
            by_sector: BTreeSet::new(),
            new_flushes: BTreeSet::new(),
            flushes: BTreeSet::new(),
            longest: 0,
            contexts: HashMap::new(),
            common: Vec::new(),
            unpaired: Unpaired::default(),
            last: 0,
            longest_time: 0,
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

    fn completes(&self) -> bool {
        self.survey.completion.is_some()
    }

    /// When an event was, since the trace began.
    fn time(&self, event: &Event) -> u64 {
        event.time.saturating_sub(self.survey.begin)
    }

    /// Whether the sidecar has a reply to the first, without which others wait.
    fn is_answered(&mut self) -> Result<bool, Error> {
        let Some(companion) = &mut self.companion else { return Ok(false) };
        match self.requests.front() {
            Some(first) if self.requests.len() > WAITING => {
                companion.has_answered(first.sequence, self.last)
            }
            _ => Ok(false),
        }
    }

    fn take_first(&mut self) -> Result<Option<Request>, Error> {
        let Some(mut pending) = self.requests.pop_front() else { return Ok(None) };
        let number = self.first;
        self.first += 1;
        let (sequence, mut is_answered) = (pending.sequence, false);
        if let Some(companion) = &mut self.companion {
            is_answered = companion.complete(sequence, &mut pending.request)?;
            self.missing += u64::from(pending.is_done && !is_answered);
        }
        if !pending.is_done {
            self.by_sector.remove(&(pending.sector, number));
            self.new_flushes.remove(&number);
            self.flushes.remove(&number);
            // What was dispatched lately is outstanding at the end of the trace.
            let dispatched = pending.request.dispatched.filter(|_| self.completes());
            let is_lost = dispatched.is_some_and(|at| self.last - at > self.longest_time);
            self.unpaired.dispatches += u64::from(is_lost && !is_answered);
        }
        Ok(Some(pending.request))
    }

    fn tell(&mut self, findings: &mut Findings) -> Result<(), Error> {
        if let Some(companion) = &mut self.companion {
            companion.finish()?;
            let lost = companion.recorded.lost.iter().map(|lost| lost.requests).sum();
            if lost > 0 {
                findings.warn(Warning::LostRequests { count: lost });
            }
            if self.missing > 0 {
                findings.warn(Warning::NotInSidecar { count: self.missing });
            }
            findings.set_recorded(std::mem::take(&mut companion.recorded));
        }
        std::mem::take(&mut self.devices).tell(self.survey, findings);
        if let Tally { lost: count @ 1.., .. } = self.events.tally() {
            findings.warn(Warning::LostEvents { count });
        }
        let Unpaired { completions, dispatches, at_the_begin, .. } = self.unpaired;
        if at_the_begin > 0 {
            findings.warn(Warning::BegunInTheMiddle { outstanding: at_the_begin });
        }
        // Some are always lost where a trace begins and ends: a hundredth is allowed.
        let completions = completions - at_the_begin;
        let by_events = self.companion.is_none();
        if by_events && 100 * completions.max(dispatches) > self.first {
            findings.warn(Warning::Unpaired { completions, dispatches });
        }
        Ok(())
    }

    fn follow(&mut self, event: &Event, findings: &mut Findings) {
        self.last = self.last.max(self.time(event));
        let arrival = self.survey.arrival;
        match event.point {
            Point::Issued if self.issue(event) => {}
            // Not all requests are inserted.
            Point::Issued if arrival != Point::Queued => {
                self.arrive(event, findings);
                self.issue(event);
            }
            Point::Requeued => self.requeue(event),
            point if point == arrival => self.arrive(event, findings),
            // That is of no device, and the sidecar's to say.
            _ if self.companion.is_some() && event.error != 0 => {}
            point if Some(point) == self.survey.completion => self.complete(event),
            _ => {}
        }
    }

    fn arrive(&mut self, event: &Event, findings: &mut Findings) {
        let number = self.first + self.requests.len() as u64;
        let is_flush = event.kind.op == Op::Flush;
        let context = self.context(event.process, findings);
        let offset = if is_flush { 0 } else { event.sector.saturating_mul(SECTOR) };
        let request = Request {
            flags: event.kind.flags,
            ahead: event.kind.ahead,
            ..Request::new(self.time(event), context, event.kind.op, offset, event.len)
        };
        let is_done = !self.completes() && !self.survey.issues;
        let (to_issue, to_complete) = (event.len, event.len);
        let sector = event.sector;
        let sequence = event.sequence;
        let pending = Pending { request, sequence, sector, to_issue, to_complete, is_done };
        self.requests.push_back(pending);
        if is_done {
            return;
        }
        if is_flush {
            self.new_flushes.insert(number);
        } else {
            self.by_sector.insert((event.sector, number));
            self.longest = self.longest.max(event.len.div_ceil(SECTOR));
        }
    }

    fn context(&mut self, process: u32, findings: &mut Findings) -> ContextId {
        let events = &self.events;
        let new = || match events.name_of(process) {
            Some(name) => findings.context(name),
            None => findings.context(process.to_string().as_bytes()),
        };
        *self.contexts.entry(process).or_insert_with(new)
    }

    /// Returns whether any request was dispatched.
    fn issue(&mut self, event: &Event) -> bool {
        let time = self.time(event);
        if event.kind.op == Op::Flush {
            let Some(number) = self.new_flushes.pop_first() else { return false };
            self.pending(number).request.dispatched = Some(time);
            if self.completes() {
                self.flushes.insert(number);
            } else {
                self.pending(number).is_done = true;
            }
            return true;
        }
        let completes = self.completes();
        let mut left = event.len;
        self.find(event, |pending| pending.to_issue > 0);
        self.each_found(|pending, overlap| {
            // Others of the same sectors wait for a dispatch of their own.
            if left == 0 {
                return false;
            }
            pending.request.dispatched.get_or_insert(time);
            let part = overlap.min(pending.to_issue).min(left);
            pending.to_issue -= part;
            left -= part;
            !completes && pending.to_issue == 0
        })
    }

    /// What was issued will be once more.
    fn requeue(&mut self, event: &Event) {
        if event.kind.op == Op::Flush {
            if let Some(number) = self.flushes.pop_last() {
                self.pending(number).request.dispatched = None;
                self.new_flushes.insert(number);
            }
            return;
        }
        self.find(event, |pending| pending.request.dispatched.is_some());
        self.each_found(|pending, overlap| {
            pending.request.dispatched = None;
            pending.to_issue = (pending.to_issue + overlap).min(pending.request.len);
            false
        });
    }

    fn complete(&mut self, event: &Event) {
        let time = self.time(event);
        let issues = self.survey.issues;
        if event.kind.op == Op::Flush {
            // The block layer's own are nobody's, and some kernels tell of one twice.
            let flushes = if issues { &mut self.flushes } else { &mut self.new_flushes };
            if let Some(number) = flushes.pop_first() {
                let pending = self.pending(number);
                pending.request.completed = Some(time);
                pending.request.error = Some(event.error).filter(|&errno| errno != 0);
                pending.is_done = true;
            }
            return;
        }
        let (mut left, mut longest_time) = (event.len, self.longest_time);
        self.find(event, |pending| !issues || pending.request.dispatched.is_some());
        let found = self.each_found(|pending, overlap| {
            if left == 0 {
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
                let Request { arrived, dispatched, .. } = pending.request;
                pending.request.completed = Some(time);
                let took = time.saturating_sub(dispatched.unwrap_or(arrived));
                longest_time = longest_time.max(took);
            }
            is_done
        });
        self.longest_time = longest_time;
        if found {
            self.unpaired.has_paired = true;
        } else {
            self.unpaired.completions += 1;
            self.unpaired.at_the_begin += u64::from(!self.unpaired.has_paired);
        }
    }

    fn pending(&mut self, number: u64) -> &mut Pending {
        &mut self.requests[index(number, self.first)]
    }

    /// Finds the requests of an event that `of_it` allows: the one of just its sectors, the last of
    /// several, as the others have lost their events; else all that have some of them.
    fn find(&mut self, event: &Event, of_it: impl Fn(&Pending) -> bool) {
        self.common.clear();
        let (from, end) = (event.sector, event.sector.saturating_add(sectors(event.len)));
        let is_it = |number: u64| {
            let pending = &self.requests[index(number, self.first)];
            (pending.request.op == event.kind.op && of_it(pending)).then_some(pending)
        };
        let same = self.by_sector.range((from, 0)..=(from, u64::MAX)).rev();
        let mut same = same.filter_map(|&(_, number)| Some((number, is_it(number)?)));
        if let Some((number, _)) = same.find(|(_, pending)| pending.request.len == event.len) {
            self.common.push((number, event.len));
            return;
        }
        let first = event.sector.saturating_sub(self.longest);
        for &(sector, number) in self.by_sector.range((first, 0)..(end, 0)) {
            let Some(pending) = is_it(number) else { continue };
            let its_end = sector.saturating_add(sectors(pending.request.len));
            if its_end > from {
                let common = its_end.min(end) - sector.max(from);
                self.common.push((number, common.saturating_mul(SECTOR)));
            }
        }
    }

    /// Has `act` act on each that was found, in the order of sectors, with the bytes that it has in
    /// common with the event. It says whether the request is done. Returns whether there was any.
    fn each_found(&mut self, mut act: impl FnMut(&mut Pending, u64) -> bool) -> bool {
        for &(number, common) in &self.common {
            let pending = &mut self.requests[index(number, self.first)];
            if act(pending, common) {
                pending.is_done = true;
                self.by_sector.remove(&(pending.sector, number));
            }
        }
        !self.common.is_empty()
    }
}

impl Requests for Assembly {
    /// The next request, in the order of arrival.
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Request>, Error> {
        loop {
            let is_due = self.has_ended || self.requests.len() > OUTSTANDING;
            let is_done = self.requests.front().is_some_and(|pending| pending.is_done || is_due);
            if is_done || self.is_answered()? {
                return self.take_first();
            }
            if self.has_ended {
                self.tell(findings)?;
                return Ok(None);
            }
            match self.next_event(findings)? {
                Some(event) if event.device == self.survey.device => self.follow(&event, findings),
                Some(_) => {}
                None => self.has_ended = true,
            }
        }
    }
}

fn sectors(bytes: u64) -> u64 {
    bytes.div_ceil(SECTOR)
}

/// Where the request of that number is.
fn index(number: u64, first: u64) -> usize {
    usize::try_from(number - first).expect("it is in memory")
}
