//! Writes: into the cache when there is room, and from there to the disks, with the parity; and who
//! waits for that.

use std::collections::BTreeSet;
use std::ops::Range;

use paternoster::{Instant, Sector};

use super::destage::{Dirty, DirtyId};
use super::members::Purpose;
use super::striping::{Piece, Stripe};
use super::{Array, Due, WaitsForDisks, range};

impl Array {
    /// Writes enter the cache in their order, as long as there is room.
    pub(super) fn admit_writes(&mut self, now: Instant) {
        while let Some(&tag) = self.writing.front() {
            let command = self.command(tag).command;
            if !self.destage.has_room(command.sectors) {
                return;
            }
            self.writing.pop_front();
            let range = range(&command).expect("a write that waits has sectors");
            self.cache.write(range.clone());
            self.destage.write(now, range.clone());
            if command.durable && !self.parameters.write_back.battery {
                let left = self.destage.hurry(range);
                self.wait_for_disks(now, tag, left);
            } else {
                self.schedule(now, Due::Done(tag));
            }
        }
    }

    /// The command is done when what is in `left` is on the disks.
    pub(super) fn wait_for_disks(&mut self, now: Instant, tag: u32, left: BTreeSet<DirtyId>) {
        if left.is_empty() {
            self.schedule(now, Due::Done(tag));
        } else {
            self.syncing.push(WaitsForDisks { tag, left });
        }
    }

    /// Has the disks write what is to be written now.
    pub(super) fn write_back(&mut self, now: Instant) {
        while let Some((stripe, dirty)) = self.destage.take(now, !self.writing.is_empty()) {
            let parts = dirty.ranges();
            if parts == [self.parameters.striping.sectors(stripe)] {
                self.write_stripe(now, stripe, dirty);
            } else {
                let pieces = self.with_parity(stripe, &parts);
                for piece in &pieces {
                    self.members.read(now, piece, Purpose::Old(stripe));
                }
                self.destage.begin(stripe, dirty, pieces.len());
            }
        }
    }

    /// Has the disks write parts of a stripe, and its parity.
    pub(super) fn write_stripe(&mut self, now: Instant, stripe: Stripe, dirty: Dirty) {
        let pieces = self.with_parity(stripe, &dirty.ranges());
        for piece in &pieces {
            self.members.write(now, piece, Purpose::New(stripe));
        }
        self.destage.begin(stripe, dirty, pieces.len());
    }

    /// The pieces of parts of a stripe, and the piece of its parity.
    fn with_parity(&self, stripe: Stripe, parts: &[Range<Sector>]) -> Vec<Piece> {
        let striping = self.parameters.striping;
        let data = parts.iter().flat_map(|part| striping.pieces(part.clone()));
        data.chain([striping.parity(stripe, parts)]).collect()
    }

    /// The disks have written a stripe: there is room again, and who waited for it goes on.
    pub(super) fn stripe_is_written(&mut self, now: Instant, stripe: Stripe, dirty: &Dirty) {
        let (id, clean) = self.destage.end(stripe, dirty);
        for range in clean {
            self.cache.unpin(range);
        }
        for mut one in std::mem::take(&mut self.syncing) {
            one.left.remove(&id);
            if one.left.is_empty() {
                self.schedule(now, Due::Done(one.tag));
            } else {
                self.syncing.push(one);
            }
        }
        self.admit_writes(now);
    }
}
