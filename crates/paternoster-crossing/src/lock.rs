//! The one kind of lock of this crate: it counts. A lock that nobody waits for is still one that
//! all share, and a profile does not say so; the lock itself says how often it was taken, how often
//! somebody had to wait, and for how long.

#![allow(clippy::disallowed_types, reason = "the one place that has it")]

use std::iter::Sum;
use std::ops::{Deref, DerefMut};
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
    held_ns: AtomicU64,
    times_hold: bool,
    spins: bool,
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
    /// How long it was held, in all; nothing of a lock that was not made with
    /// [`timed`](Lock::timed).
    pub held: Duration,
}

/// A lock that is held. It ends with this.
#[derive(Debug)]
pub struct Guard<'a, T> {
    /// Dropped first, while the lock is still held.
    _held: Option<Held<'a>>,
    inner: MutexGuard<'a, T>,
}

/// Since when a lock is held, and where that is added up.
#[derive(Debug)]
struct Held<'a> {
    since: Instant,
    sum: &'a AtomicU64,
}

impl<T> Lock<T> {
    /// Makes a lock that nobody has taken.
    pub fn new(value: T) -> Self {
        Self {
            inner: Mutex::new(value),
            taken: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            held_ns: AtomicU64::new(0),
            times_hold: false,
            spins: false,
        }
    }

    /// Has it count for how long it is held, too. That takes two looks at the clock each time.
    #[must_use]
    pub fn timed(self) -> Self {
        Self { times_hold: true, ..self }
    }

    /// Has whoever waits for it keep the processor, as a kernel's spinlock does.
    #[must_use]
    pub fn spinning(self) -> Self {
        Self { spins: true, ..self }
    }

    /// Takes it. What somebody who panicked has left behind is taken as it is.
    pub fn lock(&self) -> Guard<'_, T> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        let inner = self.try_lock().unwrap_or_else(|| self.wait());
        let held = || Held { since: Instant::now(), sum: &self.held_ns };
        Guard { _held: self.times_hold.then(held), inner }
    }

    /// What it has counted so far.
    pub fn stats(&self) -> LockStats {
        LockStats {
            taken: self.taken.load(Ordering::Relaxed),
            contended: self.contended.load(Ordering::Relaxed),
            waited: Duration::from_nanos(self.waited_ns.load(Ordering::Relaxed)),
            held: Duration::from_nanos(self.held_ns.load(Ordering::Relaxed)),
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn wait(&self) -> MutexGuard<'_, T> {
        let begin = Instant::now();
        let guard = if self.spins {
            self.spin()
        } else {
            self.inner.lock().unwrap_or_else(PoisonError::into_inner)
        };
        self.contended.fetch_add(1, Ordering::Relaxed);
        add_since(&self.waited_ns, begin);
        guard
    }

    fn spin(&self) -> MutexGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            std::hint::spin_loop();
        }
    }
}

fn add_since(sum: &AtomicU64, begin: Instant) {
    let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    sum.fetch_add(nanos, Ordering::Relaxed);
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        add_since(self.sum, self.since);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl Sum for LockStats {
    /// What several locks have counted together.
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |sum, one| Self {
            taken: sum.taken + one.taken,
            contended: sum.contended + one.contended,
            waited: sum.waited + one.waited,
            held: sum.held + one.held,
        })
    }
}
