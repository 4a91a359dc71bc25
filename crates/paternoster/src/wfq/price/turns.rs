//! Which blocks of windows teach prices, and which are for trials of the depth.
//!
//! ```text
//!   at first    T T T T · d d · T · d · T …     T teaches, d a trial of the depth
//!   later       · · · T · d · · T …             one of four, once prices stand still
//! ```
//!
//! Wrong prices mislead trials: where bytes are too dear, a deeper queue that lets more of them in
//! seems faster. So at first, and while a price moves far, prices go before the depth; and a block
//! teaches between two trials.

/// After so many blocks in which no price moved only one of four teaches.
const STILL_BLOCKS: u32 = 16;
const PASSED_BLOCKS: u32 = 3;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    /// The windows of this block teach.
    pub(super) teaches: bool,
    /// The last block that was to teach had a window that says nothing.
    wasted: bool,
    /// The last block that taught moved a price far.
    moves_far: bool,
    /// Blocks that taught since a price moved.
    still: u32,
    /// Blocks since the last that taught.
    passed: u32,
}

impl Turns {
    /// Begins a block that may teach or not; the one before was whole or not.
    pub(super) fn begin_block(&mut self, may_teach: bool, was_whole: bool) {
        self.wasted = self.teaches && !was_whole;
        let is_due = self.still < STILL_BLOCKS || self.passed >= PASSED_BLOCKS;
        self.teaches = may_teach && is_due;
        self.passed = if self.teaches { 0 } else { self.passed + 1 };
    }

    /// A block has taught; by how much a price moved, in ppm, if one did.
    pub(super) fn taught(&mut self, moved: Option<u64>) {
        self.still = if moved.is_some() { 0 } else { self.still + 1 };
        self.moves_far = moved.is_some_and(is_far);
    }

    /// Returns whether the next block is rather to teach than to try another depth.
    pub(super) fn goes_first(&self, after_trial: bool) -> bool {
        !self.wasted && (after_trial || self.moves_far)
    }
}

/// Returns whether a move, in ppm, is so far that what was seen before says little.
pub(super) fn is_far(moved: u64) -> bool {
    moved > 50_000
}
