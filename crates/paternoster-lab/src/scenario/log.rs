//! The log of a run: what the scheduler decided, a JSON object a line.

use paternoster::{Event, Instant, MergeKind};
use serde::Serialize;

use super::names::Names;
use super::scheduler_line::SchedulerLine;

/// The lines of a log so far.
#[derive(Debug, Default)]
pub struct Log {
    text: String,
}

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
    Queued { rq: &'a str },
    #[serde(rename = "M")]
    Merged { rq: &'a str, into: &'a str, kind: &'static str },
    #[serde(rename = "D")]
    Dispatched { rq: &'a str },
    #[serde(rename = "R")]
    Requeued { rq: &'a str },
    #[serde(rename = "C")]
    Completed { rq: &'a str },
    #[serde(rename = "exit")]
    Exit { task: u32 },
    #[serde(untagged)]
    Scheduler(SchedulerLine<'a>),
}

impl Log {
    /// Returns the log as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Writes an event; completions are written bio by bio, by [`Log::completed`].
    pub(super) fn event(&mut self, now: Instant, event: Event, names: &Names) {
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
            other => match SchedulerLine::new(other, names) {
                Some(line) => What::Scheduler(line),
                None => return,
            },
        };
        self.push(now, what);
    }

    pub(super) fn completed(&mut self, now: Instant, name: &str) {
        self.push(now, What::Completed { rq: name });
    }

    pub(super) fn exited(&mut self, now: Instant, task: u32) {
        self.push(now, What::Exit { task });
    }

    fn push(&mut self, now: Instant, what: What<'_>) {
        let line = Line { t: now.since_start().as_nanos(), what };
        let json = serde_json::to_string(&line).expect("a line is plain numbers and texts");
        self.text.push_str(&json);
        self.text.push('\n');
    }
}
