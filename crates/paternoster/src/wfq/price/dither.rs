//! Prices that are a little higher or lower than those that hold, by turns.
//!
//! ```text
//!   window   0  1  2  3  4  5  6  7
//!   bytes    +  −  −  +  +  −  −  +     + × 5/4, − × 4/5
//!   writes   +  +  −  −  −  −  +  +     each is balanced against each other,
//!   FUA      +  −  +  −  −  +  −  +     and a steady drift of the device cancels in each
//! ```
//!
//! If all tenants are alike nothing follows. If not, who uses what is dearer gets less of the
//! device for a window. In blocks with a trial of the depth prices stand still: a trial compares
//! windows of one price, and prices compare windows of one depth.

/// Whether a price is higher or lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

impl Sign {
    /// Returns the price with this sign.
    pub(super) fn of(self, price: u64) -> u64 {
        match self {
            Self::Plus => price * 5 / 4,
            Self::Minus => price * 4 / 5,
        }
    }

    fn in_pattern(pattern: u8, window: u64) -> Self {
        if pattern >> (window % 8) & 1 == 1 { Self::Plus } else { Self::Minus }
    }
}

/// The signs of a window, the same all along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signs {
    /// Of the price of a byte.
    pub(super) bytes: Sign,
    /// Of the factor of writes.
    pub(super) write: Sign,
    /// Of the factor of writes with FUA.
    pub(super) fua: Sign,
}

/// A bit for each window of a block, the first one lowest: 1 is plus.
const PATTERNS: [u8; 3] = [0b1001_1001, 0b1100_0011, 0b1010_0101];

impl Signs {
    /// The signs of window `number`.
    pub(super) fn of_window(number: u64) -> Self {
        let [bytes, write, fua] = PATTERNS.map(|pattern| Sign::in_pattern(pattern, number));
        Self { bytes, write, fua }
    }
}

/// Whether each price is higher in window `at` of a block, in the order of `PARTS` (`learning.rs`).
pub(super) fn is_plus(at: usize) -> [bool; 3] {
    PATTERNS.map(|pattern| pattern >> at & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(pattern: u8) -> [i32; 8] {
        std::array::from_fn(|at| if pattern >> at & 1 == 1 { 1 } else { -1 })
    }

    #[test]
    fn each_pattern_is_balanced_against_the_others_and_against_a_drift() {
        for (index, pattern) in PATTERNS.into_iter().enumerate() {
            let signs = signs(pattern);
            assert_eq!(signs.iter().sum::<i32>(), 0);
            let drift: i32 = (0..8).zip(signs).map(|(at, sign)| at * sign).sum();
            assert_eq!(drift, 0, "{pattern:b}");
            for other in &PATTERNS[..index] {
                let product = signs.iter().zip(self::signs(*other)).map(|(a, b)| a * b);
                assert_eq!(product.sum::<i32>(), 0, "{pattern:b} and {other:b}");
            }
        }
    }

    #[test]
    fn patterns_are_those_of_the_picture() {
        let shown = |pattern| {
            let plus = |sign: i32| if sign > 0 { '+' } else { '-' };
            signs(pattern).map(plus).into_iter().collect::<String>()
        };
        assert_eq!(PATTERNS.map(shown), ["+--++--+", "++----++", "+-+--+-+"]);
    }
}
