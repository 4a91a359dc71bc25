//! Which block is next where blocks may be drawn again: a sampler for each distribution.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a block drawn may be off by one in 2^53, and is bounded"
)]

use std::cmp;

use super::files::part_of;
use super::job::{DataDirection, Distribution};
use super::permutation::Permutation;
use paternoster_model::Draws;

/// How often a bell curve is drawn until a block is in the region. A middle at its border with a
/// deviation of nearly 0 might never be.
const BELL_DRAWS: u32 = 64;

/// Draws blocks of a region.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    /// All alike.
    Uniform { blocks: u64 },
    /// By rank.
    Zipf { ranks: Zipf, scatter: Scatter },
    /// Block `blocks` × u^power for a draw u.
    Pareto { power: f64, scatter: Scatter },
    /// Around a middle.
    Normal { blocks: u64, middle: f64, deviation: f64 },
    /// Zones with the end of their part of a hundred draws, and what the parts add up to.
    Zoned { zones: Vec<ZoneBlocks>, parts: u64 },
}

/// The blocks of a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneBlocks {
    /// How many of `parts` draws end with this zone.
    end: u64,
    first: u64,
    blocks: u64,
}

impl Sampler {
    /// A sampler of `blocks` blocks of `block_bytes` bytes.
    pub(super) fn new(
        distribution: &Distribution,
        direction: DataDirection,
        blocks: u64,
        block_bytes: u64,
        draws: &mut Draws,
    ) -> Self {
        match distribution {
            Distribution::Uniform => Self::Uniform { blocks },
            &Distribution::Zipf { theta, center } => {
                let scatter = Scatter::new(blocks, center, draws);
                Self::Zipf { ranks: Zipf::new(blocks, theta), scatter }
            }
            &Distribution::Pareto { h, center } => {
                let power = libm::log(h) / libm::log(1.0 - h);
                Self::Pareto { power, scatter: Scatter::new(blocks, center, draws) }
            }
            &Distribution::Normal { deviation, center } => Self::Normal {
                blocks,
                middle: center * blocks as f64,
                deviation: deviation / 100.0 * blocks as f64,
            },
            Distribution::Zoned(zones) => {
                let bytes = blocks.saturating_mul(block_bytes);
                let (mut parts, mut first, mut end_bytes) = (0, 0, 0_u64);
                let mut laid = vec![];
                for zone in &zones[direction as usize] {
                    end_bytes = end_bytes.saturating_add(part_of(zone.size, bytes));
                    // A zone that begins behind the region gets no draws.
                    if first >= blocks {
                        break;
                    }
                    let end = (end_bytes / block_bytes).clamp(first + 1, blocks);
                    parts += u64::from(zone.percent);
                    laid.push(ZoneBlocks { end: parts, first, blocks: end - first });
                    first = end;
                }
                Self::Zoned { zones: laid, parts }
            }
        }
    }

    /// Draws a block.
    pub(super) fn draw(&self, draws: &mut Draws) -> u64 {
        match self {
            &Self::Uniform { blocks } => draws.below(blocks),
            Self::Zipf { ranks, scatter } => scatter.place(ranks.draw(draws)),
            Self::Pareto { power, scatter } => {
                let block = scatter.blocks() as f64 * libm::pow(draws.unit(), *power);
                scatter.place(cmp::min(block as u64, scatter.blocks() - 1))
            }
            &Self::Normal { blocks, middle, deviation } => {
                let inside = 0.0..blocks as f64;
                let draws = (0..BELL_DRAWS).map(|_| middle + deviation * bell(draws));
                match draws.into_iter().find(|block| inside.contains(block)) {
                    Some(block) => block as u64,
                    None => cmp::min(middle as u64, blocks - 1),
                }
            }
            // No zone that is there has draws.
            Self::Zoned { zones, parts: 0 } => zones[0].first + draws.below(zones[0].blocks),
            Self::Zoned { zones, parts } => {
                let part = draws.below(*parts);
                let zone = zones.iter().find(|zone| part < zone.end).expect("the last ends them");
                zone.first + draws.below(zone.blocks)
            }
        }
    }
}

/// A draw of the bell curve around 0 with deviation 1, by Box and Muller.
fn bell(draws: &mut Draws) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - draws.unit())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * draws.unit())
}

/// Where ranks lie in a region.
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    order: Permutation,
    /// What is added, modulo the number of blocks, so that the first rank is where it should be.
    shift: u64,
}

impl Scatter {
    fn new(blocks: u64, center: Option<f64>, draws: &mut Draws) -> Self {
        let order = Permutation::new(blocks, draws);
        let shift = center.map_or(0, |center| {
            let block = cmp::min((center * blocks as f64) as u64, blocks - 1);
            (block + blocks - order.at(0)) % blocks
        });
        Self { order, shift }
    }

    fn blocks(&self) -> u64 {
        self.order.end()
    }

    /// The block of a rank, which is counted from 0.
    fn place(&self, rank: u64) -> u64 {
        (self.order.at(rank) + self.shift) % self.blocks()
    }
}

/// Draws ranks r from 1 on in proportion to r^-theta, by the method of rejection and inversion
/// (Hörmann and Derflinger, 1996).
///
/// ```text
///   H(x) = ∫ x^-theta dx = (x^(1-theta) - 1) / (1 - theta)
///   u is drawn between H(3/2) - 1 and H(ranks + 1/2); x = H⁻¹(u); r is x rounded;
///   r is taken if u ≥ H(r + 1/2) - r^-theta
/// ```
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    ranks: u64,
    /// 1 - theta.
    exponent: f64,
    /// The bounds of u.
    bounds: (f64, f64),
}

impl Zipf {
    fn new(ranks: u64, theta: f64) -> Self {
        let mut zipf = Self { ranks, exponent: 1.0 - theta, bounds: (0.0, 0.0) };
        zipf.bounds = (zipf.integral(1.5) - 1.0, zipf.integral(ranks as f64 + 0.5));
        zipf
    }

    /// Draws a rank, counted from 0.
    fn draw(&self, draws: &mut Draws) -> u64 {
        let (low, high) = self.bounds;
        loop {
            let u = high + draws.unit() * (low - high);
            let rank = (self.inverse(u) + 0.5).clamp(1.0, self.ranks as f64).trunc();
            if u >= self.integral(rank + 0.5) - libm::pow(rank, self.exponent - 1.0) {
                return rank as u64 - 1;
            }
        }
    }

    fn integral(&self, x: f64) -> f64 {
        libm::expm1(self.exponent * libm::log(x)) / self.exponent
    }

    fn inverse(&self, u: f64) -> f64 {
        // It is -1 where x is endless, and must not be rounded below.
        libm::exp(libm::log1p((self.exponent * u).max(-1.0)) / self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fio::job::Zone;
    use crate::fio::value::Extent;
    use paternoster_model::Who;

    const DRAWS: u64 = 100_000;

    /// How often each block is drawn.
    fn counts(distribution: &Distribution, blocks: u64) -> Vec<u64> {
        let draws = &mut Draws::new(11, Who::Job, 0);
        let sampler = Sampler::new(distribution, DataDirection::Read, blocks, 4096, draws);
        let mut counts = vec![0; usize::try_from(blocks).expect("few")];
        for _ in 0..DRAWS {
            counts[usize::try_from(sampler.draw(draws)).expect("few")] += 1;
        }
        counts
    }

    /// Whether `count` of `DRAWS` is what a probability says, within five deviations
    /// √(p (1 - p) draws).
    fn is_near(count: u64, probability: f64) -> bool {
        let mean = probability * DRAWS as f64;
        (count as f64 - mean).abs() <= 5.0 * (mean * (1.0 - probability)).sqrt()
    }

    /// The probability of rank r among n is r^-theta over the sum of all, added up here.
    #[test]
    fn zipf_draws_each_rank_in_proportion() {
        for theta in [0.5, 0.9, 1.2, 3.0] {
            let mut counts = counts(&Distribution::Zipf { theta, center: None }, 50);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let sum: f64 = (1..=50).map(|rank| libm::pow(f64::from(rank), -theta)).sum();
            for rank in 1..=4 {
                let probability = libm::pow(f64::from(rank), -theta) / sum;
                let count = counts[rank as usize - 1];
                assert!(is_near(count, probability), "rank {rank} of {theta}: {count}");
            }
        }
    }

    #[test]
    fn zipf_of_0_is_uniform_and_its_center_is_the_block_drawn_most() {
        let even = counts(&Distribution::Zipf { theta: 0.0, center: None }, 10);
        assert!(even.iter().all(|&count| is_near(count, 0.1)), "{even:?}");
        let counts = counts(&Distribution::Zipf { theta: 1.2, center: Some(0.25) }, 100);
        let most = counts.iter().enumerate().max_by_key(|(_, count)| **count);
        assert_eq!(most.map(|(block, _)| block), Some(25));
    }

    /// With h = 0.2, a fifth of the blocks gets four fifths of the draws; within that fifth again.
    #[test]
    fn pareto_gives_a_part_of_the_blocks_the_rest_of_the_draws() {
        let mut counts = counts(&Distribution::Pareto { h: 0.2, center: None }, 1000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // Sorting puts lucky blocks first among those drawn rarely, where it hardly matters.
        let among = |blocks: usize| counts[..blocks].iter().sum::<u64>() as f64 / DRAWS as f64;
        assert!((among(200) - 0.8).abs() < 0.02, "{}", among(200));
        assert!((among(40) - 0.64).abs() < 0.01, "{}", among(40));
    }

    /// 68.3 % of a bell curve are within a deviation of its middle.
    #[test]
    fn normal_has_its_deviation_and_its_center() {
        let counts = counts(&Distribution::Normal { deviation: 5.0, center: 0.25 }, 1000);
        let within: u64 = counts[200..300].iter().sum();
        assert!(is_near(within, 0.6827), "{within}");
        assert_eq!(counts[600..].iter().sum::<u64>(), 0, "seven deviations away");
    }

    /// The example of fio's HOWTO.
    #[test]
    fn zones_get_their_percent() {
        let zone = |percent, size| Zone { percent, size: Extent::Percent(size) };
        let zones = vec![zone(60, 10), zone(30, 20), zone(8, 30), zone(2, 40)];
        let counts = counts(&Distribution::Zoned(Arc::new([zones, vec![], vec![]])), 100);
        let among = |blocks: std::ops::Range<usize>| counts[blocks].iter().sum::<u64>();
        assert!(is_near(among(0..10), 0.6), "{}", among(0..10));
        assert!(is_near(among(10..30), 0.3), "{}", among(10..30));
        assert!(is_near(among(30..60), 0.08), "{}", among(30..60));
        assert!(is_near(among(60..100), 0.02), "{}", among(60..100));
        assert!(is_near(counts[5], 0.06), "even within a zone: {}", counts[5]);
    }

    #[test]
    fn zone_behind_the_region_gets_no_draws() {
        let zone = |percent, blocks: u64| Zone { percent, size: Extent::Bytes(blocks * 4096) };
        let zones = vec![zone(10, 5), zone(10, 50), zone(80, 50)];
        let counts = counts(&Distribution::Zoned(Arc::new([zones, vec![], vec![]])), 10);
        let first: u64 = counts[..5].iter().sum();
        assert!(is_near(first, 0.5), "{first}");
    }
}
