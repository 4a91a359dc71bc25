//! This project's way: a plug of the task, then a ring to the thread that owns the device. The
//! submitter takes no lock.
//!
//! ```text
//!   submitter ─ plug ═ ring ═╗
//!   submitter ─ plug ═ ring ═╩══▶ owner ─ elevators of its devices ─ null devices
//!        ▲                          │
//!        └────── completions ───────┘
//! ```
//!
//! Device d belongs to owner d modulo their number. An owner looks at its rings until they are
//! empty, and then sleeps; it is woken once. With its limits at 0 the plug is off, and each bio
//! crosses by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paternoster::{Batch, Bio, FlushReason, HandOver, Instant, Nanos, Plug, PlugRules};
use paternoster_crossing::lock::LockStats;
use paternoster_crossing::{Inbox, Outbox, Sent, Wake as _};

use crate::clock::Clock;
use crate::completions::Done;
use crate::null_device::NullDevice;
use crate::token::Token;
use crate::way::{Batches, Counts, Setup, Then, Way};

/// A device, and a batch for it.
type Message = (usize, Batch);

/// This project's way.
#[derive(Debug)]
pub struct Rings {
    owners: Vec<OwnerThread>,
    stops: Arc<AtomicBool>,
}

#[derive(Debug)]
struct OwnerThread {
    token: Arc<Token>,
    /// Returns what locks of the inbox were taken while it ran.
    thread: JoinHandle<LockStats>,
}

/// Sends batches to the owners of their devices.
#[derive(Debug)]
pub struct Sender {
    /// By owner.
    outboxes: Vec<Outbox<Message>>,
    batches: Batches,
}

impl HandOver<usize> for Sender {
    fn hand_over(&mut self, device: usize, batch: Batch) {
        self.batches.add(batch.chains.len() as u64);
        let owner = device % self.outboxes.len();
        match self.outboxes[owner].send((device, batch)) {
            Sent::Quietly | Sent::Woke => {}
            Sent::Full(_) => unreachable!("a ring holds all that may be outstanding"),
            Sent::Gone(_) => unreachable!("owners stay until the way is closed"),
        }
    }
}

/// What an owner's thread has.
struct Owner {
    inbox: Inbox<Message>,
    token: Arc<Token>,
    stops: Arc<AtomicBool>,
    /// All devices, of which it uses its own.
    devices: Vec<NullDevice>,
    /// Devices that something has come for.
    touched: Vec<usize>,
    clock: Clock,
    /// For how long it looks again before it sleeps.
    poll: Nanos,
    done: Done,
}

impl Owner {
    fn run(mut self) -> LockStats {
        let before = self.inbox.lock_stats();
        let mut busy = self.clock.now();
        while !self.stops.load(Ordering::Acquire) {
            let now = self.clock.now();
            if self.serve(now) {
                busy = now;
                continue;
            }
            if now.saturating_since(busy) < self.poll {
                thread::yield_now();
                continue;
            }
            if self.inbox.fall_asleep() {
                self.token.wait(None);
            }
            self.inbox.awake();
        }
        let after = self.inbox.lock_stats();
        let mut taken = LockStats::default();
        taken.taken = after.taken - before.taken;
        taken.contended = after.contended - before.contended;
        taken.waited = after.waited.checked_sub(before.waited).unwrap_or(Duration::ZERO);
        taken
    }

    /// Serves what has come. Returns whether something had.
    fn serve(&mut self, now: Instant) -> bool {
        let Self { inbox, devices, touched, done, .. } = self;
        inbox.take(|_, (device, batch)| {
            devices[device].add_batch(now, batch);
            if !touched.contains(&device) {
                touched.push(device);
            }
        });
        let has_come = !touched.is_empty();
        for device in touched.drain(..) {
            devices[device].run_all(now, done);
        }
        done.tell();
        has_come
    }
}

impl Way for Rings {
    type Own = Plug<usize, Sender>;

    fn open(setup: &Setup) -> (Self, Vec<Self::Own>) {
        let stops = Arc::new(AtomicBool::new(false));
        let mut outboxes: Vec<Vec<_>> = (0..setup.submitters).map(|_| Vec::new()).collect();
        let owners = (0..setup.owners).map(|_| {
            let token = Arc::new(Token::default());
            let mut inbox = Inbox::new(token.clone());
            let door = inbox.door();
            for of in &mut outboxes {
                of.push(door.enter(setup.outstanding));
            }
            // So all have come in before anything is counted.
            inbox.take(|_, _| unreachable!("nothing was sent"));
            let owner = Owner {
                inbox,
                token: token.clone(),
                stops: stops.clone(),
                devices: setup.devices().collect(),
                touched: Vec::new(),
                clock: setup.clock,
                poll: Nanos::new(u64::try_from(setup.poll.as_nanos()).unwrap_or(u64::MAX)),
                done: Done::new(&setup.completions),
            };
            OwnerThread { token, thread: thread::spawn(move || owner.run()) }
        });
        let owners = owners.collect();
        let own =
            |outboxes| Plug::new(setup.plug, Sender { outboxes, batches: Batches::default() });
        (Self { owners, stops }, outboxes.into_iter().map(own).collect())
    }

    fn submit(&self, own: &mut Self::Own, now: Instant, device: usize, bio: Bio, _then: Then) {
        own.submit(now, device, bio, &PlugRules::default());
    }

    fn hand_over(&self, own: &mut Self::Own, now: Instant) {
        own.flush(now, FlushReason::Explicit);
    }

    fn batches(own: &mut Self::Own) -> Batches {
        own.receiver().batches
    }

    fn close(self) -> Counts {
        let calls = |count: fn(&Token) -> u64| self.owners.iter().map(|it| count(&it.token)).sum();
        let (owner_wakes, owner_waits) = (calls(Token::wakes), calls(Token::waits));
        self.stops.store(true, Ordering::Release);
        let taken = self.owners.into_iter().map(|owner| {
            owner.token.wake();
            owner.thread.join().expect("an owner ends without a panic")
        });
        Counts { devices: taken.sum(), owner_wakes, owner_waits, ..Counts::default() }
    }
}
