//! The volumes of a disk: what each has of its own, beside the scheduler and the device that they
//! share. A disk without volumes has one, which is all of it.
//!
//! ```text
//!   sectors of the elevator   0              2⁴³             2·2⁴³            3·2⁴³
//!   slots                     │ slot 0       │ slot 1        │ slot 2         │ …
//!   volumes                   ├────────┤     ├───────────┤   │ free           │
//!                             a        gap   b           gap
//! ```
//!
//! A volume's first sector is its slot's, so it never moves, and may grow. It never fills its slot:
//! between the last sector of one volume and the first of another there is always a gap, so that
//! nothing of two volumes ever merges. The device knows nothing of slots: a transfer has the
//! volume's own bytes.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Index, IndexMut, Range};

use paternoster::{Bio, Instant, Limits, Sector, SectorCount};
use slotmap::{SlotMap, new_key_type};

use super::MAX_DISCARD;
use super::blocks::Blocks;
use super::command::CommandOp;
use super::holds::Holds;
use super::pieces::CommandId;
use super::sync::{SyncEnd, SyncRange, SyncStats, Syncs};
use super::touching::Touching;
use super::turns::SyncTurns;
use crate::backend::{Capabilities, Granules};
use crate::guest::GuestReads;

new_key_type! {
    /// Names a volume of a disk; none that comes later has the same.
    pub struct VolumeId;
}

/// Sectors of a slot.
const SLOT: u64 = 1 << 43;
/// Sectors at the end of a slot that no volume has.
const GAP: u64 = 1 << 11;
/// Slots that the sectors of an elevator have room for.
const SLOTS: u32 = 1 << 21;
/// Volumes that sync at once.
const SYNCS_AT_ONCE: usize = 4;

/// Why a disk takes no volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoVolume {
    /// It has so many bytes, which are too many.
    TooLarge(u64),
    /// There are as many as there may be.
    TooMany,
}

impl fmt::Display for NoVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => {
                let most = (SLOT - GAP) * u64::from(SectorCount::SECTOR_BYTES);
                write!(f, "it has {bytes} bytes; {most} or fewer are allowed")
            }
            Self::TooMany => write!(f, "there are {SLOTS} volumes, and no more are allowed"),
        }
    }
}

impl std::error::Error for NoVolume {}

/// Why a volume cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGrowth {
    /// It would have so many bytes, which are too many.
    TooLarge(u64),
    /// It would have fewer bytes than those that it has.
    Smaller(u64),
    /// Its last block is a short one, which commands in flight may be changing.
    Busy,
}

impl fmt::Display for NoGrowth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => NoVolume::TooLarge(*bytes).fmt(f),
            Self::Smaller(bytes) => write!(f, "it has {bytes} bytes, and cannot become smaller"),
            Self::Busy => f.write_str("its last block is short and in use: it can grow when idle"),
        }
    }
}

impl std::error::Error for NoGrowth {}

/// What a volume has been asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeStats {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write data.
    pub writes: u64,
    /// Bytes of those that read.
    pub read_bytes: u64,
    /// Bytes of those that write.
    pub written_bytes: u64,
}

impl VolumeStats {
    /// Counts a command.
    pub(super) fn count(&mut self, op: &CommandOp) {
        match op {
            CommandOp::Read { len, .. } => {
                self.reads += 1;
                self.read_bytes += u64::from(*len);
            }
            CommandOp::ReadInto { into, .. } => {
                self.reads += 1;
                self.read_bytes += u64::from(into.len());
            }
            CommandOp::Write { data, .. } => {
                self.writes += 1;
                self.written_bytes += data.len() as u64;
            }
            _ => {}
        }
    }
}

/// Where a volume lies in the elevator's sectors, for those who make bios of its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumePlace {
    /// The sector of the elevator that is its first.
    pub first: Sector,
    /// Sectors of a block, at least one.
    pub block: u32,
}

impl VolumePlace {
    /// A bio in the sectors of the volume, as the elevator knows it.
    pub(super) fn for_elevator(self, mut bio: Bio) -> Bio {
        bio.sector = Sector(self.first.0 + bio.sector.0);
        bio
    }

    /// The limits on its bios, where those are the elevator's.
    pub(super) fn limits(self, of_elevator: &Limits) -> Limits {
        of_elevator.with_block_sectors(self.block)
    }
}

/// One volume.
#[derive(Debug)]
pub(super) struct Volume {
    pub(super) place: VolumePlace,
    pub(super) blocks: Blocks,
    /// In what the device forgets; none where any block will do.
    pub(super) granules: Option<Granules>,
    /// Whether zeroing a range without writing it is possible.
    pub(super) fast_zero: bool,
    /// What a read straight into a machine's memory has to be.
    pub(super) reads_into: Option<GuestReads>,
    pub(super) holds: Holds,
    /// How many pieces touch each block; none as long as no block had to be held since no volume
    /// had a piece.
    pub(super) touching: Option<Touching>,
    syncs: Syncs<CommandId>,
    pub(super) asked: VolumeStats,
    /// Commands in flight.
    pub(super) commands: u32,
    /// Whether nothing of it is begun any more.
    pub(super) is_closing: bool,
    /// Whether its requests wait without a place in the device.
    pub(super) is_paused: bool,
}

/// All volumes of a disk.
#[derive(Debug)]
pub(super) struct Volumes {
    all: SlotMap<VolumeId, Volume>,
    slots: Slots,
    turns: SyncTurns<VolumeId>,
    /// Bytes of all.
    pub(super) bytes: u64,
    /// Syncs that succeeded, also of those that have gone.
    synced: u64,
    /// Those of which a sync has failed.
    failed: u32,
}

impl Volumes {
    pub(super) fn new() -> Self {
        let (all, slots) = (SlotMap::default(), Slots::default());
        let turns = SyncTurns::new(SYNCS_AT_ONCE);
        Self { all, slots, turns, bytes: 0, synced: 0, failed: 0 }
    }

    /// The counts of all syncs; they have failed where a volume that is here has one that has.
    pub(super) fn all_syncs(&self) -> SyncStats {
        SyncStats { succeeded: self.synced, failed: self.failed > 0 }
    }

    /// At most so many sync at once.
    pub(super) fn set_sync_depth(&mut self, volumes: usize) {
        self.turns.set_at_once(volumes);
    }

    /// Takes a volume, which has no commands.
    ///
    /// # Panics
    ///
    /// Where a block has no power of two of bytes.
    pub(super) fn add(&mut self, capabilities: &Capabilities) -> Result<VolumeId, NoVolume> {
        let Capabilities { size, block, granules, fast_zero, reads_into, .. } = *capabilities;
        let blocks = Blocks::new(block, size);
        if !has_room(size) {
            return Err(NoVolume::TooLarge(size));
        }
        let first = self.slots.take().ok_or(NoVolume::TooMany)?;
        self.bytes += size;
        Ok(self.all.insert(Volume {
            place: VolumePlace { first, block: blocks.sectors() },
            blocks,
            granules,
            fast_zero,
            reads_into,
            holds: Holds::default(),
            touching: None,
            syncs: Syncs::new(),
            asked: VolumeStats::default(),
            commands: 0,
            is_closing: false,
            is_paused: false,
        }))
    }

    /// Forgets a volume.
    ///
    /// # Panics
    ///
    /// Where it has commands in flight.
    pub(super) fn remove(&mut self, id: VolumeId) {
        let volume = self.all.remove(id).expect("a volume is removed once");
        assert_eq!(volume.commands, 0, "a volume that is removed has no commands");
        self.slots.give_back(volume.place.first);
        self.bytes -= volume.blocks.disk();
        self.failed -= u32::from(volume.syncs.failed());
    }

    /// Returns whether a volume may have so many bytes.
    pub(super) fn check_growth(&self, id: VolumeId, size: u64) -> Result<(), NoGrowth> {
        if !has_room(size) {
            return Err(NoGrowth::TooLarge(size));
        }
        let volume = &self[id];
        if size < volume.blocks.disk() {
            return Err(NoGrowth::Smaller(volume.blocks.disk()));
        }
        if volume.blocks.last_is_short() && volume.commands > 0 {
            return Err(NoGrowth::Busy);
        }
        Ok(())
    }

    /// A volume has so many bytes from now on.
    pub(super) fn grow(&mut self, id: VolumeId, size: u64) -> Result<(), NoGrowth> {
        self.check_growth(id, size)?;
        let volume = &mut self[id];
        let before = volume.blocks.disk();
        volume.blocks = volume.blocks.of_disk(size);
        self.bytes += size - before;
        Ok(())
    }

    /// The volume, unless it is gone.
    pub(super) fn get(&self, id: VolumeId) -> Option<&Volume> {
        self.all.get(id)
    }

    /// The same, unless it is going.
    pub(super) fn open(&self, id: VolumeId) -> Option<&Volume> {
        self.get(id).filter(|volume| !volume.is_closing)
    }

    /// Counts the pieces of a volume on its blocks no more; it may be gone.
    pub(super) fn stop_counting(&mut self, id: VolumeId) {
        if let Some(volume) = self.all.get_mut(id) {
            volume.touching = None;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (VolumeId, &Volume)> {
        self.all.iter()
    }

    /// A command waits for a sync of that range of its volume that has not begun yet.
    pub(super) fn wait_for_sync(&mut self, id: VolumeId, who: CommandId, range: SyncRange) {
        let Self { all, turns, .. } = self;
        let syncs = &mut all[id].syncs;
        let wanted_already = syncs.wants_to_begin();
        syncs.wait(who, range);
        if !wanted_already && syncs.wants_to_begin() {
            turns.ask(id);
        }
    }

    /// Begins a sync, if one may begin: of which volume, and what it is to cover.
    pub(super) fn begin_sync(&mut self, now: Instant) -> Option<(VolumeId, SyncRange)> {
        let id = self.turns.begin()?;
        let range = self.all[id].syncs.begin(now).expect("who asks wants to begin");
        Some((id, range))
    }

    /// Ends the sync of a volume that runs. Returns whose wait is over by that.
    pub(super) fn end_sync(&mut self, id: VolumeId, ended: SyncEnd) -> Vec<CommandId> {
        let Self { all, turns, synced, failed, .. } = self;
        turns.end();
        let syncs = &mut all[id].syncs;
        *synced += u64::from(ended == SyncEnd::Durable);
        *failed += u32::from(ended == SyncEnd::Failed && !syncs.failed());
        let over = syncs.end(ended);
        if syncs.wants_to_begin() {
            turns.ask(id);
        }
        over
    }

    /// A sync of that volume has failed elsewhere.
    pub(super) fn sync_has_failed(&mut self, id: VolumeId) {
        let syncs = &mut self.all[id].syncs;
        self.failed += u32::from(!syncs.failed());
        syncs.fail();
    }

    /// Gives up the syncs that have not begun. Returns who waits for them.
    pub(super) fn give_up_waiting_syncs(&mut self) -> Vec<CommandId> {
        self.turns.forget_wanting();
        self.all.values_mut().flat_map(|volume| volume.syncs.give_up_waiting()).collect()
    }

    /// Returns whether no volume syncs, or is about to.
    pub(super) fn are_synced(&self) -> bool {
        self.turns.is_idle()
    }
}

impl Index<VolumeId> for Volumes {
    type Output = Volume;

    fn index(&self, id: VolumeId) -> &Volume {
        &self.all[id]
    }
}

impl IndexMut<VolumeId> for Volumes {
    fn index_mut(&mut self, id: VolumeId) -> &mut Volume {
        &mut self.all[id]
    }
}

impl Volume {
    /// The limits on its bios, where those are the elevator's: a discard is of whole granules.
    pub(super) fn limits(&self, of_elevator: &Limits) -> Limits {
        let limits = self.place.limits(of_elevator);
        // The elevator takes what a volume with larger granules has.
        let most = limits.max_discard_sectors.saturating_mul(SectorCount::SECTOR_BYTES);
        let most = most.min(MAX_DISCARD);
        let most = self.granules.map_or(most, |granules| granules.most_within(most));
        limits.with_max_discard_sectors(most.div_ceil(SectorCount::SECTOR_BYTES))
    }

    /// Its syncs, for looking only.
    pub(super) fn syncs(&self) -> &Syncs<CommandId> {
        &self.syncs
    }

    /// The bytes that a trim of these forgets: none may be left.
    pub(super) fn trimmed(&self, bytes: Range<u64>) -> Range<u64> {
        let blocks = self.blocks.inside(bytes);
        self.granules.map_or(blocks.clone(), |granules| granules.inside(blocks))
    }

    /// Returns whether it need not be fast, or zeroes something faster than by writing.
    pub(super) fn is_fast_enough(&self, op: &CommandOp) -> bool {
        let &CommandOp::Zero { fast: true, allocate, offset, len, .. } = op else { return true };
        let inside = self.blocks.inside(offset..offset + u64::from(len));
        self.fast_zero && !allocate && (len == 0 || !inside.is_empty())
    }

    /// Returns whether no piece has to wait for a block.
    pub(super) fn takes_bios(&self) -> bool {
        self.holds.is_empty()
    }
}

/// Whether a slot has room for so many bytes.
fn has_room(bytes: u64) -> bool {
    bytes.div_ceil(SectorCount::SECTOR_BYTES.into()) <= SLOT - GAP
}

/// The slots of the elevator's sectors: the lowest free one is taken.
#[derive(Debug, Default)]
struct Slots {
    /// Free ones below `end`.
    free: BTreeSet<u32>,
    /// All from here on are free.
    end: u32,
}

impl Slots {
    /// Takes a slot. Returns its first sector.
    fn take(&mut self) -> Option<Sector> {
        let slot = self.free.pop_first().or_else(|| {
            let next = self.end;
            (next < SLOTS).then(|| {
                self.end += 1;
                next
            })
        })?;
        Some(Sector(u64::from(slot) * SLOT))
    }

    /// Frees the slot that begins there.
    fn give_back(&mut self, first: Sector) {
        let slot = u32::try_from(first.0 / SLOT).expect("it was taken");
        assert!(self.free.insert(slot), "a slot is freed once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_free_slot_is_taken_and_all_fit_into_a_sector_number() {
        let mut slots = Slots::default();
        let first = |slots: &mut Slots| slots.take().map(|Sector(sector)| sector);
        assert_eq!([(); 3].map(|()| first(&mut slots)), [Some(0), Some(SLOT), Some(2 * SLOT)]);
        slots.give_back(Sector(SLOT));
        slots.give_back(Sector(0));
        assert_eq!([(); 3].map(|()| first(&mut slots)), [Some(0), Some(SLOT), Some(3 * SLOT)]);
        let last = std::iter::from_fn(|| first(&mut slots)).last();
        assert_eq!(last.and_then(|last| last.checked_add(SLOT - 1)), Some(u64::MAX));
        assert_eq!(slots.take(), None);
    }

    #[test]
    fn volume_that_would_reach_the_gap_is_refused() {
        let mut volumes = Volumes::new();
        let most = (SLOT - GAP) * 512;
        volumes.add(&Capabilities::new(most, 1)).expect("the largest");
        let error = volumes.add(&Capabilities::new(most + 1, 1)).expect_err("one byte more");
        assert_eq!(
            error.to_string(),
            "it has 4503599626321921 bytes; 4503599626321920 or fewer are allowed"
        );
    }
}
