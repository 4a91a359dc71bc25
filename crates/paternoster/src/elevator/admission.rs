//! Admission: how many requests may exist, and when bios that were turned away are submitted again.
//!
//! Submitters that were turned away wait with the caller, in order of arrival. They are woken in
//! batches, because waking one for each completion would break up the sequential streams of
//! submitters that compete.

use crate::request::Op;
use crate::scheduler::Existing;

/// Waiters are woken once this part of the limit, an eighth, is free.
const WAKE_SHARE: u32 = 8;

/// Linux's bound on requests with a scheduler.
const NR_REQUESTS: u32 = 256;

#[derive(Debug)]
pub(super) struct Admission {
    /// How many requests may exist at once. None is no admission: every bio enters.
    pub(super) nr_requests: Option<u32>,
    /// Requests that exist.
    admitted: u32,
    /// How many of them are not reads.
    non_reads: u32,
    turned_away: Option<TurnedAway>,
}

/// Bios that were turned away and whose submitters were not woken yet.
#[derive(Debug)]
struct TurnedAway {
    /// The lowest limit that turned one away.
    limit: u32,
    /// Requests freed since the first was turned away.
    freed: u32,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self { nr_requests: Some(NR_REQUESTS), admitted: 0, non_reads: 0, turned_away: None }
    }

    /// Returns how many requests exist and may; none if every bio enters.
    #[inline]
    pub(super) fn existing(&self) -> Option<Existing> {
        let Self { admitted: requests, non_reads, .. } = *self;
        self.nr_requests.map(|nr_requests| Existing { nr_requests, requests, non_reads })
    }

    /// Notes that a bio was turned away at that bound.
    #[cold]
    #[inline(never)]
    pub(super) fn turn_away(&mut self, limit: u32) {
        let before = self.turned_away.get_or_insert(TurnedAway { limit, freed: 0 });
        before.limit = before.limit.min(limit);
    }

    #[inline]
    pub(super) fn made(&mut self, op: Op) {
        self.admitted += 1;
        self.non_reads += u32::from(op != Op::Read);
    }

    #[inline]
    pub(super) fn freed(&mut self, op: Op) {
        self.admitted -= 1;
        self.non_reads -= u32::from(op != Op::Read);
        if let Some(turned_away) = &mut self.turned_away {
            turned_away.freed += 1;
        }
    }

    /// Returns whether submitters that were turned away should submit again now, once for each time
    /// that it is due. Call it once after each event that frees requests.
    #[inline]
    pub(super) fn take_wake_up(&mut self) -> bool {
        let Some(TurnedAway { limit, freed }) = self.turned_away else { return false };
        let is_due = freed >= (limit / WAKE_SHARE).max(1);
        if is_due {
            self.turned_away = None;
        }
        is_due
    }

    /// Notes that the limits have changed: waiters should submit again after the next event.
    pub(super) fn limits_changed(&mut self) {
        if let Some(turned_away) = &mut self.turned_away {
            turned_away.limit = 0;
        }
    }
}
