//! Offsets that say nothing of where data lies: the blocks of 1 MiB of a disk in another order, by
//! a key that nobody keeps.
//!
//! Within a block all stays as it is, so that sequences stay sequences.

use std::hash::{BuildHasher as _, RandomState};

const BLOCK: u64 = 1 << 20;

/// Rounds of the permutation; four make it one that cannot be told from a random one.
const ROUNDS: u64 = 4;

/// A permutation of the blocks of a slot, of which the address space of a disk has some.
#[derive(Debug)]
pub(super) struct Scramble {
    key: RandomState,
    /// Half of the bits of a block's number.
    half: u32,
    blocks: u64,
}

impl Scramble {
    /// Of a disk of so many bytes.
    pub(super) fn new(size: u64) -> Self {
        let blocks = (size / BLOCK).max(1);
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        Self { key: RandomState::new(), half: bits.div_ceil(2).max(1), blocks }
    }

    /// Where a byte is. What is behind the last whole block stays there.
    pub(super) fn offset(&self, offset: u64) -> u64 {
        let block = offset / BLOCK;
        if block >= self.blocks {
            return offset;
        }
        // It is one of 2^(2 half) numbers: those that are no block are put on their way again.
        let mut to = self.permute(block);
        while to >= self.blocks {
            to = self.permute(to);
        }
        to * BLOCK + offset % BLOCK
    }

    /// A network of Feistel's over both halves of a number.
    fn permute(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (self.key.hash_one((round, right)) & mask));
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_block_has_another_place_and_stays_whole() {
        for blocks in [1, 2, 3, 100, 1024, 1025] {
            let scramble = Scramble::new(blocks * BLOCK + 5);
            let places = (0..blocks).map(|block| scramble.offset(block * BLOCK) / BLOCK);
            let places: BTreeSet<_> = places.collect();
            assert_eq!(places, (0..blocks).collect(), "each once");
            let at = scramble.offset(7);
            assert_eq!(scramble.offset(4096 + 7), at + 4096);
            assert_eq!(scramble.offset(blocks * BLOCK + 3), blocks * BLOCK + 3);
        }
        let scramble = Scramble::new(1 << 40);
        let stays = (0..1000).filter(|block| scramble.offset(block * BLOCK) == block * BLOCK);
        assert!(stays.count() < 5, "of a million, hardly one stays where it is");
    }
}
