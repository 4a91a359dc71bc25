//! Which of the last 32 requests were far from the one before them, or whatever else their
//! scheduler calls a seek.

/// The last 32 verdicts, the newest in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeekHistory(u32);

impl SeekHistory {
    /// All verdicts are that there was a seek.
    const ALL: u32 = u32::MAX;

    /// A history whose newest verdict was a seek, and the others not.
    pub(crate) const ONE_SEEK: Self = Self(1);

    /// Whether all of them were seeks.
    #[inline]
    pub(crate) fn all_seeks(self) -> bool {
        self.0 == Self::ALL
    }

    /// Adds a verdict; the oldest is forgotten.
    #[inline]
    pub(crate) fn push(&mut self, seek: bool) {
        self.0 = self.0 << 1 | u32::from(seek);
    }

    /// How many of them were seeks.
    #[inline]
    pub(crate) fn seeks(self) -> u32 {
        self.0.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_32_verdicts_count() {
        let mut history = SeekHistory::default();
        (0..40).for_each(|_| history.push(true));
        assert_eq!(history.seeks(), 32);
        (0..30).for_each(|_| history.push(false));
        assert_eq!(history.seeks(), 2);
    }
}
