//! Which of the last 32 requests were seeks: far from the request before, or by another rule of
//! their scheduler.

/// The last 32 verdicts, the newest in the lowest bit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeekHistory(u32);

impl SeekHistory {
    /// Every verdict is a seek.
    const ALL: u32 = u32::MAX;

    /// A history whose newest verdict alone is a seek.
    pub(crate) const ONE_SEEK: Self = Self(1);

    /// Returns whether all of them were seeks.
    #[inline]
    pub(crate) fn all_seeks(self) -> bool {
        self.0 == Self::ALL
    }

    /// Adds a verdict and drops the oldest.
    #[inline]
    pub(crate) fn push(&mut self, seek: bool) {
        self.0 = self.0 << 1 | u32::from(seek);
    }

    /// Returns how many of them were seeks.
    #[inline]
    pub(crate) fn seeks(self) -> u32 {
        self.0.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one that a new history may begin with is the newest, and so the last to be forgotten.
    #[test]
    fn history_of_seeks_alone_needs_32_of_them() {
        for (mut history, needed) in [(SeekHistory::default(), 32), (SeekHistory::ONE_SEEK, 31)] {
            for seek in 0..needed {
                assert!(!history.all_seeks(), "{seek}");
                history.push(true);
            }
            assert!(history.all_seeks());
        }
        let mut history = SeekHistory::ONE_SEEK;
        (0..31).for_each(|_| history.push(false));
        assert_eq!(history.seeks(), 1);
        history.push(false);
        assert_eq!(history.seeks(), 0);
    }

    #[test]
    fn the_last_32_verdicts_count() {
        let mut history = SeekHistory::default();
        (0..40).for_each(|_| history.push(true));
        assert_eq!(history.seeks(), 32);
        (0..30).for_each(|_| history.push(false));
        assert_eq!(history.seeks(), 2);
    }
}
