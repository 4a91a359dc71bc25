//! Who may have a request made now, and when those who may not should try again.
//!
//! Submitters that were turned away wait with the caller, in order of arrival. They are called
//! back in batches: waking one for each completion breaks up the sequential streams of those
//! that compete.

use crate::request::{Bio, Op};

/// The part of the limit that must be free before waiters are called.
const WAKE_SHARE: u32 = 8;

/// Linux's bound on requests with a scheduler.
const NR_REQUESTS: u32 = 256;

#[derive(Debug)]
pub(super) struct Admission {
    /// Requests that may exist at once; none is no admission: every bio enters.
    pub(super) nr_requests: Option<u32>,
    /// Requests that exist and may merge or wait in the scheduler.
    admitted: u32,
    /// Those of them that are not reads.
    non_reads: u32,
    turned_away: Option<TurnedAway>,
}

/// Bios that were turned away, until their submitters are called.
#[derive(Debug)]
struct TurnedAway {
    /// The least limit that turned one away.
    limit: u32,
    /// Requests freed since the first was turned away.
    freed: u32,
}

impl Admission {
    pub(super) fn new() -> Self {
        Self { nr_requests: Some(NR_REQUESTS), admitted: 0, non_reads: 0, turned_away: None }
    }

    /// The bound that keeps `bio` from becoming a request now; `non_read_limit` is the scheduler's.
    #[inline]
    pub(super) fn refusal(&self, bio: &Bio, non_read_limit: Option<u32>) -> Option<u32> {
        let all = self.nr_requests.filter(|&limit| self.admitted >= limit);
        let of_scheduler = || non_read_limit.filter(|&limit| self.non_reads >= limit);
        all.or_else(|| if bio.op == Op::Read { None } else { of_scheduler() })
    }

    /// A bio was told to come again, for that bound.
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

    /// Whether those who were turned away should try again now; asked once after each event
    /// that frees requests. At the limit there are enough of them to come to this.
    #[inline]
    pub(super) fn call_waiters(&mut self) -> bool {
        let Some(TurnedAway { limit, freed }) = self.turned_away else { return false };
        let call = freed >= (limit / WAKE_SHARE).max(1);
        if call {
            self.turned_away = None;
        }
        call
    }

    /// The limits have changed: whoever waits should try again at the next chance.
    pub(super) fn limits_changed(&mut self) {
        if let Some(turned_away) = &mut self.turned_away {
            turned_away.limit = 0;
        }
    }
}
