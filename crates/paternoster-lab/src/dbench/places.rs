//! Where a file lies, as ext4 allocates it.
//!
//! ```text
//!   core 0        core 1        …   large files
//!   ├──small──────┼──small──────┼ … ┼──large──────┤
//! ```
//!
//! Blocks are allocated when a file is flushed for the first time. A small file gets its blocks
//! from the chunk of the core on which its client runs just then, a large one where the last large
//! one ended. Whoever repeats the load file has deleted its files before, and their blocks are
//! used again.

use paternoster::Sector;
use rand_xoshiro::rand_core::Rng;

use super::{BLOCK, Flush};

/// Where files lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Where the first chunk begins.
    pub begin: Sector,
    /// How many cores there are.
    pub cores: u32,
    /// Blocks of a chunk; more than those of the longest file.
    pub chunk_blocks: u64,
    /// From so many blocks on a file is large.
    pub large_blocks: u32,
}

/// Which blocks files have.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    places: Places,
    /// How many blocks each file has at most.
    lengths: Vec<u32>,
    /// The first block of each file of each client, once it has one.
    files: Vec<Vec<Option<u64>>>,
    /// The next block of each chunk; that of large files is the last one.
    next: Vec<u64>,
}

impl Allocation {
    pub(super) fn new(places: Places, clients: u32, flushes: &[Flush]) -> Self {
        let count = flushes.iter().map(|flush| flush.file as usize + 1).max().unwrap_or(0);
        let mut lengths = vec![0; count];
        for flush in flushes {
            let length = &mut lengths[flush.file as usize];
            *length = flush.blocks.max(*length);
        }
        Self {
            places,
            lengths,
            files: vec![vec![None; count]; clients as usize],
            next: vec![0; places.cores as usize + 1],
        }
    }

    /// Where the file that a client flushes begins.
    pub(super) fn place(&mut self, client: usize, flush: Flush, random: &mut impl Rng) -> Sector {
        let file = flush.file as usize;
        let block = match self.files[client][file] {
            Some(block) => block,
            None => self.allocate(self.lengths[file], random),
        };
        self.files[client][file] = Some(block);
        Sector(self.places.begin.0 + block * u64::from(BLOCK))
    }

    /// The client has deleted its files.
    pub(super) fn free(&mut self, client: usize) {
        self.files[client].fill(None);
    }

    fn allocate(&mut self, blocks: u32, random: &mut impl Rng) -> u64 {
        let Places { cores, chunk_blocks, large_blocks, .. } = self.places;
        let core = if blocks < large_blocks { random.next_u32() % cores } else { cores };
        let next = &mut self.next[core as usize];
        if *next + u64::from(blocks) > chunk_blocks {
            *next = 0;
        }
        let block = u64::from(core) * chunk_blocks + *next;
        *next += u64::from(blocks);
        block
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng as _;

    use super::*;

    /// Two clients with a small file of 3 blocks and a large one of 20, on one core.
    fn allocation() -> (Allocation, [Flush; 3]) {
        let places = Places { begin: Sector(800), cores: 1, chunk_blocks: 50, large_blocks: 16 };
        let flushes = [(0, 1), (0, 3), (1, 20)];
        let flushes = flushes.map(|(file, blocks)| Flush { operations: 0, file, blocks });
        (Allocation::new(places, 2, &flushes), flushes)
    }

    #[test]
    fn file_has_its_blocks_from_its_first_flush_until_it_is_deleted() {
        let (mut allocation, [short, long, _]) = allocation();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut place = |client, flush| allocation.place(client, flush, &mut random).0;
        assert_eq!([place(0, short), place(0, long)], [800, 800]);
        assert_eq!(place(1, short), 800 + 3 * 8, "behind the other client's, all of it");
        allocation.free(0);
        assert_eq!(allocation.place(0, short, &mut random).0, 800 + 6 * 8);
        assert_eq!(allocation.place(1, long, &mut random).0, 800 + 3 * 8);
    }

    #[test]
    fn large_files_have_a_chunk_of_their_own_which_is_used_again() {
        let (mut allocation, [short, _, large]) = allocation();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut places = Vec::new();
        for _ in 0..3 {
            places.push(allocation.place(0, large, &mut random).0);
            allocation.free(0);
        }
        assert_eq!(places, [800 + 50 * 8, 800 + 70 * 8, 800 + 50 * 8]);
        assert_eq!(allocation.place(0, short, &mut random).0, 800);
    }

    #[test]
    fn client_is_on_any_core_when_it_allocates() {
        let (_, flushes) = allocation();
        let places = Places { begin: Sector(0), cores: 4, chunk_blocks: 1 << 20, large_blocks: 16 };
        let mut allocation = Allocation::new(places, 1, &flushes);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut seen = [0; 4];
        for _ in 0..4000 {
            let block = allocation.place(0, flushes[0], &mut random).0 / u64::from(BLOCK);
            seen[usize::try_from(block >> 20).expect("a core")] += 1;
            allocation.free(0);
        }
        assert!(seen.iter().all(|count| (900..1100).contains(count)), "{seen:?}");
    }
}
