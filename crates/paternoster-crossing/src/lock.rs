//! The one kind of lock of this crate: it counts. A lock that nobody waits for is still one that
//! all share, and a profile does not say so; the lock itself says how often it was taken, how often
//! somebody had to wait, and for how long.

#![allow(clippy::disallowed_types, reason = "the one place that has it")]

use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// A lock that counts.
#[derive(Debug, Default)]
pub struct Lock<T> {
    inner: Mutex<T>,
    taken: AtomicU64,
    contended: AtomicU64,
    waited_ns: AtomicU64,
}

/// What a lock has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockStats {
    /// How often it was taken.
    pub taken: u64,
    /// How often somebody had to wait for it.
    pub contended: u64,
    /// How long they waited, in all.
    pub waited: Duration,
}

impl<T> Lock<T> {
    /// Makes a lock that nobody has taken.
    pub fn new(value: T) -> Self {
        Self {
            inner: Mutex::new(value),
            taken: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// Takes it. What somebody who panicked has left behind is taken as it is.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait(),
        }
    }

    /// What it has counted so far.
    pub fn stats(&self) -> LockStats {
        LockStats {
            taken: self.taken.load(Ordering::Relaxed),
            contended: self.contended.load(Ordering::Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed)),
        }
    }

    fn wait(&self) -> MutexGuard<'_, T> {
        let begin = Instant::now();
        let guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.contended.fetch_add(1, Ordering::Relaxed);
        self.waited_ns.fetch_add(waited, Ordering::Relaxed);
        guard
    }
}
