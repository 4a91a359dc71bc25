//! The second reading of a log: what is next, and when.

use std::sync::Arc;

use paternoster::Nanos;
use paternoster_intake::iolog::{Line, Said, Version, parse};

use super::source::Lines;
use super::{IoLog, LogFile};
use crate::fio::error::{Mistake, Place};
use crate::fio::{Io, IoOp};
use paternoster_model::{Draws, Who};

/// A log that is being replayed.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    log: IoLog,
    lines: Lines,
    /// The name that the last line had, with its file.
    last: Option<(String, LogFile)>,
    /// Until when the last `wait` of version 2 is, from the start.
    waited: Nanos,
    /// A file was opened.
    has_opened: bool,
    priorities: Draws,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// When, from the start of the log.
    pub(crate) at: Nanos,
    pub(crate) entry: Entry,
}

/// What a line of a log has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Io(Io),
    /// The file of that index is opened.
    Open(usize),
    /// Nothing but waiting.
    Wait,
}

/// From when times of a log count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// They do not.
    None,
    /// From the start.
    FromStart,
    /// From the step before: where one is late, so are all behind it.
    FromLast,
}

impl Replay {
    /// The log from its first line on.
    pub(crate) fn new(log: &IoLog) -> Self {
        Self {
            lines: Lines::new(Arc::clone(&log.source)),
            last: None,
            waited: Nanos::ZERO,
            has_opened: false,
            // As streams of I/O have them.
            priorities: Draws::new(log.seed, Who::Job, 5),
            log: log.clone(),
        }
    }

    pub(crate) fn timing(&self) -> Timing {
        match self.log.version {
            _ if self.log.rules.no_stall => Timing::None,
            Version::Two => Timing::FromStart,
            Version::Three => Timing::FromLast,
        }
    }

    /// How many lines were read of how many.
    pub(crate) fn work(&self) -> (u64, u64) {
        (self.lines.number().into(), self.log.lines.into())
    }

    /// What is next; nothing at the end. A mistake is that the log has changed since its check.
    pub(crate) fn next(&mut self) -> Result<Option<Step>, Mistake> {
        loop {
            let is_first = self.lines.number() == 0;
            let line = match self.lines.next() {
                Ok(Some(_)) if is_first => continue,
                Ok(Some(line)) => parse(line, self.log.version),
                Ok(None) => return self.end(),
                Err(no_line) => return Err(mistake(&self.log, &self.lines, 1, no_line.what())),
            };
            // The line lies in `lines`: what it needs of the others is put down here.
            let found = match line {
                Err(wrong) => Err((wrong.column, wrong.what)),
                Ok(line) => {
                    let file = find(&mut self.last, &self.log, line.name);
                    check(&line, file, &self.log).map(|()| (line.stamp, line.said, file))
                }
            };
            let (stamp, said, file) = match found {
                Ok(found) => found,
                Err((column, what)) => {
                    return Err(mistake(&self.log, &self.lines, column, changed(&what)));
                }
            };
            if let Some(step) = self.step(stamp, said, file) {
                return Ok(Some(step));
            }
        }
    }

    /// The log ends where it ended when it was checked, or it has changed.
    fn end(&self) -> Result<Option<Step>, Mistake> {
        let (bytes, wanted) = (self.lines.bytes(), self.log.bytes);
        if bytes != wanted {
            let what = format!("the log ends here, after {bytes} bytes instead of {wanted}");
            return Err(mistake(&self.log, &self.lines, 1, changed(&what)));
        }
        Ok(None)
    }

    fn step(&mut self, stamp: Option<u64>, said: Said, file: Option<LogFile>) -> Option<Step> {
        let rules = &self.log.rules;
        if let Said::Wait(ms) = said {
            self.waited = self.waited.max(rules.time(ms.saturating_mul(1000)));
        }
        let at = stamp.map_or(self.waited, |us| rules.time(us));
        let entry = match (said, file) {
            (Said::Io { op, .. }, _) if rules.skips(op) => return None,
            (Said::Io { op, offset, bytes }, Some(file)) => {
                let offset = rules.position(offset);
                let io_prio = self.log.priorities.draw(op, bytes, &mut self.priorities);
                Entry::Io(Io { op, file: file.index, offset, bytes, io_prio })
            }
            // What is redirected is one file, which is opened once.
            (Said::Open, _) if rules.redirect.is_some() && self.has_opened => Entry::Wait,
            (Said::Open, Some(file)) => {
                self.has_opened = true;
                Entry::Open(file.index)
            }
            _ => Entry::Wait,
        };
        Some(Step { at, entry })
    }
}

/// The file of that name.
fn find(last: &mut Option<(String, LogFile)>, log: &IoLog, name: &str) -> Option<LogFile> {
    match last {
        Some((known, file)) if known == name => Some(*file),
        _ => {
            let file = *log.files.get(name)?;
            *last = Some((name.to_owned(), file));
            Some(file)
        }
    }
}

/// Checks that the line is one for which the run was made: it knows the file, as far as the I/O
/// reaches, and what is done with it.
fn check(line: &Line<'_>, file: Option<LogFile>, log: &IoLog) -> Result<(), (u32, String)> {
    let far = || Err((line.column, format!("{} was not there, or not that far", line.name)));
    match (line.said, file) {
        (Said::Wait(_), _) | (Said::Add | Said::Open | Said::Close, Some(_)) => Ok(()),
        (_, None) => far(),
        (Said::Io { op, .. }, _) if log.rules.skips(op) => Ok(()),
        (Said::Io { op, offset, bytes }, Some(file)) => {
            if log.rules.position(offset).saturating_add(bytes) > file.end {
                return far();
            }
            match op {
                IoOp::Read | IoOp::Write | IoOp::Trim if !log.directions[op as usize] => {
                    let name = ["read", "write", "trim"][op as usize];
                    Err((line.column, format!("the log had no {name}")))
                }
                _ => Ok(()),
            }
        }
    }
}

fn changed(what: &str) -> String {
    format!("{what} (the log has changed since it was checked)")
}

fn mistake(log: &IoLog, lines: &Lines, column: u32, what: String) -> Mistake {
    let place = Place { file: Arc::clone(&log.path), line: lines.number(), column, argument: None };
    Mistake { place, what }
}
