//! Every event of a window of the run: what was asked, dispatched and completed, and what the
//! scheduler decided.
//!
//! ```text
//!   ─────────────┤ window ├─────────    outside it, what is outstanding is followed alone, so that
//!   followed      kept      followed    the window begins with who waits and who is served
//! ```
//!
//! Parts of one I/O that was split have one name in the events. They are told apart by their order.

use paternoster::{ElevatorEvent, Event, Instant, MergeKind, Nanos, Op};
use serde::Serialize;
use serde_json::{Value, json};

use super::device_shares::DeviceShares;
use super::names::Names;
use super::words::{Decision, Role};

/// At most so many events of requests are kept, and at most so many decisions.
const MOST_EVENTS: usize = 16_000;

/// At most so many lanes are shown; the last one is for all others.
const MOST_LANES: usize = 24;

/// A window of a run, from its start on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Where it begins.
    pub from: Nanos,
    /// Where it ends.
    pub to: Nanos,
}

/// The lanes of a timeline.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// What each is called.
    pub(super) names: Vec<String>,
    /// What they are: groups or jobs.
    pub(super) are: &'static str,
    /// The lane of each job.
    of_job: Vec<usize>,
}

/// A part of an I/O that has not completed, or the request that was made of it.
#[derive(Clone, Copy, Debug)]
struct Part {
    lane: usize,
    op: Op,
    sector: u64,
    sectors: u32,
    asked: Instant,
    dispatched: Option<Instant>,
}

/// How much each lane has where.
#[derive(Clone, Debug, Default, Serialize)]
struct Standing {
    waiting: Vec<u32>,
    in_device: Vec<u32>,
    /// The lane that is served, if that is one, and in which words.
    serving: Option<(i64, String)>,
}

/// What an event says of requests.
#[derive(Clone, Copy, Debug)]
enum Change {
    Asked(Part),
    Merged { lane: usize, into: usize },
    Dispatched(Part),
    Requeued { lane: usize },
    Completed(Part),
}

/// The events of the window.
#[derive(Debug)]
pub(super) struct Chronicle {
    window: Window,
    names: Names,
    lanes: Lanes,
    /// What is outstanding, by the user data of its bios.
    parts: Vec<Vec<Part>>,
    standing: Standing,
    /// The last event with which somebody began to be served, if that has not ended.
    serving: Option<Event>,
    /// How it stood when the window began.
    start: Option<Standing>,
    kept: Kept,
    device_shares: DeviceShares,
    last: Instant,
}

/// Which events are kept.
#[derive(Debug, Default)]
struct Kept {
    events: Vec<Value>,
    requests: usize,
    decisions: usize,
    /// When the first came that was not kept, as there were too many.
    requests_end: Option<Instant>,
    decisions_end: Option<Instant>,
}

/// The window as the page gets it.
#[derive(Serialize)]
pub(super) struct WindowData<'a> {
    from_ns: u64,
    to_ns: u64,
    asked_to_ns: u64,
    /// Up to when requests are kept, and decisions.
    requests_to_ns: u64,
    decisions_to_ns: u64,
    lanes: &'a [String],
    lanes_are: &'static str,
    start: &'a Standing,
    events: &'a [Value],
}

impl Lanes {
    /// A lane for each group where there are several, else for each job.
    pub(super) fn new(jobs: &[String], groups: &[&str]) -> Self {
        let several = groups.iter().any(|group| *group != groups[0]);
        let own: Vec<&str> =
            if several { groups.to_vec() } else { jobs.iter().map(String::as_str).collect() };
        let mut names: Vec<String> = Vec::new();
        let of_job = own
            .iter()
            .map(|own| {
                let found = names.iter().position(|name| name == own);
                found.unwrap_or_else(|| {
                    if names.len() + 1 < MOST_LANES {
                        names.push((*own).to_owned());
                    } else if names.len() < MOST_LANES {
                        names.push("all others".to_owned());
                    }
                    names.len() - 1
                })
            })
            .collect();
        Self { names, are: if several { "Group" } else { "Job" }, of_job }
    }
}

impl Kept {
    fn request(&mut self, now: Instant, entry: impl FnOnce() -> Value) {
        if self.requests == MOST_EVENTS {
            self.requests_end.get_or_insert(now);
        } else {
            self.requests += 1;
            self.events.push(entry());
        }
    }

    fn decision(&mut self, now: Instant, entry: impl FnOnce() -> Value) {
        if self.decisions == MOST_EVENTS {
            self.decisions_end.get_or_insert(now);
        } else {
            self.decisions += 1;
            self.events.push(entry());
        }
    }
}

impl Chronicle {
    /// `counted_from` is when shares of the device begin to be counted.
    pub(super) fn new(window: Window, names: Names, lanes: Lanes, counted_from: Nanos) -> Self {
        let none = vec![0; lanes.names.len()];
        Self {
            window,
            names,
            device_shares: DeviceShares::new(none.len(), Instant::START + counted_from),
            standing: Standing { waiting: none.clone(), in_device: none, serving: None },
            lanes,
            parts: Vec::new(),
            serving: None,
            start: None,
            kept: Kept::default(),
            last: Instant::START,
        }
    }

    /// Takes an event.
    pub(super) fn take(&mut self, now: Instant, event: Event) {
        let at = now.since_start();
        if at >= self.window.from && self.start.is_none() {
            let serving = self.serving.and_then(|event| self.in_words(event));
            self.start = Some(Standing { serving, ..self.standing.clone() });
        }
        self.last = now;
        let is_shown = at >= self.window.from && at <= self.window.to;
        let at = at.saturating_sub(self.window.from).as_nanos();
        if let Some(change) = self.change(now, event) {
            self.device_shares.advance(now, &self.standing.in_device);
            self.count(change);
            if is_shown {
                self.kept.request(now, || entry(at, now, change));
            }
            return;
        }
        match Role::of(event) {
            Role::Begin => self.serving = Some(event),
            Role::End => self.serving = None,
            Role::Idle | Role::Mark => {}
        }
        if let Some((lane, text)) =
            Some(event).filter(|_| is_shown).and_then(|it| self.in_words(it))
        {
            self.kept.decision(now, || json!([at, Role::of(event), lane, text]));
        }
    }

    /// The window as the page gets it.
    pub(super) fn data(&self) -> WindowData<'_> {
        let Window { from, to } = self.window;
        let until = |end: Option<Instant>| end.unwrap_or(self.last).since_start().min(to).max(from);
        WindowData {
            from_ns: from.as_nanos(),
            to_ns: until(None).as_nanos(),
            asked_to_ns: to.as_nanos(),
            requests_to_ns: until(self.kept.requests_end).as_nanos(),
            decisions_to_ns: until(self.kept.decisions_end).as_nanos(),
            lanes: &self.lanes.names,
            lanes_are: self.lanes.are,
            start: self.start.as_ref().unwrap_or(&self.standing),
            events: &self.kept.events,
        }
    }

    /// The part of the device's busy time that each lane had, by the lane's name.
    pub(super) fn device_shares(&self) -> impl Iterator<Item = (&str, f64)> {
        let parts = self.device_shares.parts();
        self.lanes.names.iter().map(String::as_str).zip(parts)
    }

    /// The lane that a decision is about, or -1, and its words.
    fn in_words(&self, event: Event) -> Option<(i64, String)> {
        let Decision { job, text } = Decision::of(event, &self.names)?;
        let lane = job.and_then(|job| i64::try_from(self.lanes.of_job[job]).ok());
        Some((lane.unwrap_or(-1), text))
    }

    /// What an event says of requests, if anything.
    fn change(&mut self, now: Instant, event: Event) -> Option<Change> {
        match event {
            Event::Elevator(ElevatorEvent::Queued { bio, ioc, op, sector, sectors, .. }) => {
                let lane = self.lanes.of_job[self.names.by_context[&ioc]];
                let (sector, sectors) = (sector.0, sectors.0);
                let part = Part { lane, op, sector, sectors, asked: now, dispatched: None };
                self.parts_of(bio).push(part);
                Some(Change::Asked(part))
            }
            Event::Elevator(ElevatorEvent::Merged { bio, into, kind, .. }) => {
                self.merge(bio, into, kind)
            }
            Event::Elevator(ElevatorEvent::Absorbed { absorbed, into, .. }) => {
                self.merge(absorbed, into, MergeKind::Back)
            }
            Event::Elevator(ElevatorEvent::Dispatched { rq, .. }) => {
                let part = self.parts_of(rq).iter_mut().find(|part| part.dispatched.is_none())?;
                part.dispatched = Some(now);
                Some(Change::Dispatched(*part))
            }
            Event::Elevator(ElevatorEvent::Requeued { rq, .. }) => {
                let part = self.parts_of(rq).iter_mut().find(|part| part.dispatched.is_some())?;
                part.dispatched = None;
                Some(Change::Requeued { lane: part.lane })
            }
            Event::Elevator(ElevatorEvent::Completed { rq, .. }) => {
                let parts = self.parts_of(rq);
                let index = parts.iter().position(|part| part.dispatched.is_some())?;
                Some(Change::Completed(parts.remove(index)))
            }
            _ => None,
        }
    }

    /// A part goes into the request of another.
    fn merge(&mut self, part: u64, into: u64, kind: MergeKind) -> Option<Change> {
        let merged = self.parts_of(part).pop()?;
        let request = self.parts_of(into).iter_mut().find(|part| part.dispatched.is_none())?;
        request.sectors += merged.sectors;
        if kind == MergeKind::Front {
            request.sector = merged.sector;
        }
        Some(Change::Merged { lane: merged.lane, into: request.lane })
    }

    fn count(&mut self, change: Change) {
        let Standing { waiting, in_device, .. } = &mut self.standing;
        match change {
            Change::Asked(Part { lane, .. }) => waiting[lane] += 1,
            Change::Merged { lane, .. } => waiting[lane] -= 1,
            Change::Dispatched(Part { lane, .. }) => {
                waiting[lane] -= 1;
                in_device[lane] += 1;
            }
            Change::Requeued { lane } => {
                waiting[lane] += 1;
                in_device[lane] -= 1;
            }
            Change::Completed(Part { lane, .. }) => in_device[lane] -= 1,
        }
    }

    fn parts_of(&mut self, user_data: u64) -> &mut Vec<Part> {
        let index = usize::try_from(user_data).expect("user data are indices");
        if self.parts.len() <= index {
            self.parts.resize(index + 1, Vec::new());
        }
        &mut self.parts[index]
    }
}

/// What the page gets of a change: the time, what it is, the lane, and more.
fn entry(at: u64, now: Instant, change: Change) -> Value {
    let since = |earlier: Instant| now.saturating_since(earlier).as_nanos();
    match change {
        Change::Asked(Part { lane, op, sector, sectors, .. }) => {
            json!([at, "Q", lane, letter(op), sector, sectors])
        }
        Change::Merged { lane, into } => json!([at, "M", lane, into]),
        Change::Dispatched(Part { lane, op, sector, sectors, asked, .. }) => {
            json!([at, "D", lane, letter(op), sector, sectors, since(asked)])
        }
        Change::Requeued { lane } => json!([at, "R", lane]),
        Change::Completed(Part { lane, dispatched, .. }) => {
            json!([at, "C", lane, dispatched.map(since)])
        }
    }
}

/// An operation, in a letter.
fn letter(op: Op) -> &'static str {
    match op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Discard => "T",
        Op::Flush => "F",
        _ => "Z",
    }
}
