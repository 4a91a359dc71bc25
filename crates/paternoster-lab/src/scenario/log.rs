//! The log of a run: what the scheduler decided, a JSON object a line.

use paternoster::{Event, Instant};
use paternoster_trace as trace;

use super::names::Names;

/// The lines of a log so far.
#[derive(Debug, Default)]
pub struct Log {
    text: String,
}

impl Log {
    /// Returns the log as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Writes an event; completions are written bio by bio, by [`Log::completed`].
    pub(super) fn event(&mut self, now: Instant, event: Event, names: &Names) {
        if let Some(line) = trace::line(now, event, names) {
            self.push(&line);
        }
    }

    pub(super) fn completed(&mut self, now: Instant, name: &str) {
        self.push(&trace::completed(now, name, None));
    }

    pub(super) fn exited(&mut self, now: Instant, task: u32) {
        self.push(&trace::exited(now, task));
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}
