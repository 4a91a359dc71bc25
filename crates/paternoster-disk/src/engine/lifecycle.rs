//! Volumes that come, grow and go while others are served.
//!
//! ```text
//!   add ──▶ open ──close──▶ closing ──the last command is done──▶ idle ──▶ remove
//!            │ grow          │ what is in the device is answered
//!            ◀───────        │ all else fails with ESHUTDOWN, but for flushes that come
//! ```
//!
//! A request of a closing volume that is with the scheduler stays there until it is dispatched, and
//! ends then without the device: schedulers have no way to give up one request. So a volume whose
//! group is capped, or waits for others, takes as long to become idle; and to the scheduler such a
//! request is one that the device was very fast with, which may mislead what it learns.

use paternoster::scheduler::Scheduler;
use paternoster::{Instant, RequestId, SectorCount};
use rustix::io::Errno;

use super::pieces::{InOrder, Scope};
use super::volumes::{NoGrowth, NoVolume, VolumeId, VolumePlace, VolumeStats};
use super::{Engine, SyncStats};
use crate::backend::Capabilities;

impl<S: Scheduler> Engine<S> {
    /// Takes a volume, whose back end can do that. The elevator makes no request that one of its
    /// volumes does not take, also when that volume has gone. The caller lets the engine take steps
    /// afterwards.
    ///
    /// # Panics
    ///
    /// Where a block has no power of two of bytes.
    pub fn add_volume(&mut self, capabilities: &Capabilities) -> Result<VolumeId, NoVolume> {
        let volume = self.pieces.volumes.add(capabilities)?;
        let before = *self.elevator().limits();
        let taken = capabilities.max_transfer.map(|bytes| bytes / SectorCount::SECTOR_BYTES);
        let of = &self.pieces.volumes[volume];
        let limits = before
            .with_max_sectors(
                taken.map_or(before.max_sectors, |most| most.clamp(1, before.max_sectors)),
            )
            .with_max_discard_sectors(
                before.max_discard_sectors.max(of.limits(&before).max_discard_sectors),
            )
            .with_block_sectors(before.block_sectors.max(of.place.block));
        if limits != before {
            self.administer(|elevator| elevator.set_limits(limits));
        }
        Ok(volume)
    }

    /// Returns all volumes, also those that are closing.
    pub fn volumes(&self) -> impl Iterator<Item = VolumeId> {
        self.pieces.volumes.iter().map(|(id, _)| id)
    }

    /// Returns the volumes that are not closing.
    pub fn open_volumes(&self) -> impl Iterator<Item = VolumeId> {
        let open = self.pieces.volumes.iter().filter(|(_, volume)| !volume.is_closing);
        open.map(|(id, _)| id)
    }

    /// Returns whether a volume may have so many bytes.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn check_growth(&self, id: VolumeId, size: u64) -> Result<(), NoGrowth> {
        self.pieces.volumes.check_growth(id, size)
    }

    /// A volume has so many bytes from now on, as its back end has.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn grow_volume(&mut self, id: VolumeId, size: u64) -> Result<(), NoGrowth> {
        self.pieces.volumes.grow(id, size)
    }

    /// A sync of a volume has failed for who served it before: nothing is called durable any more.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn sync_has_failed(&mut self, id: VolumeId) {
        self.pieces.volumes.sync_has_failed(id);
    }

    /// Begins nothing of a volume any more but flushes: what is in the device is answered, and all
    /// else fails with ESHUTDOWN. A sync that has not begun is carried out all the same: who waits
    /// for it gets ESHUTDOWN, or EIO if it fails, as that is told only once. The caller lets the
    /// engine take steps afterwards.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn close_volume(&mut self, id: VolumeId) {
        self.pieces.volumes[id].is_closing = true;
        self.pieces.cancel_syncs(Scope::One(id));
        self.end_waiting(Scope::One(id), Vec::new());
    }

    /// Forgets a volume that is idle.
    ///
    /// # Panics
    ///
    /// Where it is not idle, or there is no such volume.
    pub fn remove_volume(&mut self, id: VolumeId) {
        self.pieces.volumes.remove(id);
    }

    /// Returns whether no command of the volume is in flight.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn is_volume_idle(&self, id: VolumeId) -> bool {
        self.pieces.volumes[id].commands == 0
    }

    /// Returns where the volume lies for the elevator.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn place(&self, id: VolumeId) -> VolumePlace {
        self.pieces.volumes[id].place
    }

    /// Returns the bytes of all volumes.
    pub fn bytes(&self) -> u64 {
        self.pieces.volumes.bytes
    }

    /// Returns the counts of all volumes' syncs, those that succeeded also of volumes that have
    /// gone.
    pub fn all_syncs(&self) -> SyncStats {
        self.pieces.volumes.all_syncs()
    }

    /// Returns what a volume has been asked for.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn volume_stats(&self, id: VolumeId) -> VolumeStats {
        self.pieces.volumes[id].asked
    }

    /// Returns the counts of a volume's syncs.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn sync_stats(&self, id: VolumeId) -> SyncStats {
        self.pieces.volumes[id].syncs().stats()
    }

    /// Ends a request of a closing volume that has been dispatched; one of a paused volume waits.
    pub(super) fn refuse(&mut self, now: Instant, rq: RequestId, order: InOrder) {
        self.driver.complete(now, rq);
        let of = &self.pieces.volumes[self.pieces.piece(order[0]).volume];
        if of.is_paused && !of.is_closing {
            return self.paused.wait(order);
        }
        for piece in order {
            self.end_piece(piece, Err(Errno::SHUTDOWN));
        }
    }
}
