//! The log of a run: what the scheduler decided, a JSON object a line.

use std::collections::HashMap;

use paternoster::{Event, GroupId, Instant, IocId, MergeKind, QueueName};
use serde::Serialize;

use crate::scheduler_line::SchedulerLine;

/// The lines of a log so far.
#[derive(Debug, Default)]
pub struct Log {
    text: String,
}

/// What things are called in a log.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The requests', by the user data of their bios.
    pub(crate) requests: Vec<String>,
    /// The paths of groups.
    pub(crate) groups: HashMap<GroupId, String>,
    /// The tasks of I/O contexts.
    pub(crate) tasks: HashMap<IocId, u32>,
}

impl Names {
    pub(crate) fn request(&self, bio: u64) -> &str {
        &self.requests[usize::try_from(bio).expect("user data are indices")]
    }

    pub(crate) fn group(&self, group: GroupId) -> &str {
        &self.groups[&group]
    }

    /// A queue by the task that made it and `S` (sync) or `A` (async).
    pub(crate) fn queue(&self, queue: QueueName) -> String {
        format!("{}{}", self.tasks[&queue.ioc], if queue.sync { 'S' } else { 'A' })
    }
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
    #[serde(rename = "Q")]
    Queued { rq: &'a str },
    #[serde(rename = "M")]
    Merged { rq: &'a str, into: &'a str, kind: &'static str },
    #[serde(rename = "D")]
    Dispatched { rq: &'a str },
    #[serde(rename = "C")]
    Completed { rq: &'a str },
    #[serde(rename = "exit")]
    Exit { task: u32 },
    #[serde(untagged)]
    Scheduler(SchedulerLine<'a>),
}

impl Log {
    /// The log as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Notes an event; completions are told bio by bio, by [`Log::completed`].
    pub(crate) fn event(&mut self, now: Instant, event: Event, names: &Names) {
        let rq = |bio| names.request(bio);
        let what = match event {
            Event::Queued { bio, .. } => What::Queued { rq: rq(bio) },
            Event::Merged { bio, into, kind, .. } => {
                let kind = match kind {
                    MergeKind::Back => "back",
                    MergeKind::Front => "front",
                };
                What::Merged { rq: rq(bio), into: rq(into), kind }
            }
            Event::Joined { gone, into, .. } => {
                What::Merged { rq: rq(gone), into: rq(into), kind: "back" }
            }
            Event::Dispatched { rq: bio } => What::Dispatched { rq: rq(bio) },
            other => match SchedulerLine::new(other, names) {
                Some(line) => What::Scheduler(line),
                None => return,
            },
        };
        self.push(now, what);
    }

    pub(crate) fn completed(&mut self, now: Instant, name: &str) {
        self.push(now, What::Completed { rq: name });
    }

    pub(crate) fn exited(&mut self, now: Instant, task: u32) {
        self.push(now, What::Exit { task });
    }

    fn push(&mut self, now: Instant, what: What<'_>) {
        let line = Line { t: now.since_start().as_nanos(), what };
        let json = serde_json::to_string(&line).expect("a line is plain numbers and texts");
        self.text.push_str(&json);
        self.text.push('\n');
    }
}
