//! The blocks of a file that a random job, which visits each once in a pass, has not visited yet.
//!
//! ```text
//!   one size for all   a drawn permutation of the blocks
//!   several sizes      a block is drawn; the next free one from there on, around the end, is
//!                      taken, and those behind it for the size, up to the next visited one
//!
//!     drawn ─┐             ┌─ visited
//!     ██████▼██▒▒▒▒▒▒▒▒░░░░██████         ▒ taken   ░ stays free, and in one piece
//! ```
//!
//! The second is what fio 3.33 does. Free blocks stay together so, and large I/Os fit for long; a
//! permutation would leave single blocks free all over the file.

use std::collections::BTreeMap;
use std::ops::Range;

use super::permutation::Permutation;
use paternoster_model::Draws;

/// The blocks that were not visited.
#[derive(Clone, Debug)]
pub(super) struct Unvisited {
    /// The least size of an I/O.
    block_bytes: u64,
    blocks: u64,
    order: Order,
}

/// In what order they are visited.
#[derive(Clone, Debug)]
enum Order {
    /// How many of the permutation were visited.
    Permuted(Permutation, u64),
    /// The runs of free blocks: where each begins, and where it ends.
    Drawn(BTreeMap<u64, u64>),
}

impl Unvisited {
    /// All blocks of `bytes`, which hold one. `has_one_size` says that no I/O has several.
    pub(super) fn new(bytes: u64, block_bytes: u64, has_one_size: bool, draws: &mut Draws) -> Self {
        let blocks = bytes / block_bytes;
        let order = if has_one_size {
            Order::Permuted(Permutation::new(blocks, draws), 0)
        } else {
            Order::Drawn(BTreeMap::from([(0, blocks)]))
        };
        Self { block_bytes, blocks, order }
    }

    /// Takes blocks for an I/O in a file that ends at `end`. `wanted` says how many bytes it is to
    /// have if so many are left to the end. Returns where it starts and how many it has; nothing
    /// where all blocks were visited.
    pub(super) fn take(
        &mut self,
        end: u64,
        wanted: impl FnOnce(u64) -> u64,
        draws: &mut Draws,
    ) -> Option<(u64, u64)> {
        let (block, run_end) = match &mut self.order {
            Order::Permuted(order, visited) => {
                let index = Some(*visited).filter(|visited| *visited < self.blocks)?;
                *visited += 1;
                let block = order.at(index);
                (block, block + 1)
            }
            Order::Drawn(runs) => next_free(runs, draws.below(self.blocks))?,
        };
        let start = block * self.block_bytes;
        let bytes = wanted(end - start);
        let taken = bytes.div_ceil(self.block_bytes).min(run_end - block);
        if let Order::Drawn(runs) = &mut self.order {
            take_out(runs, block..block + taken);
        }
        Some((start, bytes.min(taken * self.block_bytes)))
    }
}

/// The next free block from `from` on, around the end, and where its run of free ones ends.
fn next_free(runs: &BTreeMap<u64, u64>, from: u64) -> Option<(u64, u64)> {
    let around = runs.range(..=from).next_back().filter(|&(_, &end)| from < end);
    let behind = || runs.range(from..).next().or_else(|| runs.first_key_value());
    let (&start, &end) = around.or_else(behind)?;
    Some((if around.is_some() { from } else { start }, end))
}

/// Takes these out of the run in which all of them are.
fn take_out(runs: &mut BTreeMap<u64, u64>, taken: Range<u64>) {
    let run = runs.range(..=taken.start).next_back().map(|(&start, &end)| (start, end));
    let (start, end) = run.expect("blocks that are taken were free");
    runs.remove(&start);
    let rests = [(start, taken.start), (taken.end, end)];
    runs.extend(rests.into_iter().filter(|(start, end)| start < end));
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster_model::Who;

    /// Of ten blocks, 3 to 5 and 9 are visited: from 2 on, 2 is next, from 3 on 6, from 9 on 0.
    #[test]
    fn next_free_block_is_looked_for_behind_the_drawn_one_and_around_the_end() {
        let mut runs = BTreeMap::from([(0, 10)]);
        take_out(&mut runs, 3..6);
        take_out(&mut runs, 9..10);
        assert_eq!(runs, BTreeMap::from([(0, 3), (6, 9)]));
        assert_eq!(next_free(&runs, 2), Some((2, 3)));
        assert_eq!(next_free(&runs, 3), Some((6, 9)));
        assert_eq!(next_free(&runs, 7), Some((7, 9)));
        assert_eq!(next_free(&runs, 9), Some((0, 3)));
        take_out(&mut runs, 0..3);
        take_out(&mut runs, 6..9);
        assert_eq!(next_free(&runs, 4), None);
    }

    /// 100 blocks of 4 KiB for I/Os of 12 KiB: all are taken, none twice, and none reaches beyond a
    /// visited one.
    #[test]
    fn each_block_is_taken_once() {
        let draws = &mut Draws::new(3, Who::Job, 0);
        let mut unvisited = Unvisited::new(409_600, 4096, false, draws);
        let mut taken = vec![];
        while let Some((start, bytes)) = unvisited.take(409_600, |left| left.min(12_288), draws) {
            taken.extend((0..bytes / 4096).map(|block| start / 4096 + block));
        }
        taken.sort_unstable();
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
    }
}
