//! How wrong a price is, from what the device did while it was higher and while it was lower.
//!
//! With right prices the device does the same whatever the mix, if what it does is counted at the
//! prices that hold. So where it does less while more bytes are asked for, bytes cost it more than
//! they are charged. By how much follows from how far the mix has shifted:
//!
//! ```text
//!   ρ = 2 (X₊ − X₋) / (X₊ + X₋)         what the device does, in blocks of windows
//!   f = part₊ − part₋                    the part of the cost that is of bytes
//!   e = −ρ / f = (r − 1) / (1 − p + r p)     r  true price / price,  p  the part on average
//! ```
//!
//! Single blocks are noise: means are divided, never a block's ρ by its f. Regressing X on the part
//! that happened to be seen would be wrong: one large request more in a window is both more bytes
//! and more done.

/// Parts in a million.
pub(super) const MILLION: i64 = 1_000_000;

/// Blocks that a mean remembers.
const MEMORY: u32 = 32;

/// Blocks before which nothing is sure.
pub(super) const LEAST_BLOCKS: u32 = 4;

/// A shift of the mix, in ppm, below which nothing can be learned: tenants are alike.
const LEAST_SHIFT: i64 = 3_000;

/// A price is left alone that is wrong by less than this, in ppm.
const LEAST_ERROR: i64 = 20_000;

/// A true price is at most taken for so many times the price, in ppm.
const LARGEST_RATIO: i64 = 3 * MILLION;

/// The part of an error that is corrected, in ppm: where it is surely one, and where it may be.
const SURE_STEP: i64 = 500_000;
const UNSURE_STEP: i64 = 150_000;

/// How far ρ is from 0 where a price may be wrong, 1.5 standard errors, and where it surely is, 4:
/// squared, × 100.
const UNSURE: i128 = 225;
const SURE: i128 = 1600;

/// A mean over blocks, and its variance: of all at first, then of the last 32 or so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    /// How many it is of; no more than it remembers.
    blocks: u32,
    /// The mean in ppm × 2¹⁶, so that steps of less than one are not lost; 0 of no blocks.
    value: i64,
    /// The variance of single blocks, in ppm²; 0 of one block.
    variance: i128,
}

impl Mean {
    pub(super) fn take(&mut self, value: i64) {
        self.blocks = (self.blocks + 1).min(MEMORY);
        let count = i64::from(self.blocks);
        let distance = (value << 16) - self.value;
        self.value += distance / count;
        if count > 1 {
            let squared = i128::from(distance >> 16) * i128::from(distance >> 16);
            let count = i128::from(count);
            self.variance = self.variance * (count - 2) / (count - 1) + squared / count;
        }
    }

    pub(super) fn value(&self) -> i64 {
        self.value >> 16
    }

    /// What it would be if every block had had so much more.
    pub(super) fn shift(&mut self, by: i64) {
        self.value += by << 16;
    }

    /// Remembers no more than a few blocks: later ones count for more.
    pub(super) fn doubt(&mut self) {
        self.blocks = self.blocks.min(LEAST_BLOCKS);
    }

    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }
}

/// Returns whether a mix has shifted by more than chance: by three standard errors.
pub(super) fn is_shift(shift: &Mean) -> bool {
    let mean = i128::from(shift.value());
    shift.value().abs() > LEAST_SHIFT && mean * mean * i128::from(shift.blocks) > 9 * shift.variance
}

/// How a price is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What the price is multiplied with, in ppm.
    pub(super) factor: i64,
    /// The distance of ρ from 0 in standard errors, squared, × 100.
    pub(super) sureness: i128,
    /// e as it is, in ppm.
    wrong: i64,
    /// r and p, in ppm.
    ratio: i64,
    part: i64,
}

impl Step {
    /// Returns by how much e is less, in ppm, once the price was multiplied with so many ppm: by
    /// less than `factor` where it came to its bound.
    pub(super) fn change_by(&self, factor: i64) -> i64 {
        self.wrong - error(self.ratio * MILLION / factor.max(1), self.part)
    }
}

/// Returns the step of a price whose part of the cost is `part` ppm; none where nothing says that
/// the price is wrong.
pub(super) fn step(rho: &Mean, shift: &Mean, part: i64) -> Option<Step> {
    let (mean, is_known, shift) = (rho.value(), is_shift(shift), shift.value());
    if rho.blocks < LEAST_BLOCKS || !is_known {
        return None;
    }
    // Of few blocks the variance is known badly: three do not count.
    let squared = i128::from(mean) * i128::from(mean) * i128::from(rho.blocks - 3);
    let sureness = squared * 100 / rho.variance.max(1);
    if sureness <= UNSURE {
        return None;
    }
    let wrong = -mean * MILLION / shift;
    let ratio = ratio(wrong, part);
    if (ratio - MILLION).abs() < LEAST_ERROR {
        return None;
    }
    let corrected = if sureness > SURE { SURE_STEP } else { UNSURE_STEP };
    let factor = MILLION + (ratio.min(LARGEST_RATIO) - MILLION) * corrected / MILLION;
    Some(Step { factor, sureness, wrong, ratio, part })
}

/// r = (1 + e (1 − p)) / (1 − e p), in ppm, from 0 to a hundred.
fn ratio(error: i64, part: i64) -> i64 {
    let [error, part, one] = [error, part, MILLION].map(i128::from);
    let over = (one * one + error * (one - part)).max(0);
    let under = one * one - error * part;
    let most = 100 * one;
    let ratio = if over >= most * under / one { most } else { over * one / under };
    i64::try_from(ratio).expect("at most a hundred million")
}

/// e = (r − 1) / (1 − p + r p), in ppm.
fn error(ratio: i64, part: i64) -> i64 {
    let [ratio, part, one] = [ratio, part, MILLION].map(i128::from);
    let error = (ratio - one) * one * one / (one * (one - part) + ratio * part).max(1);
    i64::try_from(error).unwrap_or(i64::MAX)
}
