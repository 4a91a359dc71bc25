//! Busy polling: before a thread sleeps it looks for a moment whether something comes.
//!
//! A client that asks for one thing at a time has its next request there a few microseconds after
//! its answer. To go to sleep meanwhile, and to be woken, takes longer than that. How long to look
//! is learned from how long the waits before were:
//!
//! ```text
//!   the wait was 12 µs        ─▶ the next look takes up to 24 µs      it grows at once
//!   nothing came within 24 µs ─▶ the next look takes up to 21 µs      it shrinks slowly
//!   somebody else had the processor meanwhile ─▶ no look for 10 ms
//! ```
//!
//! So a thread that has nothing to do for long does not look at all, nor does one that has the only
//! processor: whoever is to send something could not run. Nor one with many commands in flight:
//! they share what a sleep costs.

use std::hint;
use std::thread::available_parallelism;

use paternoster::{Instant, Nanos};

/// A look takes so long at most. Longer waits are slept through.
const MOST: Nanos = Nanos::from_micros(50);

/// Where more commands were done since the wait before, they share what sleeping costs, and what
/// comes during a sleep is then taken in together, which costs less than one by one.
const FEW: u32 = 4;

/// A shorter look is not worth its system call.
const LEAST: Nanos = Nanos::from_micros(2);

/// A clock that goes on by so much between two readings was not ours: another thread, or another
/// machine on the same hardware, had the processor.
const JUMP: Nanos = Nanos::from_micros(20);

/// So long nothing is looked for after that.
const CROWDED: Nanos = Nanos::from_millis(10);

/// Whether a thread looks for what comes before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// It sleeps at once.
    Interrupt,
    /// It looks as long as it has learned that this is worth it.
    Auto,
}

impl Polling {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Auto, Self::Interrupt];

    /// Its name in configurations and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Auto => "auto",
        }
    }
}

/// What busy polling has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyPollStats {
    /// Looks before a sleep.
    pub looks: u64,
    /// Looks in which something came.
    pub found: u64,
    /// The time of all looks.
    pub looked: Nanos,
    /// Looks in which somebody else had the processor.
    pub crowded: u64,
    /// How long the next look takes at most.
    pub next: Nanos,
}

/// The busy polling of one thread.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    polling: Polling,
    /// Whether somebody else could run meanwhile.
    has_room: bool,
    /// How long the next look would take at most.
    limit: Nanos,
    /// Nothing is looked for until then.
    crowded_until: Instant,
    stats: BusyPollStats,
}

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Something,
    /// It is `until`.
    Due,
    Nothing,
    /// The processor went to somebody else.
    Crowd,
}

impl BusyPoll {
    /// For a thread that may run on all of the process's processors; so many others of the process
    /// have work when it has.
    pub(crate) fn new(polling: Polling, beside: usize) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self::on(polling, processors.saturating_sub(beside))
    }

    fn on(polling: Polling, processors: usize) -> Self {
        Self {
            polling,
            has_room: processors > 1,
            limit: Nanos::ZERO,
            crowded_until: Instant::START,
            stats: BusyPollStats::default(),
        }
    }

    /// Returns whether a look is worth it at that moment, after so many commands were done since
    /// the wait before.
    pub(crate) fn is_worth_it(&self, now: Instant, answered: u32) -> bool {
        answered <= FEW && self.limit() >= LEAST && now >= self.crowded_until
    }

    /// How long the next look takes at most.
    fn limit(&self) -> Nanos {
        let looks = self.polling == Polling::Auto && self.has_room && self.limit >= LEAST;
        if looks { self.limit } else { Nanos::ZERO }
    }

    pub(crate) fn polling(&self) -> Polling {
        self.polling
    }

    /// Looks until something has come, it is `until`, or it has been long enough. Returns whether
    /// there is something to do.
    pub(crate) fn look(
        &mut self,
        until: Option<Instant>,
        clock: impl Fn() -> Instant,
        mut has_come: impl FnMut() -> bool,
    ) -> bool {
        let began = clock();
        let end = until.map_or(began + self.limit, |until| until.min(began + self.limit));
        let mut last = began;
        let seen = loop {
            if has_come() {
                break Seen::Something;
            }
            hint::spin_loop();
            let now = clock();
            if now.saturating_since(last) >= JUMP {
                self.crowded_until = now + CROWDED;
                break Seen::Crowd;
            }
            last = now;
            if now >= end {
                break if until == Some(end) { Seen::Due } else { Seen::Nothing };
            }
        };
        self.stats.looks += 1;
        self.stats.found += u64::from(seen == Seen::Something);
        self.stats.crowded += u64::from(seen == Seen::Crowd);
        self.stats.looked += last.saturating_since(began);
        matches!(seen, Seen::Something | Seen::Due)
    }

    /// Notes how long a wait was, whether it was looked or slept through.
    pub(crate) fn waited(&mut self, wait: Nanos) {
        let shrunk = self.limit.saturating_sub(Nanos::new(self.limit.as_nanos() / 8 + 1));
        let wanted = if wait <= MOST { MOST.min(wait + wait) } else { Nanos::ZERO };
        self.limit = shrunk.max(wanted);
    }

    pub(crate) fn stats(&self) -> BusyPollStats {
        BusyPollStats { next: self.limit(), ..self.stats }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const fn us(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    /// A clock that goes on by `step` with each reading.
    fn clock(step: Nanos) -> impl Fn() -> Instant {
        let now = Cell::new(Instant::START + us(1000));
        move || {
            now.set(now.get() + step);
            now.get()
        }
    }

    fn after(waits: &[u64]) -> BusyPoll {
        let mut poll = BusyPoll::on(Polling::Auto, 2);
        for &wait in waits {
            poll.waited(us(wait));
        }
        poll
    }

    fn is_worth_it(poll: &BusyPoll) -> bool {
        poll.is_worth_it(Instant::START + us(1000), FEW)
    }

    #[test]
    fn one_short_wait_is_enough_to_look_for_twice_as_long() {
        assert!(!is_worth_it(&after(&[])));
        assert_eq!(after(&[12]).stats().next, us(24));
        assert_eq!(after(&[12, 30]).stats().next, us(50), "no longer than 50 µs");
        assert_eq!(after(&[51]).stats().next, us(0), "what takes longer is slept through");
    }

    #[test]
    fn looks_in_vain_end_after_a_while() {
        let mut poll = after(&[50]);
        let mut vain = 0;
        while is_worth_it(&poll) {
            poll.waited(us(1_000_000));
            vain += 1;
        }
        assert!((10..40).contains(&vain), "{vain}");
        let slow: Vec<_> = [&[25][..], &[1_000_000; 3]].concat();
        assert!(after(&slow).stats().next > us(30), "three waits do not end it");
    }

    #[test]
    fn look_ends_with_what_comes_or_at_its_limit_or_when_something_is_due() {
        let mut poll = after(&[10]);
        let mut asked = 0;
        assert!(poll.look(None, clock(us(1)), || {
            asked += 1;
            asked == 5
        }));
        assert!(!poll.look(None, clock(us(1)), || false));
        assert_eq!((poll.stats.looks, poll.stats.found, poll.stats.looked), (2, 1, us(4 + 20)));
        assert!(poll.look(Some(Instant::START + us(1004)), clock(us(1)), || false));
        assert_eq!(poll.stats.looked, us(4 + 20 + 3));
    }

    #[test]
    fn who_loses_the_processor_does_not_look_for_10_ms() {
        let mut poll = after(&[25]);
        assert!(!poll.look(None, clock(us(20)), || false));
        assert_eq!(poll.stats.crowded, 1);
        let at = |micros| Instant::START + us(micros);
        assert!(!poll.is_worth_it(at(1040 + 9_999), 0));
        assert!(poll.is_worth_it(at(1040 + 10_000), 0));
        assert!(!poll.is_worth_it(at(1040 + 10_000), FEW + 1), "many share a sleep");
    }

    #[test]
    fn nobody_looks_on_one_processor_or_where_it_is_turned_off() {
        for mut poll in [BusyPoll::on(Polling::Auto, 1), BusyPoll::on(Polling::Interrupt, 64)] {
            poll.waited(us(10));
            assert!(!is_worth_it(&poll));
            assert_eq!(poll.stats(), BusyPollStats::default());
        }
    }
}
