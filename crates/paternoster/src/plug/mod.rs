//! The plug: a submitter holds its bios back for a moment, so that neighbours merge and many are
//! handed over at once.
//!
//! ```text
//!                     one submitter, no lock                     │ one owner a device
//!                                                                │
//!   bio ─▶ merge with the newest chain of the same device?       │
//!            │no                                                 │
//!            ▼                                                   │
//!         ┌───────────────────────────────┐   flush: one batch   │
//!         │ a  b  a  a  b    chains, in   │ ────── a a a ────────┼─▶ inbox of a ─▶ elevator
//!         │                  their order  │ ────── b b ──────────┼─▶ inbox of b ─▶ elevator
//!         └───────────────────────────────┘                      │
//! ```
//!
//! A bio in a plug is one that nobody works on. So everything here bounds how long that lasts:
//!
//! - the plug is flushed when it is full, its newest chain is long, or its oldest is old;
//! - its submitter flushes it before it waits or lets others run ([`Plug::flush`]), so that nothing
//!   ever sleeps in a plug; one that is dropped is flushed;
//! - what others may wait for goes at once: flushes, and writes that have to be durable.
//!
//! It belongs to a submitter, wherever that runs: no thread and no processor is asked, as in Linux
//! since 2.6.39, and unlike the lists of a processor of 2004. Batches of one device leave in the
//! order of submission.

mod chain;
mod limits;
#[cfg(test)]
mod tests;

pub use chain::{Chain, PlugRules};
pub use limits::PlugLimits;

use crate::request::Bio;
use crate::time::{Instant, Nanos};
use crate::trace::declare::reasons;

reasons! {
    /// Why a plug was flushed.
    #[derive(Hash)]
    #[non_exhaustive]
    pub enum FlushReason;
    Full = "full", "it held as many requests as it may";
    Bytes = "bytes", "its newest request was long";
    Age = "age", "its oldest request was old";
    Explicit = "explicit", "the submitter finished it, or a bio could not wait, or as many had \
                            come as were announced";
    Wait = "wait", "the submitter is about to wait";
    Yield = "yield", "the submitter lets others run";
    Drop = "drop", "the plug was dropped";
}

impl FlushReason {
    /// Its name in statistics and traces.
    pub const fn name(self) -> &'static str {
        self.word().name
    }
}

/// What a plug held of one device when it was flushed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Batch {
    /// Its chains, in the order of submission; at least one.
    pub chains: Vec<Chain>,
    /// Why it was flushed.
    pub reason: FlushReason,
    /// How long the oldest chain of the plug, of whichever device, had been in it.
    pub age: Nanos,
}

/// Takes the batches of a plug to the owners of their devices. It must not wait; what it cannot
/// pass on at once, it keeps, in order.
pub trait HandOver<D> {
    /// Takes a batch of a device.
    fn hand_over(&mut self, device: D, batch: Batch);
}

impl<D, F: FnMut(D, Batch)> HandOver<D> for F {
    fn hand_over(&mut self, device: D, batch: Batch) {
        self(device, batch);
    }
}

/// What a plug has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlugStats {
    /// Bios that were submitted.
    pub bios: u64,
    /// Those of them that merged in the plug.
    pub merges: u64,
    /// Batches that were handed over.
    pub batches: u64,
    flushes: [u64; FlushReason::ALL.len()],
}

impl PlugStats {
    /// How often the plug was flushed for that reason while it held something.
    pub fn flushes(&self, reason: FlushReason) -> u64 {
        self.flushes[reason as usize]
    }
}

/// So few announced bios are not worth a plug, as in Linux's `io_uring_enter`.
const FEW: u32 = 2;

/// What a submitter has said of the bios to come.
#[derive(Clone, Copy, Debug)]
struct Announced {
    /// How many are still to come; at least one.
    left: u32,
    /// Whether there were enough of them to hold them back.
    is_worth_it: bool,
}

/// Holds the bios of one submitter back for a moment. `D` names a device, `H` takes what leaves.
///
/// ```
/// use paternoster::{
///     Batch, Bio, FlushReason, IocId, Instant, Plug, PlugLimits, PlugRules, Sector, SectorCount,
/// };
///
/// # let ioc = IocId::default();
/// let mut left = Vec::new();
/// let hand_over = |device: &'static str, batch: Batch| left.push((device, batch));
/// let mut plug = Plug::new(PlugLimits::default(), hand_over);
/// let (now, rules) = (Instant::START, PlugRules::default());
///
/// let read = |sector| Bio::read(ioc, Sector(sector), SectorCount(8));
/// plug.submit(now, "sda", read(0), &rules);
/// plug.submit(now, "sdb", read(0), &rules);
/// plug.submit(now, "sda", read(8), &rules); // merges with the first
/// plug.flush(now, FlushReason::Wait);
/// drop(plug);
///
/// assert_eq!(left.len(), 2, "a batch each device");
/// assert_eq!((left[0].0, left[0].1.chains[0].bios().len()), ("sda", 2));
/// ```
#[derive(Debug)]
pub struct Plug<D: Copy + Eq, H: HandOver<D>> {
    limits: PlugLimits,
    receiver: H,
    /// In the order of submission.
    chains: Vec<(D, Chain)>,
    /// Whether chains of several devices are in it.
    several: bool,
    /// When the oldest chain came; meaningful while there is one.
    oldest: Instant,
    /// When it was last called with the time.
    latest: Instant,
    announced: Option<Announced>,
    /// How many users have begun and not finished it.
    users: u32,
    stats: PlugStats,
}

impl<D: Copy + Eq, H: HandOver<D>> Plug<D, H> {
    /// Makes an empty plug.
    pub fn new(limits: PlugLimits, receiver: H) -> Self {
        Self {
            limits,
            receiver,
            chains: Vec::new(),
            several: false,
            oldest: Instant::START,
            latest: Instant::START,
            announced: None,
            users: 0,
            stats: PlugStats::default(),
        }
    }

    /// Begins a use of the plug. Uses nest: what an inner one submits leaves with the outermost.
    pub fn begin(&mut self) {
        self.users += 1;
    }

    /// Finishes a use of the plug. The outermost flushes it.
    ///
    /// # Panics
    ///
    /// Where no use has begun.
    pub fn finish(&mut self, now: Instant) {
        assert!(self.users > 0, "a plug is finished as often as it is begun");
        self.users -= 1;
        if self.users == 0 {
            self.announced = None;
            self.flush(now, FlushReason::Explicit);
        } else {
            self.flush_if_old(now);
        }
    }

    /// Announces that so many bios come now. The plug is flushed with the last of them, and not
    /// used at all for one or two, which would only wait. What an inner use announces means
    /// nothing, and what was announced and did not come is forgotten with the end of the use.
    pub fn announce(&mut self, bios: u32) {
        if self.users > 1 {
            return;
        }
        let is_worth_it = bios > FEW;
        self.announced = (bios > 0).then_some(Announced { left: bios, is_worth_it });
    }

    /// Submits a bio for a device with these rules. It waits in the plug, unless the plug is off or
    /// the bio is one for which others may wait.
    ///
    /// # Panics
    ///
    /// Where the bio has no valid range, as [`Elevator::submit`](crate::Elevator::submit).
    pub fn submit(&mut self, now: Instant, device: D, bio: Bio, rules: &PlugRules) {
        bio.check_range();
        self.flush_if_old(now);
        self.stats.bios += 1;
        if rules.merge() && self.merge(device, &bio, rules) {
            self.stats.merges += 1;
        } else {
            self.make_room(now, rules);
            self.push(now, device, bio);
        }
        if self.is_last(&bio) {
            self.flush(now, FlushReason::Explicit);
        }
    }

    /// Hands over all that the plug holds: a batch for each device, in the order in which the
    /// devices came. Call it before the submitter waits for anything or lets others run.
    pub fn flush(&mut self, now: Instant, reason: FlushReason) {
        if self.chains.is_empty() {
            return;
        }
        self.stats.flushes[reason as usize] += 1;
        let age = now.saturating_since(self.oldest);
        while let Some(&(device, _)) = self.chains.first() {
            let of_device = self.chains.extract_if(.., |(of, _)| *of == device);
            let chains = of_device.map(|(_, chain)| chain).collect();
            self.stats.batches += 1;
            self.receiver.hand_over(device, Batch { chains, reason, age });
        }
        self.several = false;
    }

    /// Flushes the plug if its oldest chain is too old.
    pub fn flush_if_old(&mut self, now: Instant) {
        self.latest = now;
        if self.due().is_some_and(|due| due <= now) {
            self.flush(now, FlushReason::Age);
        }
    }

    /// When its oldest chain is too old, if it holds one. A submitter that works for long without
    /// submitting or waiting calls [`flush_if_old`](Self::flush_if_old) by then.
    pub fn due(&self) -> Option<Instant> {
        (!self.chains.is_empty()).then(|| self.oldest + self.limits.max_age)
    }

    /// Returns whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// What takes its batches.
    pub fn receiver(&mut self) -> &mut H {
        &mut self.receiver
    }

    /// What it has done.
    pub fn stats(&self) -> &PlugStats {
        &self.stats
    }

    /// Bounds what it may hold from now on. What it holds is flushed first.
    pub fn set_limits(&mut self, now: Instant, limits: PlugLimits) {
        self.flush(now, FlushReason::Explicit);
        self.limits = limits;
    }

    /// Tries the newest chain of that device, and no other.
    fn merge(&mut self, device: D, bio: &Bio, rules: &PlugRules) -> bool {
        let newest = self.chains.iter_mut().rev().find(|(of, _)| *of == device);
        newest.is_some_and(|(_, chain)| chain.take(bio, rules))
    }

    /// Flushes the plug where it may not take another chain.
    fn make_room(&mut self, now: Instant, rules: &PlugRules) {
        let Some((_, newest)) = self.chains.last() else { return };
        if self.chains.len() >= self.limits.chains(self.several) {
            self.flush(now, FlushReason::Full);
        } else if rules.merge() && newest.sectors().bytes() >= self.limits.flush_bytes {
            self.flush(now, FlushReason::Bytes);
        }
    }

    fn push(&mut self, now: Instant, device: D, bio: Bio) {
        match self.chains.last() {
            None => self.oldest = now,
            Some(&(newest, _)) => self.several |= newest != device,
        }
        self.chains.push((device, Chain::from(bio)));
    }

    /// Returns whether the plug does not wait for more after this bio.
    fn is_last(&mut self, bio: &Bio) -> bool {
        let mut is_last = self.limits.is_off() || bio.bypasses();
        if let Some(Announced { left, is_worth_it }) = &mut self.announced {
            *left -= 1;
            is_last |= !*is_worth_it || *left == 0;
        }
        self.announced = self.announced.filter(|announced| announced.left > 0);
        is_last
    }
}

impl<D: Copy + Eq, H: HandOver<D>> Drop for Plug<D, H> {
    fn drop(&mut self) {
        self.flush(self.latest, FlushReason::Drop);
    }
}
