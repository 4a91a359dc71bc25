//! Where a file lies, as ext4 allocates it.
//!
//! ```text
//!   core 0        core 1        …   large files
//!   ├──small──────┼──small──────┼ … ┼──large──────┤
//! ```
//!
//! Blocks are allocated when a file is flushed for the first time. A small file gets its blocks
//! from the chunk of the core on which its client runs just then, a large one where the last large
//! one ended. Whoever repeats the load file has deleted its files before: a chunk is used from its
//! begin again where no file has its blocks. What does not fit into it lies behind all.

use std::ops::Range;

use paternoster::Sector;
use paternoster_model::Draws;

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
    lengths: Vec<u32>,
    /// The first block of each file of each client, once it has one.
    files: Vec<Vec<Option<u64>>>,
    /// The next block of each chunk; that of large files is the last one.
    next: Vec<u64>,
}

impl Places {
    /// The first sector behind all that so many clients may have at a time.
    pub(super) fn end(&self, clients: u32, flushes: &[Flush]) -> Sector {
        let all = lengths(flushes).into_iter().map(u64::from).sum::<u64>() * u64::from(clients);
        let chunks = (u64::from(self.cores) + 1) * self.chunk_blocks;
        Sector(self.begin.0 + (chunks + all) * u64::from(BLOCK))
    }
}

/// How many blocks each file has at most.
fn lengths(flushes: &[Flush]) -> Vec<u32> {
    let count = flushes.iter().map(|flush| flush.file as usize + 1).max().unwrap_or(0);
    let mut lengths = vec![0; count];
    for flush in flushes {
        let length = &mut lengths[flush.file as usize];
        *length = flush.blocks.max(*length);
    }
    lengths
}

impl Allocation {
    pub(super) fn new(places: Places, clients: u32, flushes: &[Flush]) -> Self {
        let lengths = lengths(flushes);
        Self {
            places,
            files: vec![vec![None; lengths.len()]; clients as usize],
            lengths,
            next: vec![0; places.cores as usize + 1],
        }
    }

    /// Where the file that a client flushes begins.
    pub(super) fn place(&mut self, client: usize, flush: Flush, draws: &mut Draws) -> Sector {
        let file = flush.file as usize;
        let block = match self.files[client][file] {
            Some(block) => block,
            None => self.allocate(self.lengths[file], draws),
        };
        self.files[client][file] = Some(block);
        Sector(self.places.begin.0 + block * u64::from(BLOCK))
    }

    /// The client has deleted its files.
    pub(super) fn delete_files(&mut self, client: usize) {
        self.files[client].fill(None);
    }

    fn allocate(&mut self, blocks: u32, draws: &mut Draws) -> u64 {
        let Places { cores, chunk_blocks, large_blocks, .. } = self.places;
        let chunk = if blocks < large_blocks { upper_half(draws.bits()) % cores } else { cores };
        let blocks = u64::from(blocks);
        let begin = u64::from(chunk) * chunk_blocks;
        let end = begin + chunk_blocks;
        let next = begin + self.next[chunk as usize];
        let block =
            self.find_free(next..end, blocks).or_else(|| self.find_free(begin..end, blocks));
        let Some(block) = block else {
            // The chunk is full: behind the large files there is no end.
            let large = u64::from(cores) * chunk_blocks;
            return self.find_free(large..u64::MAX, blocks).expect("files have few blocks");
        };
        self.next[chunk as usize] = block + blocks - begin;
        block
    }

    /// The first of so many blocks in `range` that no file has.
    fn find_free(&self, range: Range<u64>, blocks: u64) -> Option<u64> {
        let mut first = range.start;
        while first + blocks <= range.end {
            let taken = |file: &Range<u64>| file.start < first + blocks && first < file.end;
            match self.taken().find(taken) {
                Some(file) => first = file.end,
                None => return Some(first),
            }
        }
        None
    }

    /// The blocks of each file that has any.
    fn taken(&self) -> impl Iterator<Item = Range<u64>> {
        self.files.iter().flat_map(|files| {
            let blocks = files.iter().zip(&self.lengths);
            blocks.filter_map(|(first, &length)| first.map(|at| at..at + u64::from(length)))
        })
    }
}

#[allow(clippy::cast_possible_truncation, reason = "32 bits are left")]
fn upper_half(bits: u64) -> u32 {
    (bits >> 32) as u32
}

#[cfg(test)]
mod tests {
    use paternoster_model::Who;

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
        let mut draws = Draws::new(1, Who::Dbench, 0);
        let mut place = |client, flush| allocation.place(client, flush, &mut draws).0;
        assert_eq!([place(0, short), place(0, long)], [800, 800]);
        assert_eq!(place(1, short), 800 + 3 * 8, "behind the other client's, all of it");
        allocation.delete_files(0);
        assert_eq!(allocation.place(0, short, &mut draws).0, 800 + 6 * 8);
        assert_eq!(allocation.place(1, long, &mut draws).0, 800 + 3 * 8);
    }

    #[test]
    fn large_files_have_a_chunk_of_their_own_which_is_used_again() {
        let (mut allocation, [short, _, large]) = allocation();
        let mut draws = Draws::new(1, Who::Dbench, 0);
        let mut places = Vec::new();
        for _ in 0..3 {
            places.push(allocation.place(0, large, &mut draws).0);
            allocation.delete_files(0);
        }
        assert_eq!(places, [800 + 50 * 8, 800 + 70 * 8, 800 + 50 * 8]);
        assert_eq!(allocation.place(0, short, &mut draws).0, 800);
    }

    #[test]
    fn blocks_of_a_file_are_no_other_files() {
        let (mut allocation, [_, long, large]) = allocation();
        let mut draws = Draws::new(1, Who::Dbench, 0);
        let mut place = |allocation: &mut Allocation, client, flush| {
            (allocation.place(client, flush, &mut draws).0 - 800) / u64::from(BLOCK)
        };
        assert_eq!(place(&mut allocation, 0, large), 50);
        assert_eq!(place(&mut allocation, 1, large), 70);
        allocation.delete_files(0);
        // 90 to 100 are too few, and 50 to 70 are free.
        assert_eq!(place(&mut allocation, 0, large), 50);
        // All small ones fit into 50 blocks until the chunk is full.
        for number in 0..16 {
            allocation.files.push(vec![None; 2]);
            assert_eq!(place(&mut allocation, 2 + number, long), 3 * number as u64);
        }
        allocation.files.push(vec![None; 2]);
        assert_eq!(place(&mut allocation, 18, long), 90, "behind the large ones");
    }

    #[test]
    fn client_is_on_any_core_when_it_allocates() {
        let (_, flushes) = allocation();
        let places = Places { begin: Sector(0), cores: 4, chunk_blocks: 1 << 20, large_blocks: 16 };
        let mut allocation = Allocation::new(places, 1, &flushes);
        let mut draws = Draws::new(1, Who::Dbench, 0);
        let mut seen = [0; 4];
        for _ in 0..4000 {
            let block = allocation.place(0, flushes[0], &mut draws).0 / u64::from(BLOCK);
            seen[usize::try_from(block >> 20).expect("a core")] += 1;
            allocation.delete_files(0);
        }
        assert!(seen.iter().all(|count| (900..1100).contains(count)), "{seen:?}");
    }
}
