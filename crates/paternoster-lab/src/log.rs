//! The log of a run: what the scheduler decided, a JSON object a line.

use paternoster::{Direction, Event, Instant, MergeKind};
use serde::Serialize;

/// The lines of a log so far.
#[derive(Debug, Default)]
pub struct Log {
    text: String,
}

#[derive(Default, Serialize)]
struct Line<'a> {
    t: u64,
    ev: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rq: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    into: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prio: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starved: Option<u32>,
}

impl Log {
    /// The log as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Notes what the scheduler said of itself; `names` are the bios'. Completions are told bio
    /// by bio, by [`Log::completed`].
    pub(crate) fn event(&mut self, now: Instant, event: Event, names: &[String]) {
        let name = |user_data: u64| usize::try_from(user_data).ok().map(|i| names[i].as_str());
        let line = match event {
            Event::Queued { bio, .. } => Line { ev: "Q", rq: name(bio), ..Line::default() },
            Event::Merged { bio, into, kind, .. } => {
                let kind = match kind {
                    MergeKind::Back => "back",
                    MergeKind::Front => "front",
                };
                merge(name(bio), name(into), kind)
            }
            Event::Joined { gone, into, .. } => merge(name(gone), name(into), "back"),
            Event::Dispatched { rq } => Line { ev: "D", rq: name(rq), ..Line::default() },
            Event::Batch { direction, class, starved, .. } => Line {
                ev: "batch",
                dir: Some(match direction {
                    Direction::Read => "R",
                    Direction::Write => "W",
                }),
                prio: Some(class as u8),
                starved: Some(starved),
                ..Line::default()
            },
            _ => return,
        };
        self.push(now, &line);
    }

    pub(crate) fn completed(&mut self, now: Instant, name: &str) {
        self.push(now, &Line { ev: "C", rq: Some(name), ..Line::default() });
    }

    fn push(&mut self, now: Instant, line: &Line<'_>) {
        let line = Line { t: now.since_start().as_nanos(), ..*line };
        let json = serde_json::to_string(&line).expect("a line is plain numbers and texts");
        self.text.push_str(&json);
        self.text.push('\n');
    }
}

fn merge<'a>(rq: Option<&'a str>, into: Option<&'a str>, kind: &'a str) -> Line<'a> {
    Line { ev: "M", rq, into, kind: Some(kind), ..Line::default() }
}
