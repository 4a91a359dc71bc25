//! How far what a sample of times leads one to expect is to be believed.
//!
//! A sample that by chance has too few fast I/Os allows too long a sleep, and stays the same for
//! tens of thousands of I/Os. What it leads to is seen sooner: of 4096 I/Os slept for, the misses
//! are known to a tenth, and the latency added is about that expected, as much more as misses are
//! more. If that is a seventh beyond what is allowed, or misses are by two fifths, a fifth less is
//! allowed from then on; and a tenth more, up to all of it, when it is not.

use super::choose::Effects;
use super::policy::Ppm;

/// I/Os slept for before they are judged.
const PERIOD: u32 = 4096;
/// What is left at least.
const LEAST: Ppm = Ppm(250_000);

#[derive(Debug)]
pub(super) struct Trust {
    part: Ppm,
    slept: u32,
    misses: u32,
    /// Misses that were expected, in millionths.
    expected: u64,
    /// Latency that they were expected to add, for all, in millionths of the mean time.
    added: u64,
}

impl Default for Trust {
    fn default() -> Self {
        Self { part: Ppm::ONE, slept: 0, misses: 0, expected: 0, added: 0 }
    }
}

impl Trust {
    /// What part of the allowance to use.
    pub(super) fn part(&self) -> Ppm {
        self.part
    }

    /// What part of the I/Os slept for has been missed lately; nothing before 512 of them.
    pub(super) fn misses(&self) -> Ppm {
        if self.slept < 512 {
            return Ppm(0);
        }
        let part = u64::from(self.misses) * 1_000_000 / u64::from(self.slept);
        Ppm(u32::try_from(part).expect("at most all of them"))
    }

    /// Notes I/Os that were slept for, what was expected of their sleep, and what is allowed.
    pub(super) fn note(&mut self, slept: u32, misses: u32, outlook: Effects, allowed: Effects) {
        let all = |part: Ppm| u64::from(slept) * u64::from(part.0);
        self.slept += slept;
        self.misses += misses;
        self.expected += all(outlook.misses);
        self.added += all(outlook.added);
        if self.slept < PERIOD {
            return;
        }
        let all = |part: Ppm| u128::from(self.slept) * u128::from(part.0);
        let misses = u128::from(self.misses) * 1_000_000;
        let added = u128::from(self.added) * misses / u128::from(self.expected.max(1));
        let Ppm(part) = self.part;
        let is_too_much =
            added * 7 > all(allowed.added) * 8 || misses * 5 > all(allowed.misses) * 7;
        self.part = if is_too_much {
            Ppm((part - part / 5).max(LEAST.0))
        } else {
            Ppm((part + part / 10).min(Ppm::ONE.0))
        };
        *self = Self { part: self.part, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// δ = 0.4 %, μ = 5 %. A sleep that is expected to add 0.4 % with 2 % of misses adds 0.45 %
    /// with 2.25, and 0.46 with 2.3; the bound is 0.457.
    #[test]
    fn more_misses_than_expected_leave_less_of_the_allowance() {
        let allowed = Effects { added: Ppm(4_000), misses: Ppm(50_000) };
        let outlook = Effects { added: Ppm(4_000), misses: Ppm(20_000) };
        let mut trust = Trust::default();
        let mut note = |per_ten_thousand: u32| {
            trust.note(10_000, per_ten_thousand, outlook, allowed);
            trust.part().0
        };
        assert_eq!(note(225), 1_000_000);
        assert_eq!(note(230), 800_000);
        assert_eq!(note(225), 880_000);
        (0..20).for_each(|_| _ = note(900));
        assert_eq!(note(900), LEAST.0);
    }

    /// Misses of next to nothing each: 7 % of them are the bound.
    #[test]
    fn misses_are_bounded_by_themselves() {
        let allowed = Effects { added: Ppm(4_000), misses: Ppm(50_000) };
        let outlook = Effects { added: Ppm(1_000), misses: Ppm(50_000) };
        let mut trust = Trust::default();
        trust.note(10_000, 700, outlook, allowed);
        assert_eq!(trust.part(), Ppm::ONE);
        trust.note(10_000, 701, outlook, allowed);
        assert_eq!(trust.part(), Ppm(800_000));
    }
}
