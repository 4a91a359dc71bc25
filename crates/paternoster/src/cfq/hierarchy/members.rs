//! How many compete in one place, and the sum of their weights.

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

    /// The part of `whole` that a member of that weight has.
    #[inline]
    pub(super) fn part(self, whole: u32, weight: u32) -> u32 {
        whole * weight / self.weight_sum
    }
}
