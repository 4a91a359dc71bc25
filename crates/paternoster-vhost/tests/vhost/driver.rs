//! A driver in a guest's memory, which may write anything.

use std::os::fd::OwnedFd;

use paternoster_vhost::proto::{Features, RegionPlace, RingAddresses};
use paternoster_vhost::{Memory, Region, Sealed, SplitRing};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// Where the guest's memory begins in the front-end.
pub(crate) const FRONT_END: u64 = 0x7f00_0000_0000;
/// How much of it there is.
pub(crate) const GUEST: u64 = 1 << 20;

/// Where the areas of the ring are in the guest.
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x8000;
const USED: u64 = 0xa000;
/// Where buffers may be.
pub(crate) const DATA: u64 = 0x2_0000;

pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
pub(crate) const INDIRECT: u16 = 4;

/// A file of memory that can be made neither longer nor shorter.
pub(crate) fn memfd(bytes: u64) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("guest", flags).expect("memory");
    ftruncate(&file, bytes).expect("room");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).expect("it may be sealed");
    file
}

/// A region of a new file of memory.
pub(crate) fn region(guest: u64, size: u64, front_end: u64) -> Region {
    let place = RegionPlace { guest, size, front_end, offset: 0 };
    Region::map(place, memfd(size), Sealed::Required).expect("it is memory")
}

/// A descriptor: address, length, flags, next.
pub(crate) type Descriptor = (u64, u32, u16, u16);

/// A driver with one ring.
pub(crate) struct Driver {
    pub(crate) memory: Memory,
    pub(crate) size: u16,
    /// The index that it has written last.
    pub(crate) available: u16,
    /// The used entries that it has seen.
    pub(crate) seen: u16,
}

impl Driver {
    pub(crate) fn new(size: u16) -> Self {
        let mut memory = Memory::default();
        memory.add(region(0, GUEST, FRONT_END)).expect("it is the first");
        Self { memory, size, available: 0, seen: 0 }
    }

    /// Where the ring is.
    pub(crate) fn addresses() -> RingAddresses {
        let [descriptors, available, used] =
            [DESCRIPTORS, AVAILABLE, USED].map(|addr| FRONT_END + addr);
        RingAddresses { descriptors, available, used }
    }

    /// The device's side of the ring, which goes on at `base`. The call that a device owes when it
    /// begins is made.
    pub(crate) fn ring_at(&self, base: u16, features: Features) -> SplitRing {
        let ring = SplitRing::new(&self.memory, self.size, Self::addresses(), base, features);
        let mut ring = ring.expect("a ring");
        assert!(ring.publish(), "a server before this one may have been killed before it called");
        assert!(!ring.publish());
        ring
    }

    /// The same from the first chain on.
    pub(crate) fn ring(&self, features: Features) -> SplitRing {
        self.ring_at(0, features)
    }

    pub(crate) fn write(&self, addr: u64, bytes: &[u8]) {
        self.memory.write(addr, bytes).expect("it is in the memory");
    }

    pub(crate) fn read<const N: usize>(&self, addr: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read(addr, &mut bytes).expect("it is in the memory");
        bytes
    }

    /// Writes a descriptor of the ring.
    pub(crate) fn descriptor(&self, number: u16, descriptor: Descriptor) {
        self.write(DESCRIPTORS + 16 * u64::from(number), &encoded(descriptor));
    }

    /// Writes descriptors that follow each other from `first` on.
    pub(crate) fn chain(&self, first: u16, buffers: &[(u64, u32, u16)]) {
        for (number, (place, &(addr, len, flags))) in (first..).zip(buffers.iter().enumerate()) {
            let follows = if place + 1 < buffers.len() { NEXT } else { 0 };
            self.descriptor(number, (addr, len, flags | follows, number + 1));
        }
    }

    /// Makes a chain available.
    pub(crate) fn offer(&mut self, head: u16) {
        let entry = u64::from(self.available & (self.size - 1));
        self.write(AVAILABLE + 4 + 2 * entry, &head.to_le_bytes());
        self.set_available(self.available.wrapping_add(1));
    }

    pub(crate) fn set_available(&mut self, index: u16) {
        self.available = index;
        self.write(AVAILABLE + 2, &index.to_le_bytes());
    }

    /// Says that it wants no calls, or that it does; without an event index.
    pub(crate) fn set_no_interrupt(&self, flag: u16) {
        self.write(AVAILABLE, &flag.to_le_bytes());
    }

    /// Says from which used entry on it wants to be called.
    pub(crate) fn set_used_event(&self, event: u16) {
        self.write(AVAILABLE + 4 + 2 * u64::from(self.size), &event.to_le_bytes());
    }

    /// From which available entry on the device wants to be kicked.
    pub(crate) fn avail_event(&self) -> u16 {
        u16::from_le_bytes(self.read(USED + 4 + 8 * u64::from(self.size)))
    }

    /// Whether the device wants no kicks; without an event index.
    pub(crate) fn no_notify(&self) -> bool {
        u16::from_le_bytes(self.read(USED)) & 1 != 0
    }

    pub(crate) fn used_index(&self) -> u16 {
        u16::from_le_bytes(self.read(USED + 2))
    }

    pub(crate) fn set_used_index(&self, index: u16) {
        self.write(USED + 2, &index.to_le_bytes());
    }

    /// The heads that the device has given back since the last time, and the bytes written.
    pub(crate) fn take_used(&mut self) -> Vec<(u32, u32)> {
        let mut used = Vec::new();
        while self.seen != self.used_index() {
            let entry = USED + 4 + 8 * u64::from(self.seen & (self.size - 1));
            let [head, bytes] = [entry, entry + 4].map(|at| u32::from_le_bytes(self.read(at)));
            used.push((head, bytes));
            self.seen = self.seen.wrapping_add(1);
        }
        used
    }
}

/// A descriptor as it lies in memory.
pub(crate) fn encoded((addr, len, flags, next): Descriptor) -> Vec<u8> {
    let mut bytes = addr.to_le_bytes().to_vec();
    bytes.extend(len.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(next.to_le_bytes());
    bytes
}
