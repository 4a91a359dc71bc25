//! Commands by their ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paternoster::Instant;

/// Commands by their ends; those of one end in the order in which they came here.
#[derive(Debug, Default)]
pub(super) struct Ends {
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    sequence: u64,
}

impl Ends {
    pub(super) fn push(&mut self, end: Instant, tag: u32) {
        self.sequence += 1;
        self.heap.push(Reverse((end, self.sequence, tag)));
    }

    /// The end of the next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((end, ..))| *end)
    }

    /// Takes the next one that ends by `now`, with its end.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, u32)> {
        let &Reverse((end, _, tag)) = self.heap.peek()?;
        (end <= now).then(|| {
            self.heap.pop();
            (end, tag)
        })
    }
}
