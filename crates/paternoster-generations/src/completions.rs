//! How a submitter hears that its bios are done: a count of its own, on cache lines of its own, and
//! a wake-up if it waits. It is the same for all ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant as Moment};

use paternoster_crossing::Wake;

use crate::token::Token;

/// A bio's name (`user_data`): its submitter in the upper bits, its number in these lower ones.
const NUMBER_BITS: u32 = 40;

/// The name of a submitter's bio.
pub(crate) fn name(submitter: usize, number: u64) -> u64 {
    debug_assert!(number < 1 << NUMBER_BITS, "so many are not submitted");
    (submitter as u64) << NUMBER_BITS | number
}

fn submitter_of(name: u64) -> usize {
    usize::try_from(name >> NUMBER_BITS).expect("a submitter's number")
}

/// One submitter's completions.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Own {
    /// How many of its bios are done.
    done: AtomicU64,
    /// For how many it waits; 0 while it does not.
    wanted: AtomicU64,
    token: Token,
}

/// The completions of all submitters.
#[derive(Debug)]
pub struct Completions {
    each: Box<[Own]>,
    /// How often each bio has completed, by submitter and number, where that is recorded.
    times: Vec<Vec<AtomicU8>>,
}

impl Completions {
    /// Counts only.
    pub fn new(submitters: usize) -> Self {
        Self::recording(submitters, 0)
    }

    /// Records each of so many bios of each submitter, too.
    pub fn recording(submitters: usize, bios: usize) -> Self {
        let times = |_| (0..bios).map(|_| AtomicU8::new(0)).collect();
        Self {
            each: (0..submitters).map(|_| Own::default()).collect(),
            times: (0..submitters).map(times).collect(),
        }
    }

    /// How many bios of a submitter are done.
    pub fn done(&self, submitter: usize) -> u64 {
        self.each[submitter].done.load(Ordering::Acquire)
    }

    /// How often each bio has completed that was recorded.
    pub fn times(&self) -> impl Iterator<Item = u8> {
        self.times.iter().flatten().map(|times| times.load(Ordering::Relaxed))
    }

    /// Looks again and again for so long whether so many are done, and lets others run between.
    pub(crate) fn poll(&self, submitter: usize, wanted: u64, span: Duration) -> bool {
        let begin = Moment::now();
        while self.done(submitter) < wanted {
            if begin.elapsed() >= span {
                return false;
            }
            thread::yield_now();
        }
        true
    }

    /// Waits until so many are done, or so long; it may return early.
    pub(crate) fn wait(&self, submitter: usize, wanted: u64, longest: Option<Duration>) {
        let own = &self.each[submitter];
        own.wanted.swap(wanted, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.done(submitter) < wanted {
            own.token.wait(longest);
        }
        own.wanted.swap(0, Ordering::AcqRel);
    }

    fn add(&self, submitter: usize, bios: u64) {
        let own = &self.each[submitter];
        let done = own.done.fetch_add(bios, Ordering::AcqRel) + bios;
        fence(Ordering::SeqCst);
        let wanted = own.wanted.load(Ordering::Relaxed);
        if wanted != 0 && done >= wanted && own.wanted.swap(0, Ordering::AcqRel) != 0 {
            own.token.wake();
        }
    }

    /// Futex calls of those who woke submitters, and of submitters that waited.
    pub(crate) fn calls(&self) -> (u64, u64) {
        let tokens = || self.each.iter().map(|own| &own.token);
        (tokens().map(Token::wakes).sum(), tokens().map(Token::waits).sum())
    }
}

/// What is done and has not been told yet, so that nothing is told under a lock.
#[derive(Debug)]
pub(crate) struct Done {
    completions: Arc<Completions>,
    /// A submitter and its bios, for each run of one submitter's.
    runs: Vec<(usize, u64)>,
}

impl Done {
    pub(crate) fn new(completions: &Arc<Completions>) -> Self {
        Self { completions: completions.clone(), runs: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: u64) {
        let submitter = submitter_of(name);
        if let Some(times) = self.completions.times[submitter].get(number_of(name)) {
            times.fetch_add(1, Ordering::Relaxed);
        }
        match self.runs.last_mut() {
            Some((of, bios)) if *of == submitter => *bios += 1,
            _ => self.runs.push((submitter, 1)),
        }
    }

    /// Tells all submitters.
    pub(crate) fn tell(&mut self) {
        for (submitter, bios) in self.runs.drain(..) {
            self.completions.add(submitter, bios);
        }
    }
}

fn number_of(name: u64) -> usize {
    usize::try_from(name & ((1 << NUMBER_BITS) - 1)).expect("a bio's number")
}
