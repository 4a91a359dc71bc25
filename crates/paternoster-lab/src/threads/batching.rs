//! What a thread hands over together, and what it takes back together: `iodepth_batch`,
//! `iodepth_low` and `iodepth_batch_complete_*`.
//!
//! ```text
//!   begin ──▶ begun ──▶ handed over with one call ──▶ complete ──▶ taken back
//!             until it is a batch, or the             until least are complete
//!             thread is full, waits or sleeps
//!
//!   depth   16 ─▄▄──────▄▄─
//!               █ █▄    █ █▄
//!   low      4 ─█───█▄──█───█▄   full: takes back until no more than low are under way
//! ```
//!
//! fio's HOWTO says what the options are. What it leaves open is as fio 3.33 was seen to do it
//! (`tests/data/fio-3.33/batches.txt`): I/Os count towards the next batch also if they left early,
//! as the thread was full; at the end all are taken back at once.

use paternoster::{Instant, Nanos, Op};

use crate::fio::Batches;
use crate::sim::{Action, Io};

/// An I/O that is complete and not taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Complete {
    /// Its key among the outstanding.
    pub(super) key: usize,
    pub(super) submitted: Instant,
    /// When it entered the scheduler.
    pub(super) entered: Instant,
}

/// What comes of looking at what is complete.
#[derive(Clone, Debug)]
pub(super) enum Taking {
    /// These are taken back, in the order of completion.
    Taken(Vec<Complete>),
    /// Too few are.
    Not(Action),
}

/// What a thread hands over together, and what it takes back together.
#[derive(Debug)]
pub(super) struct Batching {
    rules: Batches,
    /// I/Os that are begun and not handed over.
    begun: Vec<Io>,
    /// I/Os begun since there was a whole batch.
    since_batch: u32,
    /// I/Os that are complete and not taken back.
    complete: Vec<Complete>,
    /// Whether it was full, and more than `low` are under way since.
    drains: bool,
    /// Whether it sleeps: then each is taken back as it completes.
    sleeps: bool,
    /// Whether it begins no more.
    ends: bool,
    /// Since when it polls.
    polls_since: Option<Instant>,
}

impl Batching {
    pub(super) fn new(rules: Batches) -> Self {
        Self {
            rules,
            begun: vec![],
            since_batch: 0,
            complete: vec![],
            drains: false,
            sleeps: false,
            ends: false,
            polls_since: None,
        }
    }

    /// Begins an I/O. Returns whether it makes a whole batch. A sync ends one.
    pub(super) fn begin(&mut self, io: Io) -> bool {
        self.begun.push(io);
        self.since_batch += 1;
        let is_batch = self.since_batch >= self.rules.submit || io.op == Op::Flush;
        if is_batch {
            self.since_batch = 0;
        }
        is_batch
    }

    /// Hands over what was begun. Returns how many that is, and the call.
    pub(super) fn hand_over(&mut self) -> Option<(u32, Action)> {
        let count = u32::try_from(self.begun.len()).expect("a depth is in u32");
        let action = match count {
            0 => return None,
            1 => Action::Submit(self.begun.pop().expect("there is one")),
            _ => Action::SubmitAll(std::mem::take(&mut self.begun)),
        };
        Some((count, action))
    }

    /// Whether it begins no more until some are taken back: it is full, or was and has not come
    /// down to `low`.
    pub(super) fn holds_back(&mut self, is_full: bool, outstanding: usize) -> bool {
        self.drains = is_full || (self.drains && outstanding > self.rules.low as usize);
        self.drains
    }

    /// Whether each I/O is taken back as it completes. Where one makes a call and one is waited
    /// for, that is no other than to take them back when the thread is asked.
    pub(super) fn takes_each(&self) -> bool {
        let Batches { submit, complete_min, complete_max, .. } = self.rules;
        self.sleeps || (submit, complete_min, complete_max) == (1, 1, 1)
    }

    /// An I/O has completed; it is taken back later.
    pub(super) fn completed(&mut self, complete: Complete) {
        self.complete.push(complete);
    }

    /// Takes back what is complete, if that is enough, or waits for it.
    pub(super) fn take(&mut self, now: Instant, outstanding: usize) -> Taking {
        if self.takes_each() {
            return Taking::Not(self.wait(now, 1));
        }
        let Batches { complete_min, complete_max, .. } = self.rules;
        let (least, most) = if self.ends {
            (outstanding, outstanding)
        } else {
            (complete_min as usize, complete_max as usize)
        };
        let least = least.min(outstanding);
        let count = self.complete.len();
        if count < least {
            return Taking::Not(self.wait(now, least - count));
        }
        Taking::Taken(self.complete.drain(..most.min(count)).collect())
    }

    /// It begins no more. Returns whether all that are under way count as taken back with one call
    /// from now on, though each is taken back as it completes.
    pub(super) fn end(&mut self) -> bool {
        let did_before = std::mem::replace(&mut self.ends, true);
        !did_before && self.are_taken_together()
    }

    /// Whether they do.
    pub(super) fn are_taken_together(&self) -> bool {
        self.ends && self.takes_each()
    }

    /// Whether something is begun and not handed over.
    pub(super) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// It goes to sleep. Returns what is complete.
    pub(super) fn sleep(&mut self) -> Vec<Complete> {
        self.sleeps = true;
        std::mem::take(&mut self.complete)
    }

    /// It is asked again. Returns for how long it has polled.
    pub(super) fn go_on(&mut self, now: Instant) -> Nanos {
        self.sleeps = false;
        self.polls_since.take().map_or(Nanos::ZERO, |since| now.saturating_since(since))
    }

    fn wait(&mut self, now: Instant, missing: usize) -> Action {
        if self.rules.polls {
            self.polls_since = Some(now);
            return Action::Poll;
        }
        match u32::try_from(missing).expect("a depth is in u32") {
            0 | 1 => Action::Wait,
            missing => Action::WaitFor(missing),
        }
    }
}
