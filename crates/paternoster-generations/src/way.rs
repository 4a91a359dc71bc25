//! What all ways have in common: the trait, what they are made with, and what they count.

use std::iter::Sum;
use std::sync::Arc;
use std::time::Duration;

use paternoster::{Bio, Instant, IocId, PlugLimits};
use paternoster_crossing::lock::{Lock, LockStats};

use crate::clock::Clock;
use crate::completions::Completions;
use crate::legacy::UnplugRules;
use crate::null_device::{NullDevice, Scheduler};

/// The way of bios from submitters to the drivers of their devices.
///
/// A submitter submits some bios, hands over what is still held, and submits more; it waits as it
/// likes. Ways differ in how long they hold bios back, which locks they take, and which thread
/// runs a device.
pub trait Way: Sync + Sized {
    /// What a submitter has for itself.
    type Own: Send;

    /// Opens the way: what all share, and what each submitter has for itself.
    fn open(setup: &Setup) -> (Self, Vec<Self::Own>);

    /// Submits a bio for that device.
    fn submit(&self, own: &mut Self::Own, now: Instant, device: usize, bio: Bio, then: Then);

    /// Hands over all that is held of the submitter: it is about to wait, or its call returns.
    fn hand_over(&self, own: &mut Self::Own, now: Instant);

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, by any submitter that waits.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Unplugs what has waited long enough. Returns how many devices that were.
    fn handle_timeout(&self, _own: &mut Self::Own, _now: Instant) -> u64 {
        0
    }

    /// Which batches of a submitter have been handed over.
    fn batches(own: &mut Self::Own) -> Batches;

    /// Closes the way, and tells what it has counted.
    fn close(self) -> Counts;
}

/// What a submitter does after a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It submits more.
    More,
    /// It hands over: the bio may be marked so (sync), which spares generation 3 a lock.
    HandsOver,
}

/// What a way is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many submitters there are.
    pub submitters: usize,
    /// How many devices there are.
    pub devices: usize,
    /// How many threads own devices, where any do.
    pub owners: usize,
    /// How many bios of a submitter are outstanding at most.
    pub outstanding: usize,
    /// For how long who waits looks again before it sleeps.
    pub poll: Duration,
    /// The scheduler of each device.
    pub scheduler: Scheduler,
    /// Whether locks count for how long they are held.
    pub times_hold: bool,
    /// Whether whoever waits for a lock keeps the processor.
    pub spins: bool,
    /// How much the plugs of tasks hold.
    pub plug: PlugLimits,
    /// How many requests are dispatched under one lock.
    pub per_lock: u32,
    /// When the queues of older generations are unplugged.
    pub rules: UnplugRules,
    /// Who hears of completions.
    pub completions: Arc<Completions>,
    /// The clock of all threads.
    pub(crate) clock: Clock,
}

impl Setup {
    /// So many submitters and devices, with a null device's `none`.
    pub fn new(completions: &Arc<Completions>, submitters: usize, devices: usize) -> Self {
        Self {
            submitters,
            devices,
            owners: 1,
            outstanding: 64,
            poll: Duration::ZERO,
            scheduler: Scheduler::None,
            times_hold: false,
            spins: false,
            plug: PlugLimits::default(),
            per_lock: 1,
            rules: UnplugRules::LINUX_2_6_3,
            completions: completions.clone(),
            clock: Clock::start(),
        }
    }

    /// The I/O context of all bios, on all devices.
    pub fn ioc(&self) -> IocId {
        self.device().ioc()
    }

    pub(crate) fn device(&self) -> NullDevice {
        NullDevice::new(self.scheduler, Instant::START)
    }

    /// A null device each. They are alike, so that a bio does not have to know which it is for.
    pub(crate) fn devices(&self) -> impl Iterator<Item = NullDevice> {
        let ioc = self.ioc();
        (0..self.devices).map(move |_| {
            let device = self.device();
            assert_eq!(device.ioc(), ioc, "elevators that were made alike have the same keys");
            device
        })
    }

    pub(crate) fn lock<T>(&self, value: T) -> Apart<Lock<T>> {
        let lock = Lock::new(value);
        let lock = if self.times_hold { lock.timed() } else { lock };
        Apart(if self.spins { lock.spinning() } else { lock })
    }
}

/// A value on cache lines of its own: two, as processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> std::ops::Deref for Apart<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// What has been counted of batches: what reached a device at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// How many there were.
    pub count: u64,
    /// Requests in all of them.
    pub requests: u64,
    /// The longest.
    pub longest: u64,
}

impl Batches {
    pub(crate) fn add(&mut self, requests: u64) {
        if requests > 0 {
            self.count += 1;
            self.requests += requests;
            self.longest = self.longest.max(requests);
        }
    }
}

impl Sum for Batches {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |sum, one| Self {
            count: sum.count + one.count,
            requests: sum.requests + one.requests,
            longest: sum.longest.max(one.longest),
        })
    }
}

/// What a way has counted in what is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The locks of lists of plugged queues: the machine's, or one a processor.
    pub lists: LockStats,
    /// The locks of devices.
    pub devices: LockStats,
    /// Futex calls that woke a device's owner.
    pub owner_wakes: u64,
    /// Futex calls in which a device's owner waited.
    pub owner_waits: u64,
}

/// What the locks of several devices have counted together.
pub(crate) fn sum_of<T>(locks: &[Apart<Lock<T>>]) -> LockStats {
    locks.iter().map(|lock| lock.stats()).sum()
}
