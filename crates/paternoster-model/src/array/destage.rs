//! Written data on their way from the cache to the disks, stripe by stripe.
//!
//! ```text
//!   all of the stripe        write data and parity
//!   some of it               read old data and old parity ──▶ write new data and new parity
//! ```
//!
//! A stripe waits for more of it to be written, but not for ever: until it has waited for the time
//! that is set, half of the room for written data is taken, or somebody waits for it. Stripes go
//! in the order in which they were first written; what somebody waits for goes before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use paternoster::{Instant, Nanos, Sector, SectorCount};
use rangemap::RangeSet;

use super::striping::{Stripe, Striping};

/// What of the cache written data may take, and how long they may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// At most so many sectors, at least those of a stripe.
    pub room: SectorCount,
    /// How long a stripe waits for more.
    pub delay: Nanos,
    /// Data in the cache survive a loss of power: a flush and a durable write need not wait for
    /// the disks.
    pub battery: bool,
}

/// Names what of a stripe was written from one destage to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DirtyId(u64);

/// What of a stripe is to be written.
#[derive(Clone, Debug)]
pub(super) struct Dirty {
    id: DirtyId,
    since: Instant,
    ranges: RangeSet<Sector>,
}

impl Dirty {
    /// Its parts.
    pub(super) fn ranges(&self) -> Vec<Range<Sector>> {
        self.ranges.iter().cloned().collect()
    }
}

/// A stripe that is being written.
#[derive(Clone, Debug)]
struct Ongoing {
    dirty: Dirty,
    /// Commands of the disks that have not completed.
    commands: usize,
}

/// The data on their way.
#[derive(Clone, Debug)]
pub(super) struct Destage {
    by: WriteBack,
    striping: Striping,
    /// What waits.
    dirty: BTreeMap<Stripe, Dirty>,
    /// The same, in the order of its first write.
    order: BTreeMap<DirtyId, Stripe>,
    /// What somebody waits for.
    urgent: BTreeSet<DirtyId>,
    ongoing: BTreeMap<Stripe, Ongoing>,
    /// Sectors that wait or are being written.
    sectors: u64,
    ids: u64,
}

impl Destage {
    pub(super) fn new(by: WriteBack, striping: Striping) -> Self {
        Self {
            by,
            striping,
            dirty: BTreeMap::new(),
            order: BTreeMap::new(),
            urgent: BTreeSet::new(),
            ongoing: BTreeMap::new(),
            sectors: 0,
            ids: 0,
        }
    }

    /// Whether so many sectors more may be written into the cache. One write may, whatever its
    /// length, if there is nothing else.
    pub(super) fn has_room(&self, sectors: SectorCount) -> bool {
        self.sectors == 0 || self.sectors + u64::from(sectors.0) <= u64::from(self.by.room.0)
    }

    /// `range` was written into the cache.
    pub(super) fn write(&mut self, now: Instant, range: Range<Sector>) {
        for (stripe, part) in self.striping.by_stripe(range) {
            let dirty = self.dirty.entry(stripe).or_insert_with(|| {
                self.ids += 1;
                let id = DirtyId(self.ids);
                self.order.insert(id, stripe);
                Dirty { id, since: now, ranges: RangeSet::new() }
            });
            self.sectors += dirty.ranges.gaps(&part).map(|gap| length(&gap)).sum::<u64>();
            dirty.ranges.insert(part);
        }
    }

    /// Somebody waits for `range`. Returns what has to be on the disks for that.
    pub(super) fn hurry(&mut self, range: Range<Sector>) -> BTreeSet<DirtyId> {
        let stripes = self.striping.by_stripe(range).map(|(stripe, _)| stripe);
        let waiting = stripes.filter_map(|stripe| self.dirty.get(&stripe)).map(|dirty| dirty.id);
        let ids: BTreeSet<_> = waiting.collect();
        self.urgent.extend(&ids);
        ids
    }

    /// Somebody waits for everything. Returns what has to be on the disks for that.
    pub(super) fn hurry_all(&mut self) -> BTreeSet<DirtyId> {
        self.urgent.extend(self.order.keys());
        let ongoing = self.ongoing.values().map(|ongoing| ongoing.dirty.id);
        self.order.keys().copied().chain(ongoing).collect()
    }

    /// When a stripe will have waited long enough.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.is_busy() {
            return None;
        }
        let stripes = self.order.values().filter(|stripe| !self.ongoing.contains_key(stripe));
        stripes.map(|stripe| self.dirty[stripe].since + self.by.delay).next()
    }

    /// Takes the stripe that is to be written next, if one is to be. `is_full` says that a write
    /// waits for room.
    pub(super) fn take(&mut self, now: Instant, is_full: bool) -> Option<(Stripe, Dirty)> {
        if self.is_busy() {
            return None;
        }
        let is_free = |id: &&DirtyId| !self.ongoing.contains_key(&self.order[*id]);
        let hurried = self.urgent.iter().find(is_free);
        let id = hurried.or_else(|| {
            self.order.keys().find(is_free).filter(|id| {
                let waited = now.saturating_since(self.dirty[&self.order[*id]].since);
                is_full || waited >= self.by.delay || 2 * self.sectors > u64::from(self.by.room.0)
            })
        });
        let id = *id?;
        self.urgent.remove(&id);
        let stripe = self.order.remove(&id).expect("what waits has a place in the order");
        let dirty = self.dirty.remove(&stripe).expect("what is in the order waits");
        Some((stripe, dirty))
    }

    /// The stripe is being read or written by so many commands.
    pub(super) fn begin(&mut self, stripe: Stripe, dirty: Dirty, commands: usize) {
        self.ongoing.insert(stripe, Ongoing { dirty, commands });
    }

    /// A command of the stripe has completed. Returns what was read or written if it was the last.
    pub(super) fn completed(&mut self, stripe: Stripe) -> Option<Dirty> {
        let ongoing = self.ongoing.get_mut(&stripe).expect("the stripe is being written");
        ongoing.commands -= 1;
        if ongoing.commands > 0 {
            return None;
        }
        self.ongoing.remove(&stripe).map(|ongoing| ongoing.dirty)
    }

    /// The stripe is on the disks. Returns the name of what was written, and what of that is not
    /// to be written again.
    pub(super) fn end(&mut self, stripe: Stripe, dirty: &Dirty) -> (DirtyId, Vec<Range<Sector>>) {
        self.sectors -= dirty.ranges.iter().map(length).sum::<u64>();
        let again = self.dirty.get(&stripe).map(|dirty| dirty.ranges.clone()).unwrap_or_default();
        let clean = dirty.ranges.iter().flat_map(|range| again.gaps(range)).collect();
        (dirty.id, clean)
    }

    /// Whether as many stripes are being written as there are disks.
    fn is_busy(&self) -> bool {
        self.ongoing.len() >= self.striping.disks as usize
    }

    /// Sectors that wait or are being written.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }
}

fn length(range: &Range<Sector>) -> u64 {
    range.end.0 - range.start.0
}
