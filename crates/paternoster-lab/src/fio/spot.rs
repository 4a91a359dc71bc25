//! Where a job is in one of its files: what it does there next.
//!
//! ```text
//!   sequential   end ──▶ end + size (+ holes) ──▶ ... ──▶ the end: the spot is done
//!   each once    see unvisited.rs
//!   any          a sampler of the job's distribution
//! ```
//!
//! Where directions differ in their least size, each visits its blocks once by itself: a write of
//! 64 KiB would not fit between reads of 8 KiB that came before it.

use super::distribution::Sampler;
use super::job::{
    BlockSizes, Coverage, DataDirection, Distribution, Modifier, Order, Pattern, Region, used_sizes,
};
use super::unvisited::Unvisited;
use super::value::PerDirection;
use paternoster_model::{Draws, Who};

/// How often a size is drawn until one fits.
const SIZE_DRAWS: u32 = 1000;

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
    /// What was trimmed and is to be written next.
    pub(super) trimmed: Option<Block>,
    random: Random,
    tracks: PerDirection<Track>,
}

/// Where a direction is in a file.
#[derive(Clone, Debug)]
struct Track {
    /// The end of its last I/O, from the start of the region.
    end: u64,
    /// What is left out behind it, or gone back where that is negative.
    holes: i64,
    /// Where its last I/O began.
    last: u64,
    /// How many I/Os go on without a draw.
    run: u64,
}

/// How random positions are found.
#[derive(Clone, Debug)]
enum Random {
    EachOnce {
        /// One for all directions, or one each.
        maps: Vec<Unvisited>,
        /// Which of them each direction has.
        of: PerDirection<usize>,
    },
    Any(Box<PerDirection<Grid>>),
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
            trimmed: None,
            random: Random::new(region, pattern, draws),
            tracks: [const { Track { end: 0, holes: 0, last: 0, run: 0 } }; 3],
        }
    }

    /// Begins again, from the start and with new draws.
    pub(super) fn restart(&mut self, pattern: &Pattern, draws: &mut Draws) {
        let is_dirty = self.is_dirty;
        *self = Self { is_dirty, ..Self::new(self.region, pattern, draws) };
    }

    /// The block behind the last one, or none where the region ends: the last one ended there, or
    /// none of the least size is left. As in fio, holes that reach the end lead to the start of
    /// the file, if the region has that, and back from the start is back from the end.
    pub(super) fn follow(
        &mut self,
        direction: DataDirection,
        sizes: &BlockSizes,
        holes: i64,
        draws: &mut BlockDraws,
    ) -> Option<Block> {
        let track = &mut self.tracks[direction as usize];
        let end = self.region.bytes;
        let start = match track.end.checked_add_signed(track.holes) {
            _ if track.end >= end => return None,
            Some(start) if start >= end && self.region.start > 0 => return None,
            Some(start) if start >= end => 0,
            Some(start) => start,
            None => end.checked_add_signed(track.holes)?,
        };
        let left = end - start;
        if left < sizes.min() {
            return None;
        }
        let bytes = sizes.draw_within(left, &mut draws.sizes);
        (track.last, track.end, track.holes) = (start, start + bytes, holes);
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
        let mut run = match modifier {
            Some(Modifier::Runs(ios) | Modifier::Repeats(ios)) => ios - 1,
            Some(Modifier::Holes(_)) | None => 0,
        };
        if track.run > 0 {
            track.run -= 1;
            if let Some(Modifier::Repeats(_)) = modifier {
                track.end = track.last;
            }
            // What is drawn where a run meets the end is a part of the run, as in fio.
            run = track.run;
            let following = self.follow(direction, sizes, 0, draws);
            if following.is_some() {
                return following;
            }
        }
        let end = self.region.bytes;
        let (start, bytes) = match &mut self.random {
            Random::EachOnce { maps, of } => {
                let unvisited = &mut maps[of[direction as usize]];
                let wanted = |left| sizes.draw_within(left, &mut draws.sizes);
                unvisited.take(end, wanted, &mut draws.positions)?
            }
            Random::Any(grids) => {
                let start = grids[direction as usize].draw(&mut draws.positions);
                (start, sizes.draw_within(end - start, &mut draws.sizes))
            }
        };
        self.tracks[direction as usize] = Track { end: start + bytes, holes: 0, last: start, run };
        Some(Block { offset: self.region.start + start, bytes })
    }
}

impl Random {
    fn new(region: Region, pattern: &Pattern, draws: &mut Draws) -> Self {
        if !pattern.visits_each_once() {
            // The blocks drawn most stay where they are in all passes.
            let file = u64::try_from(region.file).expect("an index fits");
            let draws = &mut Draws::new(pattern.seed, Who::Job, SCATTER + file);
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
        let directions = used_sizes(pattern.mix, false).iter();
        let sizes_of = |&index: &usize| pattern.sizes_of(DataDirection::ALL[index], Order::Random);
        let sizes: Vec<_> = directions.clone().map(sizes_of).collect();
        let mut map = |sizes: &BlockSizes, has_one_size: bool| {
            Unvisited::new(region.bytes, sizes.min(), has_one_size, draws)
        };
        let mut of = [0; 3];
        let maps = if sizes.iter().all(|other| other.min() == sizes[0].min()) {
            let has_one_size = sizes.iter().all(|sizes| matches!(sizes, BlockSizes::Fixed(_)));
            vec![map(sizes[0], has_one_size)]
        } else {
            directions.enumerate().for_each(|(map, &index)| of[index] = map);
            let maps = sizes.iter().map(|sizes| map(sizes, matches!(sizes, BlockSizes::Fixed(_))));
            maps.collect()
        };
        Self::EachOnce { maps, of }
    }
}

impl Grid {
    /// Draws where an I/O starts; the least size fits there.
    fn draw(&self, draws: &mut Draws) -> u64 {
        self.sampler.draw(draws).saturating_mul(self.align)
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
    /// where positions are aligned to anything but the least size, or drawn by anything but a
    /// uniform distribution.
    pub(super) fn visits_each_once(&self) -> bool {
        let least = |direction| self.sizes_of(direction, Order::Random).min();
        self.coverage == Coverage::EachOnce
            && self.distribution == Distribution::Uniform
            && DataDirection::ALL.into_iter().all(|direction| {
                self.align[direction as usize].is_none_or(|align| align == least(direction))
            })
    }
}

impl BlockSizes {
    /// Draws a size.
    fn draw(&self, draws: &mut Draws) -> u64 {
        match self {
            &Self::Fixed(size) => size,
            // As fio 3.33 was seen to: with steps of 1 a drawn number on top of the least size;
            // else the multiple of that which a drawn number reaches. Both end at the greatest.
            &Self::Range { min, max, step: 1 } => max.min(min.saturating_add(draws.below(max))),
            &Self::Range { max, step, .. } => {
                max.min((draws.below(max) + 1).next_multiple_of(step))
            }
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

    /// Draws a size that `left` bytes, which hold the least one, have room for. As fio does, it
    /// draws again where one is too large; in the end it takes the least.
    fn draw_within(&self, left: u64, draws: &mut Draws) -> u64 {
        let mut sizes = (0..SIZE_DRAWS).map(|_| self.draw(draws));
        sizes.find(|&bytes| bytes <= left).unwrap_or_else(|| self.min().min(left))
    }
}
