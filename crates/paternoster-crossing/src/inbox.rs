//! What crosses: the submitters' ends, the owner's end, and the door by which submitters come in.

use std::fmt;

use crate::bell::{Bell, Wake};
use crate::lock::{Lock, LockStats};
use crate::ring::{Consumer, Producer, PushError, ring};
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering};

/// A submitter of an inbox, by the order in which they came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubmitterId(pub u64);

/// What became of a batch that was sent.
#[must_use = "a full ring gives the batch back, and so does one whose inbox is gone"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent<T> {
    /// The owner was awake, or somebody is about to wake it. It will see it.
    Quietly,
    /// The owner had said that it sleeps, and was woken.
    Woke,
    /// The ring is full: here it is again.
    Full(T),
    /// The inbox is gone: here it is again.
    Gone(T),
}

/// A submitter's end. It moves from thread to thread with its submitter.
pub struct Outbox<T> {
    ring: Producer<T>,
    shared: Arc<Shared<T>>,
}

/// The owner's end. What is in rings as it is dropped is dropped with them.
pub struct Inbox<T> {
    shared: Arc<Shared<T>>,
    rings: Rings<T>,
    slept: u64,
    stayed_awake: u64,
}

/// Lets submitters in.
pub struct Door<T> {
    shared: Arc<Shared<T>>,
}

/// The owner's ends of rings, each with its submitter.
type Rings<T> = Vec<(SubmitterId, Consumer<T>)>;

struct Shared<T> {
    bell: Bell,
    /// Rings of submitters that have come in and that the owner has not seen; none once the inbox
    /// is gone.
    new: Lock<Option<Rings<T>>>,
    /// Whether there may be some.
    has_new: AtomicBool,
    /// Submitters that have ever come in.
    entered: AtomicU64,
}

impl<T> Inbox<T> {
    /// Makes an inbox without submitters, whose owner `wake` wakes.
    pub fn new(wake: impl Wake + 'static) -> Self {
        let shared = Shared {
            bell: Bell::new(Box::new(wake)),
            new: Lock::new(Some(Vec::new())),
            has_new: AtomicBool::new(false),
            entered: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared), rings: Vec::new(), slept: 0, stayed_awake: 0 }
    }

    /// The door by which submitters come in.
    pub fn door(&self) -> Door<T> {
        Door { shared: self.shared.clone() }
    }

    /// Takes what has been sent: of each submitter, in its order, as much as is there when its turn
    /// comes. What is sent meanwhile is for the next call, so that this one ends.
    pub fn take(&mut self, mut batch: impl FnMut(SubmitterId, T)) {
        if self.shared.has_new.load(Ordering::Acquire) {
            self.shared.has_new.store(false, Ordering::Relaxed);
            self.rings.extend(self.shared.new.lock().iter_mut().flat_map(std::mem::take));
        }
        self.rings.retain_mut(|(submitter, ring)| {
            // Asked first: what it sent before it went is then seen.
            let gone = ring.is_abandoned();
            for _ in 0..ring.slots() {
                let Ok(entry) = ring.pop() else { break };
                batch(*submitter, entry);
            }
            !gone
        });
    }

    /// Returns whether something has been sent. Whoever looks so for a while does not sleep, and
    /// nobody wakes it.
    pub fn has_mail(&self) -> bool {
        self.shared.has_new.load(Ordering::Relaxed)
            || self.rings.iter().any(|(_, ring)| !ring.is_empty())
    }

    /// Says that the owner is about to wait. Returns whether it may: not where something has come.
    /// Once it has waited, or if it may not, it is [`awake`](Self::awake) again.
    #[must_use = "it may not wait where something has come"]
    pub fn fall_asleep(&mut self) -> bool {
        self.shared.bell.fall_asleep();
        let may = !self.has_mail();
        self.slept += u64::from(may);
        self.stayed_awake += u64::from(!may);
        may
    }

    /// Says that the owner is awake: from now on it sees by itself what is sent.
    pub fn awake(&mut self) {
        self.shared.bell.awake();
    }

    /// How often the owner has gone to sleep.
    pub fn slept(&self) -> u64 {
        self.slept
    }

    /// How often it was about to, and something had come.
    pub fn stayed_awake(&self) -> u64 {
        self.stayed_awake
    }

    /// How often a submitter has woken it, or was about to as it stayed awake.
    pub fn woken(&self) -> u64 {
        self.shared.bell.rung()
    }

    /// Submitters whose rings it looks at.
    pub fn submitters(&self) -> usize {
        self.rings.len()
    }

    /// What the only lock has counted, which is taken as submitters come in.
    pub fn lock_stats(&self) -> LockStats {
        self.shared.new.stats()
    }
}

impl<T> Door<T> {
    /// Lets a submitter in, whose ring holds so many batches.
    ///
    /// # Panics
    ///
    /// Where that is none.
    pub fn enter(&self, capacity: usize) -> Outbox<T> {
        assert!(capacity > 0, "a ring holds a batch at least");
        let (producer, consumer) = ring(capacity);
        let submitter = SubmitterId(self.shared.entered.fetch_add(1, Ordering::Relaxed));
        if let Some(new) = &mut *self.shared.new.lock() {
            new.push((submitter, consumer));
        }
        self.shared.has_new.store(true, Ordering::Release);
        Outbox { ring: producer, shared: self.shared.clone() }
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        *self.shared.new.lock() = None;
    }
}

impl<T> Clone for Door<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> Outbox<T> {
    /// Sends a batch, and wakes the owner if it sleeps.
    pub fn send(&mut self, batch: T) -> Sent<T> {
        if self.ring.is_abandoned() {
            return Sent::Gone(batch);
        }
        match self.ring.push(batch) {
            Err(PushError::Full(batch)) => Sent::Full(batch),
            Ok(()) if self.shared.bell.ring() => Sent::Woke,
            Ok(()) => Sent::Quietly,
        }
    }
}

impl<T> fmt::Debug for Outbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Door<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("slept", &self.slept).finish_non_exhaustive()
    }
}
