//! Linux's statistics of completion times: count, mean, least and greatest of each class, in
//! windows.
//!
//! ```text
//!      ├──── 100 ms ────┤        ├──── 100 ms ────┤
//!      x  x x  x   x x  ┊        x   x  x x       ┊
//!      └ first completion        └ the next one after a window's end starts the next window
//! ```
//!
//! At a window's end each class that has samples gets what the window says, and nothing of what was
//! before; the others keep what they had. So an estimate jumps from window to window, and one that
//! is too long in a window is only mended by another window (see [`OfMean`](super::OfMean)).

use super::class::PollClass;
use crate::time::{Instant, Nanos};

/// How long a window is.
const WINDOW: Nanos = Nanos::from_millis(100);

/// Completion times of a class in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowTimes {
    /// How many there were.
    pub samples: u64,
    /// All of them together.
    sum: Nanos,
    /// The shortest; zero where there is none.
    pub min: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl WindowTimes {
    /// Their mean, rounded down; zero where there is none.
    pub const fn mean(&self) -> Nanos {
        match self.sum.as_nanos().checked_div(self.samples) {
            Some(mean) => Nanos::new(mean),
            None => Nanos::ZERO,
        }
    }

    fn add(&mut self, time: Nanos) {
        self.min = if self.samples == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.sum += time;
        self.samples += 1;
    }
}

#[derive(Debug, Default)]
pub(super) struct Windows {
    end: Option<Instant>,
    current: [WindowTimes; PollClass::COUNT],
    published: [WindowTimes; PollClass::COUNT],
}

impl Windows {
    /// What the last window said that had samples of the class.
    pub(super) fn published(&self, class: PollClass) -> &WindowTimes {
        &self.published[class.index()]
    }

    pub(super) fn add(&mut self, class: PollClass, time: Nanos, now: Instant) {
        self.publish(now);
        self.end.get_or_insert(now + WINDOW);
        self.current[class.index()].add(time);
    }

    /// Ends the window if it is over.
    pub(super) fn publish(&mut self, now: Instant) {
        if self.end.is_none_or(|end| now < end) {
            return;
        }
        self.end = None;
        for (current, published) in self.current.iter_mut().zip(&mut self.published) {
            if current.samples > 0 {
                *published = std::mem::take(current);
            }
        }
    }
}
