//! The line of an event: what became of a request, or what the scheduler says of itself.

use std::borrow::Cow;

use paternoster::{Event, Instant, MergeKind};
use serde::Serialize;

use crate::names::Names;
use crate::scheduler_line::SchedulerLine;

#[derive(Serialize)]
struct Line<'a> {
    t: u64,
    #[serde(flatten)]
    what: What<'a>,
}

#[derive(Serialize)]
#[serde(tag = "ev")]
enum What<'a> {
    #[serde(rename = "U")]
    Unplugged { depth: u32, why: &'static str },
    #[serde(rename = "Q")]
    Queued { rq: Cow<'a, str> },
    #[serde(rename = "M")]
    Merged { rq: Cow<'a, str>, into: Cow<'a, str>, kind: &'static str },
    #[serde(rename = "D")]
    Dispatched { rq: Cow<'a, str> },
    #[serde(rename = "R")]
    Requeued { rq: Cow<'a, str> },
    #[serde(rename = "C")]
    Completed { rq: Cow<'a, str> },
    #[serde(rename = "exit")]
    Exit { task: u32 },
    #[serde(untagged)]
    Scheduler(SchedulerLine<'a>),
}

/// Returns the line of an event, if there are such lines; completions are told bio by bio, by
/// [`completed`].
pub fn line(now: Instant, event: Event, names: &impl Names) -> Option<String> {
    let rq = |bio| names.request(bio);
    let what = match event {
        Event::Unplugged { depth, reason, .. } => What::Unplugged { depth, why: reason.name() },
        Event::Queued { bio, .. } => What::Queued { rq: rq(bio) },
        Event::Merged { bio, into, kind, .. } => {
            let kind = match kind {
                MergeKind::Back => "back",
                MergeKind::Front => "front",
            };
            What::Merged { rq: rq(bio), into: rq(into), kind }
        }
        Event::Absorbed { absorbed, into, .. } => {
            What::Merged { rq: rq(absorbed), into: rq(into), kind: "back" }
        }
        Event::Dispatched { rq: bio, .. } => What::Dispatched { rq: rq(bio) },
        Event::Requeued { rq: bio, .. } => What::Requeued { rq: rq(bio) },
        other => What::Scheduler(SchedulerLine::new(other, names)?),
    };
    Some(json(now, what))
}

/// Returns the line of a bio that has completed.
pub fn completed(now: Instant, name: &str) -> String {
    json(now, What::Completed { rq: Cow::Borrowed(name) })
}

/// Returns the line of a task that has exited.
pub fn exited(now: Instant, task: u32) -> String {
    json(now, What::Exit { task })
}

fn json(now: Instant, what: What<'_>) -> String {
    let line = Line { t: now.since_start().as_nanos(), what };
    serde_json::to_string(&line).expect("a line is plain numbers and texts")
}
