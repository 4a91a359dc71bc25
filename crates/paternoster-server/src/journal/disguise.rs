//! What stands in a recording that is to say nothing of names and of where data lie.
//!
//! Exports and groups have numbers. The blocks of 1 MiB of each volume stand in another order, by a
//! key that nobody keeps; within a block all stays as it is, so that sequences stay sequences.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};

use paternoster_trace::sidecar::Party;

const BLOCK: u64 = 1 << 20;

/// Rounds of the permutation; four make it one that cannot be told from a random one.
const ROUNDS: u64 = 4;

/// The numbers that stand for names.
#[derive(Debug, Default)]
pub(super) struct Disguise {
    exports: HashMap<String, usize>,
    groups: HashMap<String, usize>,
}

impl Disguise {
    /// Disguises a party that has its number.
    pub(super) fn party(&mut self, party: &mut Party) {
        let export = party.name.rsplit_once('#').map_or(&*party.name, |(export, _)| export);
        let known = self.exports.len();
        let export = *self.exports.entry(export.to_owned()).or_insert(known);
        party.name = format!("export{export}#{}", party.connection);
        party.volume.clear();
        let mut path = String::new();
        for name in party.group.split('/').filter(|name| !name.is_empty()) {
            let known = self.groups.len();
            let group = *self.groups.entry(name.to_owned()).or_insert(known);
            let _ = write!(path, "/group{group}");
        }
        party.group = if path.is_empty() { "/".to_owned() } else { path };
    }
}

/// A permutation of the blocks of a volume.
#[derive(Debug)]
pub(super) struct Scramble {
    key: RandomState,
    /// Half of the bits of a block's number.
    half: u32,
    /// The last of the volume is none of these: what begins in another ends within the volume.
    blocks: u64,
    bytes: u64,
}

impl Scramble {
    /// Of a volume of so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let blocks = (bytes.div_ceil(BLOCK)).saturating_sub(1).max(1);
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        Self { key: RandomState::new(), half: bits.div_ceil(2).max(1), blocks, bytes }
    }

    /// Where so many bytes are that begin there.
    pub(super) fn offset(&self, offset: u64, len: u64) -> u64 {
        let block = offset / BLOCK;
        if block == self.blocks && offset + len <= self.bytes {
            return offset;
        }
        // Of a volume that has grown, some stand in the place of others.
        let block = block % self.blocks;
        // It is one of 2^(2 half) numbers: those that are no block are put on their way again.
        let mut to = self.permute(block);
        while to >= self.blocks {
            to = self.permute(to);
        }
        (to * BLOCK + offset % BLOCK).min(self.bytes.saturating_sub(len))
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
        for blocks in [2, 3, 100, 1024, 1025] {
            let bytes = blocks * BLOCK;
            let scramble = Scramble::new(bytes);
            let places = (0..blocks).map(|block| scramble.offset(block * BLOCK, 512) / BLOCK);
            let places: BTreeSet<_> = places.collect();
            assert_eq!(places, (0..blocks).collect(), "each once");
            let at = scramble.offset(7, 1);
            assert_eq!(scramble.offset(4096 + 7, 1), at + 4096);
            let last = bytes - 4096;
            assert_eq!(scramble.offset(last, 4096), last);
        }
        let scramble = Scramble::new(1 << 40);
        let stays = (0..1000).filter(|block| scramble.offset(block * BLOCK, 1) == block * BLOCK);
        assert!(stays.count() < 5, "of a million, hardly one stays where it is");
    }

    #[test]
    fn nothing_ends_behind_the_volume_or_tells_that_it_has_grown() {
        for bytes in [4096, BLOCK, 3 * BLOCK + 512, 40 * BLOCK] {
            let scramble = Scramble::new(bytes);
            for offset in (0..4 * bytes).step_by(usize::try_from(bytes / 8).expect("it is small")) {
                let len = (3 * BLOCK).min(bytes / 2);
                let at = scramble.offset(offset, len);
                assert!(at + len <= bytes, "{offset} of {bytes} is at {at}");
            }
        }
    }
}
