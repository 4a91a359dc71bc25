//! What a job reads and writes, and in what order.

use std::sync::Arc;

use super::DataDirection;
use crate::fio::command_priority::CommandPriorities;
use crate::fio::value::{Extent, PerDirection};

/// What a job reads and writes: see [`Stream`](crate::fio::Stream).
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Which directions, `rw`.
    pub mix: IoMix,
    /// Whether positions are drawn, `rw`.
    pub order: Order,
    /// What the number behind `rw=...:` says; none where absent.
    pub modifier: Option<Modifier>,
    /// How large the I/Os of each direction are, `bs`, `bsrange`, `bssplit`.
    pub sizes: PerDirection<BlockSizes>,
    /// The first size is of sequential I/O and the second of random I/O, `bs_is_seq_rand`.
    pub sizes_by_order: bool,
    /// What random positions are multiples of, `ba`; the least block size where absent.
    pub align: PerDirection<Option<u64>>,
    /// How random positions are drawn.
    pub distribution: Distribution,
    /// How many percent of the I/Os of a random job are random.
    pub percent_random: PerDirection<u8>,
    /// Whether a block is visited again before all were, `norandommap`.
    pub coverage: Coverage,
    /// The parts of files that it works on, at least one.
    pub regions: Vec<Region>,
    /// Which of them is next.
    pub file_service: FileService,
    /// How much it does in a loop, in bytes; the whole of its regions where absent. Where it is
    /// more than that, the job does the greater of it and `loops` passes over them.
    pub io_bytes: Option<u64>,
    /// How often, `loops`.
    pub loops: u32,
    /// It begins again for ever, `time_based`; the engine ends it at `runtime`.
    pub is_endless: bool,
    /// After how many I/Os of a loop it ends, `number_ios`.
    pub number_ios: Option<u64>,
    /// When it syncs.
    pub syncs: Syncs,
    /// Each loop has the same random positions, `randrepeat`.
    pub repeat: bool,
    /// Of all its draws, from `randseed` or the seed of the run.
    pub seed: u64,
    /// Which I/Os have a priority of their own.
    pub command_priorities: CommandPriorities,
}

/// Which directions a job's I/O has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoMix {
    /// One direction.
    Only(DataDirection),
    /// Reads and writes; `rwmixread` says how many percent are reads.
    ReadsAndWrites {
        /// Percent.
        reads: u8,
    },
    /// Each block is trimmed and then written.
    TrimsAndWrites,
}

impl IoMix {
    /// Whether that is one of them.
    pub fn has(self, direction: DataDirection) -> bool {
        match self {
            Self::Only(only) => only == direction,
            Self::ReadsAndWrites { .. } => direction != DataDirection::Trim,
            Self::TrimsAndWrites => direction != DataDirection::Read,
        }
    }
}

/// Which of the three sizes a mix has: those of its directions, or by order.
pub(in crate::fio) fn used_sizes(mix: IoMix, by_order: bool) -> &'static [usize] {
    match mix {
        _ if by_order => &[0, 1],
        IoMix::Only(DataDirection::Read) => &[0],
        IoMix::Only(DataDirection::Write) => &[1],
        IoMix::ReadsAndWrites { .. } => &[0, 1],
        // A write has the size of the trim before it.
        IoMix::Only(DataDirection::Trim) | IoMix::TrimsAndWrites => &[2],
    }
}

/// In what order a job visits blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One behind the other.
    Sequential,
    /// Drawn.
    Random,
}

/// What the number behind `rw=...:` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// Sequential I/O leaves out so many bytes between two blocks; it goes back where they are
    /// negative.
    Holes(i64),
    /// A random position is drawn for so many I/Os, which follow each other.
    Runs(u64),
    /// A random position is drawn for so many I/Os, which are all there.
    Repeats(u64),
}

/// `rw_sequencer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fio) enum Sequencer {
    Sequential,
    Identical,
}

/// How large I/Os are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// All of one size, in bytes.
    Fixed(u64),
    /// Any multiple of `step`, from `min` to `max` bytes, and `max` itself.
    Range {
        /// The least size.
        min: u64,
        /// The greatest.
        max: u64,
        /// The least size, or 1 with `bs_unaligned`.
        step: u64,
    },
    /// Each size with its part in percent, 100 in all.
    Split(Vec<(u64, u8)>),
}

impl BlockSizes {
    /// The least size.
    pub fn min(&self) -> u64 {
        match self {
            Self::Fixed(size) | Self::Range { min: size, .. } => *size,
            Self::Split(parts) => parts.iter().map(|&(size, _)| size).min().unwrap_or(1),
        }
    }

    /// The greatest size.
    pub(in crate::fio) fn max(&self) -> u64 {
        match self {
            Self::Fixed(size) | Self::Range { max: size, .. } => *size,
            Self::Split(parts) => parts.iter().map(|&(size, _)| size).max().unwrap_or(1),
        }
    }
}

/// How random positions are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The block of rank r is drawn in proportion to r^-theta. Ranks are scattered.
    Zipf {
        /// The exponent.
        theta: f64,
        /// Where rank 1 lies, 0 to 1 of the region; drawn where absent.
        center: Option<f64>,
    },
    /// A part `h` of the blocks gets a part 1 - `h` of the draws, and so on within it.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// Where the block drawn most lies, 0 to 1 of the region; drawn where absent.
        center: Option<f64>,
    },
    /// By a bell curve around its center.
    Normal {
        /// The standard deviation, in percent of the region.
        deviation: f64,
        /// The middle, 0 to 1 of the region.
        center: f64,
    },
    /// Parts of the region, from its start on, for each direction.
    Zoned(Arc<PerDirection<Vec<Zone>>>),
}

/// A part of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// How many percent of the draws are in it.
    pub percent: u8,
    /// How large it is.
    pub size: Extent,
}

/// Whether a block is visited again before all were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No.
    EachOnce,
    /// It may be.
    Any,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The index of the file in [`Jobs::files`](super::Jobs::files).
    pub file: usize,
    /// Where it starts in the file, in bytes.
    pub start: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Which of a job's files is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileService {
    /// The files in turns, after so many I/Os.
    RoundRobin {
        /// At least 1.
        ios: u32,
    },
    /// A file until it is done.
    Sequential,
    /// A drawn one, after so many I/Os.
    Random {
        /// At least 1.
        ios: u32,
    },
}

/// When a job syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syncs {
    /// After so many writes; 0, never.
    pub fsync: u32,
    /// The same with `fdatasync`.
    pub fdatasync: u32,
    /// At the end of the job and of each loop.
    pub at_end: bool,
    /// When a file is closed, which is at the end of each loop.
    pub at_close: bool,
}
