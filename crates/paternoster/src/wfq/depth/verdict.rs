//! What a trial has shown: whether another depth is better by enough.
//!
//! Each pair of windows gives r, how much more the probe did than the depth that holds:
//! r = 2 (X′ − X) / (X′ + X). Of n pairs the n/5 greatest and least are dropped. The mean m of the
//! others is compared with a threshold θ: *sure* is (m − θ)² > 1.5² V / n + 0.003².
//!
//! A mean that is too good to be true is not believed of a few pairs: it takes all of them.

/// The pairs at which a trial ends, sure or not.
pub(super) const MOST_PAIRS: usize = 16;

/// The pairs before which nothing is sure.
pub(super) const LEAST_PAIRS: usize = 3;

/// What is always taken for noise, in ppm.
const NOISE: i128 = 3_000;

/// Parts in a million, of which a ratio has fewer or more than all.
pub(super) const MILLION: i64 = 1_000_000;

/// What a trial compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The least mean, in ppm, with which the probe is accepted.
    pub(super) threshold: i64,
    /// The greatest mean, in ppm, that a device is likely to have: one above it is sure only at the
    /// end.
    pub(super) likely: i64,
    /// The same if nothing is sure at the end; none if the probe is then rejected.
    pub(super) if_unsure: Option<i64>,
    /// The pairs before which the probe is not accepted; [`LEAST_PAIRS`] or more.
    pub(super) least_pairs: usize,
}

/// What the pairs say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) accepted: bool,
    /// The mean, in ppm.
    pub(super) mean: i64,
}

/// Returns by how many ppm `probe` is more than `base`, as a part of their mean.
pub(super) fn relative(probe: u64, base: u64) -> i64 {
    let (probe, base) = (i128::from(probe), i128::from(base));
    let ratio = 2 * i128::from(MILLION) * (probe - base) / (probe + base).max(1);
    i64::try_from(ratio).expect("at most two million ppm")
}

/// Returns the answer of the pairs so far; none while they do not suffice.
pub(super) fn answer(pairs: &[i64], question: Question) -> Option<Answer> {
    if pairs.len() < LEAST_PAIRS {
        return None;
    }
    let mut sorted = pairs.to_vec();
    sorted.sort_unstable();
    let trim = sorted.len() / 5;
    let kept: Vec<i128> = sorted[trim..sorted.len() - trim].iter().map(|&r| r.into()).collect();
    let count = i128::try_from(kept.len()).expect("at most 16");
    let mean = kept.iter().sum::<i128>() / count;
    let variance = kept.iter().map(|r| (r - mean) * (r - mean)).sum::<i128>() / (count - 1);
    let distance = mean - i128::from(question.threshold);
    let sure = distance * distance > 9 * variance / (4 * count) + NOISE * NOISE;
    let mean = i64::try_from(mean).expect("a mean of i64");
    let is_likely = mean <= question.likely;
    let is_better = mean > question.threshold;
    let suffice = !is_better || (is_likely && pairs.len() >= question.least_pairs);
    let accepted = if sure && (suffice || pairs.len() >= MOST_PAIRS) {
        is_better
    } else if pairs.len() >= MOST_PAIRS {
        is_likely && question.if_unsure.is_some_and(|least| mean > least)
    } else {
        return None;
    };
    Some(Answer { accepted, mean })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Question =
        Question { threshold: 20_000, likely: 700_000, if_unsure: None, least_pairs: LEAST_PAIRS };

    #[test]
    fn ratio_is_part_of_the_mean_of_both() {
        assert_eq!(relative(3, 1), MILLION);
        assert_eq!(relative(1, 3), -MILLION);
        assert_eq!(relative(5, 5), 0);
    }

    #[test]
    fn equal_pairs_are_sure_at_once_and_others_once_their_mean_is_far_enough() {
        let question = Question { threshold: 66_667, ..UP };
        assert_eq!(answer(&[0, 0], question), None, "two pairs are too few");
        let rejected = Some(Answer { accepted: false, mean: 0 });
        assert_eq!(answer(&[0, 0, 0], question), rejected);
        // The deviation is 60,000, a third of the variance times 2.25 is 2.7 × 10⁹, and the
        // distance, 46,667 squared, 2.2 × 10⁹.
        assert_eq!(answer(&[-40_000, 20_000, 80_000], question), None);
        let sure = [-40_000, 20_000, 80_000].repeat(2);
        assert_eq!(answer(&sure, question).map(|answer| answer.accepted), Some(false));
    }

    #[test]
    fn outliers_are_dropped_at_both_ends() {
        let question = Question { threshold: 10_000, ..UP };
        let answer = answer(&[50_000, 50_000, 50_000, -900_000, 900_000], question);
        assert_eq!(answer, Some(Answer { accepted: true, mean: 50_000 }));
    }

    #[test]
    fn what_is_never_sure_ends_by_its_mean() {
        let wild: Vec<i64> =
            (0..16).map(|at| if at % 2 == 0 { 300_000 } else { -300_000 }).collect();
        assert_eq!(answer(&wild[..15], Question { threshold: -20_000, ..UP }), None);
        assert_eq!(answer(&wild, UP), Some(Answer { accepted: false, mean: 0 }));
        let down = Question { threshold: -20_000, if_unsure: Some(-10_000), ..UP };
        assert_eq!(answer(&wild, down), Some(Answer { accepted: true, mean: 0 }));
    }

    /// What is worse is rejected after three all the same.
    #[test]
    fn what_is_better_takes_as_many_pairs_as_are_asked_for() {
        let question = Question { threshold: -24_000, least_pairs: 8, ..UP };
        for pairs in 3..8 {
            assert_eq!(answer(&vec![10_000; pairs], question), None, "{pairs} pairs");
        }
        assert_eq!(answer(&[10_000; 8], question).map(|answer| answer.accepted), Some(true));
        assert_eq!(answer(&[-90_000; 3], question).map(|answer| answer.accepted), Some(false));
    }

    /// From 3 to 2 the device seemed to gain two thirds in each of some pairs: windows in which the
    /// scheduler had its core beside windows in which it had not.
    #[test]
    fn what_is_too_good_to_be_true_takes_all_pairs() {
        let down = Question { threshold: -24_000, likely: 440_000, if_unsure: Some(-80_000), ..UP };
        for pairs in 3..MOST_PAIRS {
            assert_eq!(answer(&vec![666_667; pairs], down), None, "{pairs} pairs");
        }
        let sure = answer(&[666_667; MOST_PAIRS], down);
        assert_eq!(sure, Some(Answer { accepted: true, mean: 666_667 }));
        let wild: Vec<i64> =
            (0..16).map(|at| if at % 2 == 0 { 1_999_000 } else { -1_000_000 }).collect();
        let unsure = answer(&wild, down);
        assert_eq!(unsure, Some(Answer { accepted: false, mean: 499_500 }));
    }
}
