//! What ends, by when it does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paternoster::Instant;

/// What ends, by when it does; at one time in the order in which it came here.
#[derive(Debug)]
pub(crate) struct Ends<T> {
    heap: BinaryHeap<Reverse<(Instant, u64, T)>>,
    sequence: u64,
}

impl<T: Ord> Default for Ends<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }
}

impl<T: Ord> Ends<T> {
    pub(crate) fn push(&mut self, end: Instant, what: T) {
        self.sequence += 1;
        self.heap.push(Reverse((end, self.sequence, what)));
    }

    /// When the next one ends.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((end, ..))| *end)
    }

    /// Takes the next one that ends by `now`, with its end.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, T)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((end, _, what))| (end, what))
    }
}
