//! A split virtqueue, as the device sees it.
//!
//! ```text
//!   driver ── writes ──▶ available: idx, heads …, used_event       next_available: ours
//!   device ── writes ──▶ used: idx, (head, bytes) …, avail_event   next_used: ours
//! ```
//!
//! A round takes chains one by one and gives back those that are done; the driver sees them when
//! the round publishes the index, once, and is called once where it wants to be. While we look at
//! the ring by ourselves the driver's kicks are held: to kick is the dearest part of a request in
//! a virtual machine.
//!
//! The driver may write anything at any time. An error that cannot be reported on a single request
//! breaks the ring, until the front-end sets it up anew: an index that runs ahead, a head that is
//! no descriptor or in flight.

use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};

use thiserror::Error;

use crate::chain::{Chain, ChainError, DESCRIPTOR};
use crate::inflight::{InvalidRegion, RingInflight};
use crate::memory::{Area, Memory};
use crate::proto::{Features, MAX_RING, RingAddresses};

/// Bytes of an entry of the used ring: the head and the bytes written.
const USED: usize = 8;
/// Where the entries of either ring begin: behind flags and index.
const ENTRIES: usize = 4;
/// Where the index is.
const INDEX: usize = 2;

/// In the flags of the available ring: the driver wants no calls.
const NO_INTERRUPT: u16 = 1;
/// In those of the used ring: the device wants no kicks.
const NO_NOTIFY: u16 = 1;

/// Why a ring cannot begin.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RingError {
    /// The size is not a power of two, or too large.
    #[error("a ring of {0} descriptors: a power of two up to {MAX_RING} is allowed")]
    Size(u16),
    /// An area is not in one region.
    #[error("a ring's {area} at {addr:#x} are not in one region of the guest's memory")]
    Outside {
        /// Which area.
        area: &'static str,
        /// Its address in the front-end.
        addr: u64,
    },
    /// An area is not aligned.
    #[error("a ring's {area} at {addr:#x} are not aligned to {align}")]
    Unaligned {
        /// Which area.
        area: &'static str,
        /// Its address in the front-end.
        addr: u64,
        /// To what it has to be.
        align: usize,
    },
}

/// Why a ring is broken: nothing is taken from it any more.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Broken {
    /// The driver's index is further ahead than there are descriptors.
    #[error("the driver's index is {ahead} ahead of ours on a ring of {size}")]
    Ahead {
        /// How far.
        ahead: u16,
        /// The size of the ring.
        size: u16,
    },
    /// A head is no descriptor.
    #[error("a chain begins at descriptor {head} of {size}")]
    Head {
        /// Where it begins.
        head: u16,
        /// How many there are.
        size: u16,
    },
    /// A head is in flight.
    #[error("a chain begins at descriptor {0}, whose chain is in flight")]
    InFlight(u16),
}

/// A chain that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its name until it is given back.
    pub head: u16,
    /// Its buffers. Where it is none, its slot is to be given back with no bytes written.
    pub chain: Result<Chain, ChainError>,
}

/// A ring that has begun.
#[derive(Debug)]
pub struct SplitRing {
    size: u16,
    features: Features,
    /// Where it is in the front-end.
    addresses: RingAddresses,
    descriptors: Area,
    available: Area,
    used: Area,
    next_available: u16,
    /// Of the entries that were written, of which the driver knows those before `published`.
    next_used: u16,
    published: u16,
    /// The chains that the driver may not offer, by head: those in flight, and those given back
    /// that it has not been told of.
    in_use: Vec<bool>,
    /// How many are in flight.
    in_flight: usize,
    /// Those given back that the driver has not been told of.
    batch: Vec<u16>,
    /// Those that a server before this one had in flight, which are taken first.
    resubmit: VecDeque<u16>,
    /// Where those in flight outlive this server.
    inflight: Option<RingInflight>,
    /// Whether the driver is to be called, whatever it wants: somebody before us may not have
    /// called it.
    owes_call: bool,
    /// Why nothing is taken any more.
    broken: Option<Broken>,
    /// Whether kicks are held.
    holds_kicks: bool,
    /// Whether no new chain is taken.
    stops: bool,
}

impl SplitRing {
    /// Begins with a ring at these addresses of the front-end, whose next chain is `base`.
    pub fn new(
        memory: &Memory,
        size: u16,
        addresses: RingAddresses,
        base: u16,
        features: Features,
    ) -> Result<Self, RingError> {
        let [descriptors, available, used] = areas(memory, size, addresses)?;
        // Whatever a server before this one has used, and whatever the front-end says.
        let next_used = u16::from_le(used.load(INDEX, Ordering::Acquire));
        Ok(Self {
            size,
            features,
            addresses,
            descriptors,
            available,
            used,
            next_available: base,
            next_used,
            published: next_used,
            in_use: vec![false; usize::from(size)],
            in_flight: 0,
            batch: Vec::new(),
            resubmit: VecDeque::new(),
            inflight: None,
            owes_call: true,
            broken: None,
            holds_kicks: false,
            stops: false,
        })
    }

    /// Goes on in another memory, at the same addresses of the front-end. Nothing changes where it
    /// is not there.
    pub fn move_to(&mut self, memory: &Memory) -> Result<(), RingError> {
        let areas = areas(memory, self.size, self.addresses)?;
        [self.descriptors, self.available, self.used] = areas;
        Ok(())
    }

    /// Takes no more chains but those that a server before this one had in flight.
    pub fn stop(&mut self) {
        self.stops = true;
    }

    /// Returns whether it takes no more chains but those.
    pub fn stops(&self) -> bool {
        self.stops
    }

    /// Keeps the chains in flight where they outlive this server, and takes those first that a
    /// server before it has left there. The ring has just begun. What is not as a server leaves it
    /// is told, and begun anew: then nothing is in flight.
    pub fn recover(&mut self, mut inflight: RingInflight) -> Result<(), InvalidRegion> {
        let there = u16::from_le(self.available.load(INDEX, Ordering::Acquire));
        let offered = there.wrapping_sub(self.next_used);
        let recovered = inflight.recover(self.next_used, offered);
        self.inflight = Some(inflight);
        let (heads, valid) = match recovered {
            Ok(heads) => (heads, Ok(())),
            Err(invalid) => (Vec::new(), Err(invalid)),
        };
        self.in_flight = heads.len();
        self.resubmit = heads.into();
        // Every chain that was ever taken is done or in flight, whatever the front-end says.
        let taken = u16::try_from(self.in_flight).expect("at most the ring's");
        self.next_available = self.next_used.wrapping_add(taken);
        valid
    }

    /// The number of the chain that is taken next.
    pub fn next_available(&self) -> u16 {
        self.next_available
    }

    /// Has the driver called at the next time, whatever it wants: it is called by another
    /// descriptor from here on, and may have been called by none.
    pub fn owe_call(&mut self) {
        self.owes_call = true;
    }

    /// Returns whether there is a chain to be taken.
    pub fn peek(&self) -> Result<bool, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let there = u16::from_le(self.available.load(INDEX, Ordering::Acquire));
        let ahead = there.wrapping_sub(self.next_available);
        if ahead > self.size {
            return Err(Broken::Ahead { ahead, size: self.size });
        }
        Ok(ahead > 0 && !self.stops || !self.resubmit.is_empty())
    }

    /// Takes the next chain, if there is one.
    pub fn pop(&mut self, memory: &Memory) -> Result<Option<Taken>, Broken> {
        let taken = self.take(memory);
        self.broken = taken.as_ref().err().copied();
        taken
    }

    fn take(&mut self, memory: &Memory) -> Result<Option<Taken>, Broken> {
        if !self.peek()? {
            return Ok(None);
        }
        let resubmitted = self.resubmit.pop_front();
        let head = resubmitted.unwrap_or_else(|| self.next_head());
        let size = self.size;
        match self.in_use.get_mut(usize::from(head)) {
            None => return Err(Broken::Head { head, size }),
            Some(true) => return Err(Broken::InFlight(head)),
            Some(in_use) => *in_use = true,
        }
        if resubmitted.is_none() {
            self.in_flight += 1;
            if let Some(inflight) = &mut self.inflight {
                inflight.taken(head);
            }
        }
        let may_be_indirect = self.features.contains(Features::INDIRECT_DESC);
        let chain = Chain::read(&self.descriptors, size, head, memory, may_be_indirect);
        Ok(Some(Taken { head, chain }))
    }

    /// The head of the next chain that the driver has made available.
    fn next_head(&mut self) -> u16 {
        let entry = self.slot(self.next_available);
        self.next_available = self.next_available.wrapping_add(1);
        u16::from_le_bytes(self.available.read(ENTRIES + 2 * entry))
    }

    /// Gives a chain back, into which so many bytes were written. The driver sees it once that is
    /// published.
    pub fn push_used(&mut self, head: u16, bytes: u32) {
        assert!(self.in_use[usize::from(head)], "a chain is given back once");
        let entry = self.slot(self.next_used);
        let mut used = [0; USED];
        used[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        used[4..].copy_from_slice(&bytes.to_le_bytes());
        self.used.write(ENTRIES + USED * entry, &used);
        self.next_used = self.next_used.wrapping_add(1);
        self.in_flight -= 1;
        self.batch.push(head);
        if let Some(inflight) = &mut self.inflight {
            inflight.given_back(head);
        }
    }

    /// Lets the driver see what was given back. Returns whether it wants to be called.
    pub fn publish(&mut self) -> bool {
        let owes_call = std::mem::take(&mut self.owes_call);
        let before = std::mem::replace(&mut self.published, self.next_used);
        if before == self.next_used {
            return owes_call;
        }
        self.used.store(INDEX, self.next_used.to_le(), Ordering::Release);
        if let Some(inflight) = &mut self.inflight {
            inflight.published(&self.batch, self.next_used);
        }
        for head in self.batch.drain(..) {
            self.in_use[usize::from(head)] = false;
        }
        // The driver writes what it wants and then looks at the index: one of us sees the other's.
        fence(Ordering::SeqCst);
        if !self.features.contains(Features::EVENT_IDX) {
            let flags = u16::from_le(self.available.load(0, Ordering::Relaxed));
            return flags & NO_INTERRUPT == 0 || owes_call;
        }
        let wanted = u16::from_le(self.available.load(self.used_event(), Ordering::Relaxed));
        is_past(wanted, before, self.next_used) || owes_call
    }

    /// Asks the driver not to kick.
    pub fn hold_kicks(&mut self) {
        // With an event the one that was written last stays behind, and is not written again.
        if !std::mem::replace(&mut self.holds_kicks, true)
            && !self.features.contains(Features::EVENT_IDX)
        {
            self.used.store(0, NO_NOTIFY.to_le(), Ordering::Relaxed);
        }
    }

    /// Lets the driver kick for the next chain. Returns whether one has come meanwhile, for which
    /// it does not kick.
    pub fn allow_kicks(&mut self) -> Result<bool, Broken> {
        self.holds_kicks = false;
        if self.features.contains(Features::EVENT_IDX) {
            let event = self.next_available.to_le();
            self.used.store(self.avail_event(), event, Ordering::Relaxed);
        } else {
            self.used.store(0, 0u16, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.peek()
    }

    /// How many chains are in flight, with those that a server before this one has left.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Where in either ring an index is.
    fn slot(&self, index: u16) -> usize {
        usize::from(index & (self.size - 1))
    }

    /// Where the driver says from which used entry on it wants to be called.
    fn used_event(&self) -> usize {
        ENTRIES + 2 * usize::from(self.size)
    }

    /// Where we say from which available entry on we want to be kicked.
    fn avail_event(&self) -> usize {
        ENTRIES + USED * usize::from(self.size)
    }
}

/// The areas of a ring: its descriptors, and its available and used entries.
fn areas(memory: &Memory, size: u16, at: RingAddresses) -> Result<[Area; 3], RingError> {
    if !size.is_power_of_two() || size > MAX_RING {
        return Err(RingError::Size(size));
    }
    let entries = usize::from(size);
    let area = |area, addr, len, align| {
        let found = memory.area(addr, len).ok_or(RingError::Outside { area, addr })?;
        if found.is_aligned(align) {
            Ok(found)
        } else {
            Err(RingError::Unaligned { area, addr, align })
        }
    };
    let RingAddresses { descriptors, available, used } = at;
    // Behind the entries each ring has the event of the other side.
    Ok([
        area("descriptors", descriptors, entries * DESCRIPTOR, 16)?,
        area("available entries", available, ENTRIES + entries * 2 + 2, 2)?,
        area("used entries", used, ENTRIES + entries * USED + 2, 4)?,
    ])
}

/// Returns whether `wanted` is among the entries from `before` on, before `after`: one side is told
/// of the entry that it wants to be told of.
fn is_past(wanted: u16, before: u16, after: u16) -> bool {
    after.wrapping_sub(wanted).wrapping_sub(1) < after.wrapping_sub(before)
}
