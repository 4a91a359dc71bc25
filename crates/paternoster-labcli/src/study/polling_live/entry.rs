//! The one entry of the queue between who waits and the device, and the device's bell.
//!
//! ```text
//!   who waits                               device
//!     submitted_at, submitted += 1  ──────▶   spins on `submitted`; does the I/O
//!     looks at `done`, or                     done_at := the clock, done += 1
//!     asleep := true, looks once more  ◀───   asleep? then wakes it: an interrupt
//! ```
//!
//! Each side writes, then reads what the other writes, with a fence between: at least one of them
//! sees the other, and no wake-up is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread::{self, Thread};

use paternoster::Instant;

/// What one side writes, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Side {
    /// I/Os.
    count: AtomicU64,
    /// The moment of the last one.
    at: AtomicU64,
    /// It does nothing more: who waits has no more I/Os, or the device failed.
    ended: AtomicBool,
}

/// One I/O after the other.
#[derive(Debug)]
pub(super) struct Entry {
    submitted: Side,
    done: Side,
    /// Who waits wants an interrupt.
    asleep: AtomicBool,
    interrupts: AtomicU64,
    /// Who waits.
    waiter: Thread,
}

impl Entry {
    /// For this thread, which is the one that waits.
    pub(super) fn new() -> Self {
        Self {
            submitted: Side::default(),
            done: Side::default(),
            asleep: AtomicBool::new(false),
            interrupts: AtomicU64::new(0),
            waiter: thread::current(),
        }
    }

    /// Gives the device an I/O.
    pub(super) fn submit(&self, at: Instant) {
        self.submitted.at.store(at.as_nanos(), Ordering::Relaxed);
        self.submitted.count.fetch_add(1, Ordering::Release);
    }

    /// Gives the device no more.
    pub(super) fn end(&self) {
        self.submitted.ended.store(true, Ordering::Release);
    }

    /// When the device was done with the I/O; none where it is not. Nobody waits for a device that
    /// failed: its moment means nothing.
    pub(super) fn done_at(&self) -> Option<Instant> {
        let done = self.done.count.load(Ordering::Acquire);
        let is_done = done == self.submitted.count.load(Ordering::Relaxed) || self.has_failed();
        is_done.then(|| Instant::from_nanos(self.done.at.load(Ordering::Relaxed)))
    }

    /// Sleeps until the device rings. May return early.
    pub(super) fn block(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.done_at().is_none() {
            thread::park();
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// How often the device woke who waits.
    pub(super) fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// Whether the device does nothing more.
    pub(super) fn has_failed(&self) -> bool {
        self.done.ended.load(Ordering::Acquire)
    }

    /// The device's: spins until there is an I/O, and says when it was submitted; none where no
    /// more comes.
    pub(super) fn take(&self) -> Option<Instant> {
        let done = self.done.count.load(Ordering::Relaxed);
        while self.submitted.count.load(Ordering::Acquire) == done {
            if self.submitted.ended.load(Ordering::Acquire) {
                return None;
            }
            std::hint::spin_loop();
        }
        Some(Instant::from_nanos(self.submitted.at.load(Ordering::Relaxed)))
    }

    /// The device's: says that it was done then, and wakes who sleeps.
    pub(super) fn publish(&self, at: Instant) {
        self.done.at.store(at.as_nanos(), Ordering::Relaxed);
        self.done.count.fetch_add(1, Ordering::Release);
        self.ring();
    }

    /// The device's: says that it does nothing more.
    pub(super) fn fail(&self) {
        self.done.ended.store(true, Ordering::Release);
        self.ring();
    }

    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::Relaxed) {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
            self.waiter.unpark();
        }
    }
}
