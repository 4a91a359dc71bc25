//! Times that vary around a mean, in whole numbers.

use paternoster::Nanos;

use crate::random::Draws;

/// A time that varies around its mean, much as a normal distribution has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Varying {
    /// Its mean.
    pub mean: Nanos,
    /// Its standard deviation.
    pub deviation: Nanos,
}

impl Varying {
    /// Draws a time: the sum of four uniform parts, which lies within 3.46 deviations of the mean.
    ///
    /// `mean + deviation × √3 × Σ of four of (−½ … ½)`
    pub(super) fn draw(&self, draws: &mut Draws) -> Nanos {
        /// Four parts of −2¹⁵ … 2¹⁵ have a deviation of 2¹⁶ / √3.
        const SQRT_3_Q16: i64 = 113_512;
        let bits = draws.bits();
        let parts = (0..4).map(|part| ((bits >> (16 * part)) & 0xffff).cast_signed() - (1 << 15));
        let sum: i64 = parts.sum();
        let deviation = self.deviation.as_nanos().cast_signed();
        let by = (deviation * ((sum * SQRT_3_Q16) >> 16)) >> 16;
        Nanos::new(self.mean.as_nanos().saturating_add_signed(by))
    }
}

/// Draws whether something happens that happens so many times in 2³².
pub(super) fn happens(draws: &mut Draws, times_in_2_32: u32) -> bool {
    (draws.bits() >> 32) < u64::from(times_in_2_32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Who;

    /// Of 100,000 draws the mean errs by some 0.3 % of a deviation, and the deviation by 0.2 %: a
    /// bound of 2 % is six times that.
    #[test]
    fn drawn_times_have_their_mean_and_deviation() {
        let varying = Varying { mean: Nanos::new(55_000), deviation: Nanos::new(4_400) };
        let mut draws = Draws::new(7, Who::SolidState, 0);
        let count = 100_000_u32;
        #[allow(clippy::cast_precision_loss)] // times are far below 2⁵³
        let times: Vec<f64> =
            (0..count).map(|_| varying.draw(&mut draws).as_nanos() as f64).collect();
        let mean = times.iter().sum::<f64>() / f64::from(count);
        let square = times.iter().map(|time| (time - mean) * (time - mean)).sum::<f64>();
        let deviation = (square / f64::from(count)).sqrt();
        assert!((mean - 55_000.0).abs() < 0.02 * 4_400.0, "mean {mean}");
        assert!((deviation - 4_400.0).abs() < 0.02 * 4_400.0, "deviation {deviation}");
    }
}
