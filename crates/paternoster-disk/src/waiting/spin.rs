//! Looking again and again whether something has come.

use std::hint;
use std::thread;

use paternoster::{Instant, Nanos};

/// A clock that goes on by so much between two readings was not ours: another thread, or another
/// machine on the same hardware, had the processor.
const JUMP: Nanos = Nanos::from_micros(20);

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// What was looked for.
    Something,
    /// Nothing, and it has been long enough.
    Nothing,
    /// The processor went to somebody else.
    Crowd,
}

/// Looks until something has come, or it has been long enough, or somebody else had the processor;
/// how long that took. Where others may want the processor it is offered to them between looks,
/// and that they take it is no reason to end.
pub(crate) fn spin(
    has_room: bool,
    clock: impl Fn() -> Instant,
    mut has_come: impl FnMut() -> bool,
    mut is_enough: impl FnMut(Instant) -> bool,
) -> (Seen, Nanos) {
    let began = clock();
    let mut last = began;
    let seen = loop {
        if has_come() {
            break Seen::Something;
        }
        if has_room {
            hint::spin_loop();
        } else {
            thread::yield_now();
        }
        let now = clock();
        if has_room && now.saturating_since(last) >= JUMP {
            break Seen::Crowd;
        }
        last = now;
        if is_enough(now) {
            break Seen::Nothing;
        }
    };
    (seen, last.saturating_since(began))
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
        let now = Cell::new(Instant::START);
        move || {
            now.set(now.get() + step);
            now.get()
        }
    }

    #[test]
    fn look_ends_with_what_comes_or_when_it_has_been_long_enough() {
        let mut asked = 0;
        let comes = || {
            asked += 1;
            asked == 5
        };
        let never = |_| false;
        assert_eq!(spin(true, clock(us(1)), comes, never), (Seen::Something, us(4)));
        // The clock says 1 µs when it begins.
        let end = Instant::START + us(1 + 20);
        let enough = |now| now >= end;
        assert_eq!(spin(true, clock(us(1)), || false, enough), (Seen::Nothing, us(20)));
    }

    #[test]
    fn loss_of_the_processor_ends_a_look_unless_it_was_offered() {
        let end = Instant::START + us(201);
        let enough = |now| now >= end;
        assert_eq!(spin(true, clock(us(20)), || false, enough), (Seen::Crowd, us(0)));
        assert_eq!(spin(false, clock(us(20)), || false, enough), (Seen::Nothing, us(200)));
    }
}
