//! Whether I/O is synchronous, which is the first distinction that schedulers make.

use std::ops::{Index, IndexMut};

/// Whether a request, or a queue with all its requests, is synchronous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Synchrony {
    /// Asynchronous: for example, what is written back from a cache.
    Async = 0,
    /// Synchronous: every read, and writes that say so.
    Sync = 1,
}

impl Synchrony {
    /// Both, in the order of their indices.
    pub(crate) const ALL: [Self; 2] = [Self::Async, Self::Sync];

    /// Returns the synchrony of a bio, a request or a queue's name by its `is_sync`.
    #[inline]
    pub(crate) const fn of(is_sync: bool) -> Self {
        if is_sync { Self::Sync } else { Self::Async }
    }

    /// Returns whether it is synchronous.
    #[inline]
    pub(crate) const fn is_sync(self) -> bool {
        matches!(self, Self::Sync)
    }

    #[inline]
    const fn index(self) -> usize {
        self as usize
    }
}

/// A value for asynchronous I/O and one for synchronous I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BySynchrony<T>(pub(crate) [T; 2]);

impl<T> Index<Synchrony> for BySynchrony<T> {
    type Output = T;
    #[inline]
    fn index(&self, synchrony: Synchrony) -> &T {
        &self.0[synchrony.index()]
    }
}

impl<T> IndexMut<Synchrony> for BySynchrony<T> {
    #[inline]
    fn index_mut(&mut self, synchrony: Synchrony) -> &mut T {
        &mut self.0[synchrony.index()]
    }
}
