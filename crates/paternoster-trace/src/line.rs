//! The line of an event: what became of a request, or what the scheduler says of itself.

use std::borrow::Cow;

use paternoster::{Event, Instant, MergeKind};
use serde::Serialize;

use crate::about::about;
use crate::names::Names;
use crate::scheduler_line::SchedulerLine;

#[derive(Serialize)]
struct Line<'a> {
    t: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
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
    #[serde(rename = "dropped")]
    Dropped { events: u64 },
    #[serde(untagged)]
    Scheduler(SchedulerLine<'a>),
}

/// Returns the line of an event, if there are such lines and it is wanted; completions are told bio
/// by bio, by [`completed`].
pub fn line(now: Instant, event: Event, names: &impl Names) -> Option<String> {
    let tenant = about(event, names).and_then(|whose| names.tenant(whose));
    if !names.wants(tenant.as_deref()) {
        return None;
    }
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
    Some(json(now, tenant.as_deref(), what))
}

/// Returns the line of a bio that has completed, of that tenant if lines name tenants.
pub fn completed(now: Instant, name: &str, tenant: Option<&str>) -> String {
    json(now, tenant, What::Completed { rq: Cow::Borrowed(name) })
}

/// Returns the line of a task that has exited.
pub fn exited(now: Instant, task: u32) -> String {
    json(now, None, What::Exit { task })
}

/// Returns the line that says that so many events before it are missing.
pub fn dropped(now: Instant, events: u64) -> String {
    json(now, None, What::Dropped { events })
}

fn json(now: Instant, tenant: Option<&str>, what: What<'_>) -> String {
    let line = Line { t: now.since_start().as_nanos(), tenant, what };
    serde_json::to_string(&line).expect("a line is plain numbers and texts")
}
