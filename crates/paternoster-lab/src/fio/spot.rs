//! Where a job is in one of its files: what it does there next.
//!
//! ```text
//!   sequential   next ──▶ next + size (+ holes) ──▶ ... ──▶ the end: the spot is done
//!   each once    a permutation of blocks; with sizes of several blocks, those visited are skipped
//!                and an I/O ends before the next one visited
//!   any          a sampler of the job's distribution
//! ```

use std::collections::HashMap;

use super::distribution::Sampler;
use super::draw::Draws;
use super::job::{
    BlockSizes, Coverage, DataDirection, Distribution, Modifier, Order, Pattern, Region, used_sizes,
};
use super::permutation::Permutation;
use super::value::PerDirection;

/// The draws of a job with this number and all above say how blocks are scattered in its files.
const SCATTER: u64 = 1 << 32;

/// What a job does next in a file: so many bytes at an offset in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The draws by which a block is found.
#[derive(Clone, Debug)]
pub(super) struct BlockDraws {
    pub(super) sizes: Draws,
    pub(super) positions: Draws,
}

/// Where a job is in one of its files.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) region: Region,
    /// Nothing is left to do in this pass.
    pub(super) is_done: bool,
    /// It was written since it was synced.
    pub(super) is_dirty: bool,
    random: Random,
    tracks: PerDirection<Track>,
}

/// Where a direction is in a file.
#[derive(Clone, Debug)]
struct Track {
    /// The end of its last I/O, from the start of the region.
    next: u64,
    /// Where its last I/O began.
    last: u64,
    /// How many I/Os go on without a draw.
    run: u64,
}

/// How random positions are found.
#[derive(Clone, Debug)]
enum Random {
    EachOnce(Unvisited),
    Any(Box<PerDirection<Grid>>),
}

/// The blocks that were not visited, in the order in which they will be.
#[derive(Clone, Debug)]
struct Unvisited {
    /// The least size of an I/O.
    block_bytes: u64,
    order: Permutation,
    /// How many of the order were looked at.
    taken: u64,
    /// The visited ones, 64 in a word, where an I/O can have several.
    visited: Option<HashMap<u64, u64>>,
}

/// The positions that a direction may draw.
#[derive(Clone, Debug)]
struct Grid {
    align: u64,
    sampler: Sampler,
}

impl Spot {
    /// The start of a region.
    pub(super) fn new(region: Region, pattern: &Pattern, draws: &mut Draws) -> Self {
        Self {
            region,
            is_done: false,
            is_dirty: false,
            random: Random::new(region, pattern, draws),
            tracks: [const { Track { next: 0, last: 0, run: 0 } }; 3],
        }
    }

    /// Begins again, from the start and with new draws.
    pub(super) fn restart(&mut self, pattern: &Pattern, draws: &mut Draws) {
        let is_dirty = self.is_dirty;
        *self = Self { is_dirty, ..Self::new(self.region, pattern, draws) };
    }

    /// The block behind the last one, or none where the region ends.
    pub(super) fn follow(
        &mut self,
        direction: DataDirection,
        sizes: &BlockSizes,
        holes: u64,
        draws: &mut BlockDraws,
    ) -> Option<Block> {
        let track = &mut self.tracks[direction as usize];
        let end = self.region.bytes;
        if track.next >= end && holes > 0 {
            track.next = 0;
        }
        let left = end.saturating_sub(track.next);
        if left < sizes.min() {
            return None;
        }
        let bytes = sizes.cut(sizes.draw(&mut draws.sizes), left);
        let start = track.next;
        track.last = start;
        track.next = start.saturating_add(bytes).saturating_add(holes);
        Some(Block { offset: self.region.start + start, bytes })
    }

    /// A random block, or none where all were visited.
    pub(super) fn jump(
        &mut self,
        direction: DataDirection,
        sizes: &BlockSizes,
        modifier: Option<Modifier>,
        draws: &mut BlockDraws,
    ) -> Option<Block> {
        let track = &mut self.tracks[direction as usize];
        if track.run > 0 {
            track.run -= 1;
            if let Some(Modifier::Repeats(_)) = modifier {
                track.next = track.last;
            }
            let following = self.follow(direction, sizes, 0, draws);
            if following.is_some() {
                return following;
            }
        }
        let wanted = sizes.draw(&mut draws.sizes);
        let (start, bytes) = match &mut self.random {
            Random::EachOnce(unvisited) => unvisited.take(wanted)?,
            Random::Any(grids) => {
                grids[direction as usize].draw(wanted, self.region.bytes, &mut draws.positions)
            }
        };
        let run = match modifier {
            Some(Modifier::Runs(ios) | Modifier::Repeats(ios)) => ios - 1,
            Some(Modifier::Holes(_)) | None => 0,
        };
        self.tracks[direction as usize] = Track { next: start + bytes, last: start, run };
        Some(Block { offset: self.region.start + start, bytes })
    }
}

impl Random {
    fn new(region: Region, pattern: &Pattern, draws: &mut Draws) -> Self {
        let used = used_sizes(pattern.mix, pattern.sizes_by_order);
        let used = || used.iter().map(|&index| &pattern.sizes[index]);
        if !pattern.visits_each_once() {
            // The blocks drawn most stay where they are in all passes.
            let file = u64::try_from(region.file).expect("an index fits");
            let draws = &mut Draws::numbered(pattern.seed, SCATTER + file);
            let grids = DataDirection::ALL.map(|direction| {
                let sizes = pattern.sizes_of(direction, Order::Random);
                let least = sizes.min().min(region.bytes);
                let align = pattern.align[direction as usize].unwrap_or(least);
                let blocks = (region.bytes - least) / align + 1;
                let distribution = &pattern.distribution;
                Grid { align, sampler: Sampler::new(distribution, direction, blocks, align, draws) }
            });
            return Self::Any(Box::new(grids));
        }
        let block_bytes = used().map(BlockSizes::min).min().expect("a job has a direction");
        let all_alike = used().all(|sizes| *sizes == BlockSizes::Fixed(block_bytes));
        Self::EachOnce(Unvisited {
            block_bytes,
            order: Permutation::new(region.bytes / block_bytes, draws),
            taken: 0,
            visited: (!all_alike).then(HashMap::new),
        })
    }
}

impl Unvisited {
    /// Takes the next blocks that were not visited, for at most `wanted` bytes: where they start
    /// and how many bytes they have.
    fn take(&mut self, wanted: u64) -> Option<(u64, u64)> {
        while self.taken < self.order.end() {
            let block = self.order.at(self.taken);
            self.taken += 1;
            if self.is_visited(block) {
                continue;
            }
            let most = wanted.div_ceil(self.block_bytes).min(self.order.end() - block);
            let free = (1..most).find(|&behind| self.is_visited(block + behind)).unwrap_or(most);
            for behind in 0..free {
                self.visit(block + behind);
            }
            return Some((block * self.block_bytes, wanted.min(free * self.block_bytes)));
        }
        None
    }

    fn is_visited(&self, block: u64) -> bool {
        let Some(visited) = &self.visited else { return false };
        visited.get(&(block / 64)).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    fn visit(&mut self, block: u64) {
        if let Some(visited) = &mut self.visited {
            *visited.entry(block / 64).or_insert(0) |= 1 << (block % 64);
        }
    }
}

impl Grid {
    /// Draws where `wanted` bytes start, and how many of them are in the region of `end` bytes.
    fn draw(&self, wanted: u64, end: u64, draws: &mut Draws) -> (u64, u64) {
        let last = end.saturating_sub(wanted) / self.align * self.align;
        let start = self.sampler.draw(draws).saturating_mul(self.align).min(last);
        (start, wanted.min(end - start))
    }
}

impl Pattern {
    /// How large I/Os are of a direction and in an order.
    pub(super) fn sizes_of(&self, direction: DataDirection, order: Order) -> &BlockSizes {
        match (self.sizes_by_order, order) {
            (true, Order::Sequential) => &self.sizes[0],
            (true, Order::Random) => &self.sizes[1],
            (false, _) => &self.sizes[direction as usize],
        }
    }

    /// Whether random I/O visits each block once before any a second time. fio does not keep count
    /// where positions are aligned, or drawn by anything but a uniform distribution.
    pub(super) fn visits_each_once(&self) -> bool {
        self.coverage == Coverage::EachOnce
            && self.distribution == Distribution::Uniform
            && self.align.iter().all(Option::is_none)
    }
}

impl BlockSizes {
    /// Draws a size.
    fn draw(&self, draws: &mut Draws) -> u64 {
        match self {
            &Self::Fixed(size) => size,
            &Self::Range { min, max, step } => min + draws.below((max - min) / step + 1) * step,
            Self::Split(parts) => {
                let mut part = draws.below(100);
                for &(size, percent) in parts {
                    match part.checked_sub(percent.into()) {
                        Some(behind) => part = behind,
                        None => return size,
                    }
                }
                unreachable!("the parts are 100 in all")
            }
        }
    }

    /// The most of `wanted` bytes that `left` bytes, which hold the least size, have room for.
    fn cut(&self, wanted: u64, left: u64) -> u64 {
        let step = match self {
            Self::Range { step, .. } => *step,
            sizes => sizes.min(),
        };
        if wanted <= left { wanted } else { left / step * step }
    }
}
