//! One ring, as a driver has it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};

use anyhow::{Context as _, Result};
use paternoster_vhost::proto::{Features, request};
use rustix::event::{EventfdFlags, eventfd};

use super::{FrontEnd, Guest};

/// Bytes of a page, to which everything is aligned.
const PAGE: u64 = 4096;

/// In the flags of a descriptor: there is another behind it, and the device writes to it.
const NEXT: u16 = 1;
const WRITE: u16 = 2;

/// Something that a driver asks for. Sectors have 512 bytes.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// So many bytes from a sector on.
    Read(u64, u32),
    /// These are written there.
    Write(u64, &'a [u8]),
    /// What is done is durable.
    Flush,
    /// The name of the device.
    GetId,
    /// So many sectors are given up.
    Discard(u64, u32),
    /// So many are zeroes from now on.
    WriteZeroes(u64, u32),
    /// Any type, with these bytes behind the header, and so many that the device may write.
    Other(u32, u64, &'a [u8], u32),
}

/// Something that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The slot, which is free again.
    pub slot: u16,
    /// The status that the device has written.
    pub status: u8,
    /// The bytes of data that it has written before that.
    pub read: u32,
}

/// A ring of slots.
#[derive(Debug)]
pub struct Ring {
    number: u16,
    slots: u16,
    room: u32,
    size: u16,
    features: Features,
    /// Where its available entries are, unless they are where they belong.
    moved: Option<u64>,
    kick: OwnedFd,
    call: OwnedFd,
    err: OwnedFd,
    free: Vec<u16>,
    /// Of each slot that is taken, whether its data comes from the device.
    reads: Vec<Option<bool>>,
    /// The index that was written last, and the used entries that were seen.
    available: u16,
    seen: u16,
    /// How often the server was kicked.
    pub kicks: u64,
    /// How often it has called.
    pub calls: u64,
}

/// The descriptors of a ring with so many slots.
pub(super) fn size(slots: u16) -> u16 {
    (3 * slots).next_power_of_two()
}

/// The bytes of a ring and its slots.
pub(super) fn bytes(slots: u16, room: u32) -> u64 {
    let [_, _, _, slots_at] = places(slots);
    slots_at + u64::from(slots) * slot_bytes(room)
}

/// Where descriptors, available and used entries and the slots begin in the ring's part.
fn places(slots: u16) -> [u64; 4] {
    let size = u64::from(size(slots));
    let available = (16 * size).next_multiple_of(PAGE);
    let used = available + (2 * size + 6).next_multiple_of(PAGE);
    [0, available, used, used + (8 * size + 6).next_multiple_of(PAGE)]
}

/// The bytes of a slot: a page for header and status, and the data.
fn slot_bytes(room: u32) -> u64 {
    PAGE + u64::from(room).next_multiple_of(PAGE)
}

impl Ring {
    /// The ring of that number, which does not run yet.
    pub(super) fn new(number: u16, slots: u16, room: u32) -> Result<Self> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self {
            number,
            slots,
            room,
            size: size(slots),
            features: Features::empty(),
            moved: None,
            kick: event()?,
            call: event()?,
            err: event()?,
            free: (0..slots).rev().collect(),
            reads: vec![None; usize::from(slots)],
            available: 0,
            seen: 0,
            kicks: 0,
            calls: 0,
        })
    }

    /// Where its part of the memory begins.
    fn base(&self) -> u64 {
        u64::from(self.number) * bytes(self.slots, self.room)
    }

    /// Where descriptors, available and used entries and the slots are.
    pub fn places(&self) -> [u64; 4] {
        let [descriptors, available, used, slots] =
            places(self.slots).map(|place| self.base() + place);
        [descriptors, self.moved.unwrap_or(available), used, slots]
    }

    /// Has its available entries elsewhere, from its next start on.
    pub fn move_available(&mut self, addr: u64) {
        self.moved = Some(addr);
    }

    /// Where its part of the memory ends, in the data of its last slot.
    pub fn end(&self) -> u64 {
        self.base() + bytes(self.slots, self.room)
    }

    /// Has the server start it, or go on where a server before it was.
    pub fn start(
        &mut self,
        front_end: &mut FrontEnd,
        guest: &Guest,
        features: Features,
    ) -> Result<()> {
        self.features = features;
        let number = u32::from(self.number);
        let words = |value: u32| [number, value].map(u32::to_ne_bytes).concat();
        front_end.tell(request::SET_VRING_NUM, &words(self.size.into()), NO_FILES)?;
        front_end.tell(request::SET_VRING_BASE, &words(self.seen.into()), NO_FILES)?;
        let [descriptors, available, used, _] = self.places().map(Guest::front_end);
        let longs = [descriptors, used, available, 0].map(u64::to_ne_bytes).concat();
        front_end.tell(request::SET_VRING_ADDR, &[words(0), longs].concat(), NO_FILES)?;
        let number = u64::from(self.number).to_ne_bytes();
        front_end.tell(request::SET_VRING_CALL, &number, &[&self.call])?;
        front_end.tell(request::SET_VRING_ERR, &number, &[&self.err])?;
        front_end.tell(request::SET_VRING_KICK, &number, &[&self.kick])?;
        front_end.tell(request::SET_VRING_ENABLE, &words(1), NO_FILES)?;
        // From the next used entry on.
        guest.store(self.used_event(), self.seen);
        Ok(())
    }

    /// Prepares something to be asked for. Returns its slot; an error where none is free.
    pub(super) fn prepare(&mut self, guest: &Guest, ask: &Ask<'_>) -> Result<u16> {
        let slot = self.free.pop().context("all slots of the ring are taken")?;
        self.offer(guest, slot, ask);
        Ok(slot)
    }

    /// What the device has read for a request that is done, until its slot is taken again.
    pub(super) fn data(&self, guest: &Guest, done: &Done) -> Vec<u8> {
        let mut data = vec![0; done.read as usize];
        guest.read(self.slot(done.slot) + PAGE, &mut data);
        data
    }

    /// Kicks the server, whether it wants that or not.
    pub fn kick(&mut self) -> Result<()> {
        self.kicks += 1;
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes())?;
        Ok(())
    }

    /// Returns whether the server has said that the ring is broken, since the last time.
    pub fn is_broken(&self) -> bool {
        rustix::io::read(&self.err, &mut [0; 8]).is_ok()
    }

    /// Returns whether a slot is free.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Writes the descriptors of a slot and makes them available.
    fn offer(&mut self, guest: &Guest, slot: u16, ask: &Ask<'_>) {
        let [descriptors, available, _, _] = self.places();
        let at = self.slot(slot);
        let (header, status, data) = (at, at + 16, at + PAGE);
        let mut range = [0; 16];
        if let Ask::Discard(sector, sectors) | Ask::WriteZeroes(sector, sectors) = *ask {
            range[..8].copy_from_slice(&sector.to_le_bytes());
            range[8..12].copy_from_slice(&sectors.to_le_bytes());
        }
        let (kind, sector, out, room) = match *ask {
            Ask::Read(sector, len) => (0, sector, &[][..], len),
            Ask::Write(sector, data) => (1, sector, data, 0),
            Ask::Flush => (4, 0, &[][..], 0),
            Ask::GetId => (8, 0, &[][..], 20),
            Ask::Discard(..) => (11, 0, &range[..], 0),
            Ask::WriteZeroes(..) => (13, 0, &range[..], 0),
            Ask::Other(kind, sector, out, room) => (kind, sector, out, room),
        };
        let mut bytes = u32::to_le_bytes(kind).to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        guest.write(header, &bytes);
        guest.write(status, &[0xff]);
        guest.write(data, out);
        self.reads[usize::from(slot)] = Some(room > 0);
        let len = if room > 0 { room } else { u32::try_from(out.len()).expect("it fits") };
        let first = 3 * slot;
        let write = if room > 0 { WRITE } else { 0 };
        let of_data = (len > 0).then_some((data, len, write));
        let parts = [Some((header, 16, 0)), of_data, Some((status, 1, WRITE))];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        for (place, &(addr, len, flags)) in (first..).zip(&parts) {
            let is_last = usize::from(place - first) + 1 == parts.len();
            let flags = if is_last { flags } else { flags | NEXT };
            let mut descriptor = addr.to_le_bytes().to_vec();
            descriptor.extend(len.to_le_bytes());
            descriptor.extend(flags.to_le_bytes());
            descriptor.extend((place + 1).to_le_bytes());
            guest.write(descriptors + 16 * u64::from(place), &descriptor);
        }
        let entry = u64::from(self.available & (self.size - 1));
        guest.write(available + 4 + 2 * entry, &first.to_le_bytes());
        self.available = self.available.wrapping_add(1);
    }

    /// Says that so many chains more are available than there are.
    pub fn run_ahead(&mut self, guest: &Guest, by: u16) -> Result<()> {
        self.run_ahead_quietly(guest, by);
        self.kick()
    }

    /// The same without a kick.
    pub(super) fn run_ahead_quietly(&mut self, guest: &Guest, by: u16) {
        let [_, available, _, _] = self.places();
        guest.store(available + 2, self.available.wrapping_add(by));
    }

    /// Is as one that has never asked for anything.
    pub fn forget(&mut self, guest: &Guest) {
        let [_, available, used, _] = self.places();
        guest.store(available + 2, 0);
        guest.store(used + 2, 0);
        (self.available, self.seen, self.free) = (0, 0, (0..self.slots).rev().collect());
        self.reads.fill(None);
    }

    /// Lets the server see what is available, and kicks it where it wants that.
    pub(super) fn publish(&mut self, guest: &Guest) -> Result<()> {
        let [_, available, used, _] = self.places();
        let before = guest.load(available + 2);
        self.run_ahead_quietly(guest, 0);
        fence(Ordering::SeqCst);
        let wants = if self.features.contains(Features::EVENT_IDX) {
            let event = guest.load(used + 4 + 8 * u64::from(self.size));
            let passed = self.available.wrapping_sub(event).wrapping_sub(1);
            passed < self.available.wrapping_sub(before)
        } else {
            guest.load(used) & 1 == 0
        };
        if wants { self.kick() } else { Ok(()) }
    }

    /// Has the server call for the next that is done. Returns whether that is there already.
    pub(super) fn wants_call(&self, guest: &Guest) -> bool {
        guest.store(self.used_event(), self.seen);
        fence(Ordering::SeqCst);
        self.has_done(guest)
    }

    /// What the server calls by.
    pub(super) fn call(&self) -> &OwnedFd {
        &self.call
    }

    /// Takes note of calls.
    pub(super) fn take_calls(&mut self) {
        let mut count = [0; 8];
        if rustix::io::read(&self.call, &mut count).is_ok() {
            self.calls += u64::from_ne_bytes(count);
        }
    }

    fn has_done(&self, guest: &Guest) -> bool {
        let [_, _, used, _] = self.places();
        guest.load(used + 2) != self.seen
    }

    /// Takes what is done; an error where that is nothing that was asked for and is not done.
    pub(super) fn take_done(&mut self, guest: &Guest) -> Result<Vec<Done>> {
        let [_, _, used, _] = self.places();
        let mut all = Vec::new();
        while self.has_done(guest) {
            let entry = used + 4 + 8 * u64::from(self.seen & (self.size - 1));
            let mut bytes = [0; 8];
            guest.read(entry, &mut bytes);
            let (words, _) = bytes.as_chunks();
            let [head, len] = [words[0], words[1]].map(u32::from_le_bytes);
            let slot = u16::try_from(head / 3).ok().filter(|slot| *slot < self.slots);
            let slot = slot.with_context(|| format!("head {head} is done, and there is none"))?;
            let reads = self.reads[usize::from(slot)].take();
            let reads = reads.with_context(|| format!("head {head} is done twice"))?;
            let at = self.slot(slot);
            let mut status = [0];
            guest.read(at + 16, &mut status);
            let read = if reads { len.saturating_sub(1) } else { 0 };
            all.push(Done { slot, status: status[0], read });
            self.free.push(slot);
            self.seen = self.seen.wrapping_add(1);
        }
        Ok(all)
    }

    /// Where a slot is: its header and status; its data is a page behind.
    fn slot(&self, slot: u16) -> u64 {
        let [_, _, _, slots] = self.places();
        slots + u64::from(slot) * slot_bytes(self.room)
    }

    /// Where it says from which used entry on it wants to be called.
    fn used_event(&self) -> u64 {
        let [_, available, _, _] = self.places();
        available + 4 + 2 * u64::from(self.size)
    }
}

/// No file goes with a message.
const NO_FILES: &[&OwnedFd] = &[];
