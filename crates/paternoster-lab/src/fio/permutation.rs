//! An order in which each of many numbers comes once, without a list of them.
//!
//! A Feistel network over the next power of four shuffles; numbers beyond the end are shuffled
//! again until one is not. That is at most four times on average.
//!
//! ```text
//!   left │ right ──▶ right │ left ^ mix(right + key)      a round; there are eight
//! ```

use paternoster_model::Draws;

const ROUNDS: usize = 8;

/// A permutation of the numbers below an end.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    end: u64,
    /// The bits of a half of a number.
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A drawn permutation of the numbers below `end`, of which there is one.
    pub(super) fn new(end: u64, draws: &mut Draws) -> Self {
        assert!(end > 0, "there is a number");
        let bits = u64::BITS - (end - 1).leading_zeros();
        let keys = std::array::from_fn(|_| draws.bits());
        Self { end, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// How many numbers there are.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The number at `index`, which is below the end.
    pub(super) fn at(&self, index: u64) -> u64 {
        assert!(index < self.end, "{index} is below {}", self.end);
        let mut number = index;
        loop {
            number = self.shuffle(number);
            if number < self.end {
                return number;
            }
        }
    }

    fn shuffle(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right.wrapping_add(key)) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// The last step of the generator `SplitMix64`.
fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster_model::Who;

    #[test]
    fn each_number_comes_once() {
        for end in (1..70).chain([1000, 4096, 4097]) {
            let order = Permutation::new(end, &mut Draws::new(end, Who::Job, 0));
            let mut seen: Vec<_> = (0..end).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..end).collect::<Vec<_>>(), "of {end}");
        }
    }

    /// Of n numbers in any order, the mean distance between neighbours is (n + 1) / 3, and its
    /// deviation over n draws is about n × 0.24 / √n: 4 of those are 1.5 % of n at 4096.
    #[test]
    #[allow(clippy::cast_precision_loss, reason = "some thousands")]
    fn neighbours_are_as_far_from_each_other_as_drawn_ones() {
        let end = 4096;
        let order = Permutation::new(end, &mut Draws::new(7, Who::Job, 0));
        let distances = (1..end).map(|index| order.at(index).abs_diff(order.at(index - 1)));
        let mean = distances.sum::<u64>() as f64 / (end - 1) as f64;
        let wanted = (end + 1) as f64 / 3.0;
        assert!((mean - wanted).abs() < 0.015 * end as f64, "{mean} for {wanted}");
    }

    #[test]
    fn seeds_give_different_orders() {
        let order = |seed| {
            let order = Permutation::new(1000, &mut Draws::new(seed, Who::Job, 0));
            (0..1000).map(|index| order.at(index)).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        let (one, two) = (order(1), order(2));
        let same = one.iter().zip(&two).filter(|(a, b)| a == b).count();
        assert!(same < 10, "{same} of 1000, where 1 is expected");
    }
}
