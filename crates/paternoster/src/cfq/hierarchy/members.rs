//! How many compete in one place, and the sum of their weights.

use crate::time::Nanos;

/// Those that compete. Each takes its part by weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    count: u32,
    /// The sum of their weights, each as it was when its member was added.
    weight_sum: u32,
}

impl Members {
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.count == 0
    }

    #[inline]
    pub(super) fn add(&mut self, weight: u32) {
        self.count += 1;
        self.weight_sum += weight;
    }

    #[inline]
    pub(super) fn remove(&mut self, weight: u32) {
        self.count -= 1;
        self.weight_sum -= weight;
    }

    /// The sum of their weights.
    pub(super) fn weight_sum(self) -> u32 {
        self.weight_sum
    }

    /// The part of `whole` that a member of that weight has.
    #[inline]
    pub(super) fn part(self, whole: u32, weight: u32) -> u32 {
        whole * weight / self.weight_sum
    }

    /// The part of `span` that a member of that weight has.
    pub(super) fn part_of_span(self, span: Nanos, weight: u32) -> Nanos {
        Nanos::new(span.as_nanos() * u64::from(weight) / u64::from(self.weight_sum))
    }
}

impl FromIterator<u32> for Members {
    /// Members of these weights.
    fn from_iter<I: IntoIterator<Item = u32>>(weights: I) -> Self {
        let mut members = Self::default();
        weights.into_iter().for_each(|weight| members.add(weight));
        members
    }
}
