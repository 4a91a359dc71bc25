//! How many pieces touch each block.
//!
//! ```text
//!   pieces      ├──────────┤                   block     0    3    5    8
//!                    ├─────────┤               count     1    2    1    0      a step each
//!   blocks      0    3     5   8
//! ```
//!
//! Kept as the steps of that function, so that a piece costs a look for each step that it covers,
//! which are no more than its blocks, and the search for its ends, however many others there are.

use std::collections::BTreeMap;
use std::ops::Range;

/// The number of pieces on each block.
#[derive(Debug, Default)]
pub(super) struct Touching {
    /// From each of these blocks on, up to the next, that many. Neighbours differ; before the first
    /// there are none.
    steps: BTreeMap<u64, usize>,
    /// Steps that were searched for or changed.
    looks: u64,
}

impl Touching {
    /// A piece touches those blocks.
    pub(super) fn add(&mut self, blocks: Range<u64>) {
        self.change(blocks, |count| count + 1);
    }

    /// A piece that touched those blocks has gone.
    pub(super) fn remove(&mut self, blocks: Range<u64>) {
        self.change(blocks, |count| count.checked_sub(1).expect("it was added"));
    }

    /// Returns how many pieces touch a block.
    pub(super) fn count(&self, block: u64) -> usize {
        self.steps.range(..=block).next_back().map_or(0, |(_, &count)| count)
    }

    /// Returns how many steps were searched for or changed, in all.
    #[cfg(test)]
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    fn change(&mut self, blocks: Range<u64>, change: impl Fn(usize) -> usize) {
        if blocks.is_empty() {
            return;
        }
        let ends = [blocks.start, blocks.end];
        for end in ends {
            let count = self.count(end);
            self.steps.entry(end).or_insert(count);
        }
        for count in self.steps.range_mut(blocks).map(|(_, count)| count) {
            *count = change(*count);
            self.looks += 1;
        }
        for end in ends {
            let before = self.steps.range(..end).next_back().map_or(0, |(_, &count)| count);
            if self.steps[&end] == before {
                self.steps.remove(&end);
            }
            self.looks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_a_naive_count() {
        let (mut touching, mut pieces) = (Touching::default(), Vec::new());
        for turn in 0..3000_u64 {
            // More come than go, and then more go than come.
            let comes = turn % 4 != if turn < 1500 { 3 } else { turn % 3 };
            if comes || pieces.is_empty() {
                let start = turn * 7 % 40;
                let piece = start..start + turn * turn % 6;
                touching.add(piece.clone());
                pieces.push(piece);
            } else {
                let one = usize::try_from(turn * 11).expect("small") % pieces.len();
                touching.remove(pieces.swap_remove(one));
            }
            for block in 0..50 {
                let naive = pieces.iter().filter(|piece| piece.contains(&block)).count();
                assert_eq!(touching.count(block), naive, "block {block}, turn {turn}");
            }
            assert!(touching.steps.len() <= 2 * pieces.len(), "turn {turn}");
        }
        for piece in pieces {
            touching.remove(piece);
        }
        assert!(touching.steps.is_empty());
    }
}
