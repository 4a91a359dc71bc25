//! What the operator is told of the far server: at most a line a second.
//!
//! ```text
//!   told ──▶ waiting, one of each kind ──one a second──▶ ready ──▶ the log
//!               └── a newer one of its kind takes its place, and counts it
//! ```
//!
//! So the log stays small where a server hangs up thousands of times, and no kind of line is lost.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use crate::backend::Notice;

/// The least time between two lines.
const INTERVAL: Nanos = Nanos::from_millis(1_000);

/// Of what a line tells: of two that wait with the same subject the newer one is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Lost,
    Unreachable,
    Connected,
    GivenUp,
    Failing,
    Doubt,
    Quiesced,
    Changed,
}

#[derive(Debug)]
struct Line {
    subject: Subject,
    notice: Notice,
    /// Lines of the same subject that it has taken the place of.
    left_out: u64,
}

/// The lines.
#[derive(Debug, Default)]
pub(super) struct Notices {
    ready: Vec<Notice>,
    waiting: VecDeque<Line>,
    /// When the last one became ready.
    last: Option<Instant>,
    is_ending: bool,
}

impl Notices {
    /// Those that are ready at once.
    pub(super) fn ready(ready: Vec<Notice>) -> Self {
        Self { ready, ..Self::default() }
    }

    pub(super) fn info(&mut self, subject: Subject, text: String) {
        self.tell(subject, Notice::Info(text));
    }

    pub(super) fn warn(&mut self, subject: Subject, text: String) {
        self.tell(subject, Notice::Warning(text));
    }

    fn tell(&mut self, subject: Subject, notice: Notice) {
        let same = self.waiting.iter().position(|line| line.subject == subject);
        let older = same.and_then(|index| self.waiting.remove(index));
        let left_out = older.map_or(0, |line| line.left_out + 1);
        self.waiting.push_back(Line { subject, notice, left_out });
    }

    /// Nothing waits for its second any more.
    pub(super) fn end(&mut self) {
        self.is_ending = true;
    }

    /// When the next line becomes ready.
    pub(super) fn due(&self) -> Option<Instant> {
        self.waiting.front()?;
        Some(self.last.map_or(Instant::START, |last| last + INTERVAL))
    }

    /// Has the lines become ready that are due.
    pub(super) fn advance(&mut self, now: Instant) {
        while self.is_ending || self.due().is_some_and(|due| due <= now) {
            let Some(line) = self.waiting.pop_front() else { return };
            self.ready.push(line.into_notice());
            self.last = Some(now);
        }
    }

    pub(super) fn take(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.ready)
    }
}

impl Line {
    fn into_notice(self) -> Notice {
        let whole = |text| match self.left_out {
            0 => text,
            1 => format!("{text} (1 line like this was left out)"),
            many => format!("{text} ({many} lines like this were left out)"),
        };
        match self.notice {
            Notice::Info(text) => Notice::Info(whole(text)),
            Notice::Warning(text) => Notice::Warning(whole(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Nanos::from_millis(millis)
    }

    fn texts(notices: &mut Notices) -> Vec<String> {
        let text = |notice| match notice {
            Notice::Info(text) | Notice::Warning(text) => text,
        };
        notices.take().into_iter().map(text).collect()
    }

    #[test]
    fn there_is_a_line_a_second_and_it_counts_those_that_are_left_out() {
        let mut notices = Notices::default();
        let mut lines = Vec::new();
        for millis in 0..10_000 {
            notices.warn(Subject::Lost, format!("lost at {millis}"));
            notices.advance(at(millis));
            lines.extend(texts(&mut notices));
        }
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[0], "lost at 0");
        assert_eq!(lines[3], "lost at 3000 (999 lines like this were left out)");
    }

    #[test]
    fn no_subject_is_lost_behind_one_that_is_told_of_all_the_time() {
        let mut notices = Notices::default();
        let mut lines = Vec::new();
        for second in 0..4 {
            for _ in 0..100 {
                notices.warn(Subject::Lost, "lost".to_owned());
                notices.info(Subject::Connected, "connected".to_owned());
            }
            if second == 0 {
                notices.warn(Subject::Doubt, "in doubt".to_owned());
            }
            notices.advance(at(second * 1_000));
            lines.extend(texts(&mut notices));
        }
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_eq!(lines.iter().filter(|line| *line == "in doubt").count(), 1, "{lines:?}");
    }

    #[test]
    fn what_waits_is_due_and_at_the_end_at_once() {
        let mut notices = Notices::default();
        assert_eq!(notices.due(), None);
        notices.info(Subject::Lost, "a".to_owned());
        notices.advance(at(500));
        notices.warn(Subject::Failing, "b".to_owned());
        notices.warn(Subject::Doubt, "c".to_owned());
        notices.advance(at(600));
        assert_eq!((notices.due(), texts(&mut notices)), (Some(at(1_500)), vec!["a".to_owned()]));
        notices.end();
        notices.advance(at(601));
        assert_eq!(texts(&mut notices), ["b", "c"]);
        assert_eq!(notices.due(), None);
    }
}
