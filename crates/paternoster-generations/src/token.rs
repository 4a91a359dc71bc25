//! How a thread waits and is woken: by one word in memory, and a futex call where one is needed.
//! Both kinds of calls are counted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use paternoster_crossing::Wake;
use rustix::thread::futex;

/// A wake-up for one thread. One that comes before the thread waits is not lost: it then does not
/// wait.
#[derive(Debug, Default)]
pub(crate) struct Token {
    /// Whether a wake-up has come that the thread has not taken.
    word: AtomicU32,
    /// Futex calls of those who wake.
    wakes: AtomicU64,
    /// Futex calls of the thread.
    waits: AtomicU64,
}

impl Token {
    /// Waits for a wake-up, or so long; it may also return early.
    pub(crate) fn wait(&self, longest: Option<Duration>) {
        if self.word.swap(0, Ordering::Acquire) == 1 {
            return;
        }
        self.waits.fetch_add(1, Ordering::Relaxed);
        let longest = longest.and_then(|span| span.try_into().ok());
        // Whatever it says: somebody woke us, it is late, or a signal came. The caller looks.
        let _ = futex::wait(&self.word, futex::Flags::PRIVATE, 0, longest.as_ref());
        self.word.swap(0, Ordering::Acquire);
    }

    pub(crate) fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::Relaxed)
    }

    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }
}

impl Wake for Token {
    fn wake(&self) {
        if self.word.swap(1, Ordering::Release) == 0 {
            self.wakes.fetch_add(1, Ordering::Relaxed);
            futex::wake(&self.word, futex::Flags::PRIVATE, 1).expect("the word is in memory");
        }
    }
}
