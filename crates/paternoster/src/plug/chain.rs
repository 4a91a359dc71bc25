//! A chain: a bio in a plug, or several of adjacent ranges that merged there.

use smallvec::{SmallVec, smallvec};

use crate::arena::IocId;
use crate::elevator::{Limits, NoMerges, adjacency};
use crate::request::{Bio, BioFlags, Extent, Op, Sector, SectorCount};
use crate::trace::MergeKind;

/// A bio, or several of one I/O context whose ranges are adjacent and that merged. The elevator
/// makes one request of it; each bio keeps its own result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its bios in the order in which they merged; at least one.
    bios: SmallVec<[Bio; 1]>,
    /// The range of all of them.
    extent: Extent,
    /// The segments of all of them.
    segments: u16,
    /// Whether it has refused a bio for its size. It never merges again.
    has_refused: bool,
}

impl From<Bio> for Chain {
    /// Makes a chain of one bio.
    ///
    /// # Panics
    ///
    /// Where the bio has no valid range, as [`Elevator::submit`](crate::Elevator::submit).
    fn from(bio: Bio) -> Self {
        bio.check_range();
        let extent = Extent { start: bio.sector, sectors: bio.sectors };
        Self { bios: smallvec![bio], extent, segments: bio.segments, has_refused: false }
    }
}

impl Chain {
    /// Its bios in the order in which they merged; at least one.
    pub fn bios(&self) -> &[Bio] {
        &self.bios
    }

    /// Gives its bios other names: what `name` makes of the user data of each is its I/O context
    /// and its user data from now on. A submitter names its own; the owner of the device knows
    /// other names.
    ///
    /// # Panics
    ///
    /// Where bios of one chain would be of several I/O contexts.
    pub fn rename(&mut self, mut name: impl FnMut(u64) -> (IocId, u64)) {
        for bio in &mut self.bios {
            (bio.ioc, bio.user_data) = name(bio.user_data);
        }
        let first = self.bios[0].ioc;
        assert!(self.bios.iter().all(|bio| bio.ioc == first), "a chain is of one I/O context");
    }

    pub(crate) fn into_bios(self) -> impl Iterator<Item = Bio> {
        self.bios.into_iter()
    }

    /// Its first sector.
    pub fn sector(&self) -> Sector {
        self.extent.start
    }

    /// Its length.
    pub fn sectors(&self) -> SectorCount {
        self.extent.sectors
    }

    /// The bio that it would be had its submitter submitted all of it at once.
    pub(crate) fn whole(&self) -> Bio {
        let Extent { start: sector, sectors } = self.extent;
        let whole = Bio { sector, sectors, segments: self.segments, ..self.bios[0] };
        let no_merge = if self.has_refused { BioFlags::NO_MERGE } else { BioFlags::empty() };
        whole.with_flags(whole.flags | no_merge)
    }

    /// The bios behind the first, each with the end of the chain at which it merged.
    pub(crate) fn merged(&self) -> impl Iterator<Item = (&Bio, MergeKind)> {
        let mut start = self.bios[0].sector;
        self.bios[1..].iter().map(move |bio| {
            let kind = if bio.sector < start { MergeKind::Front } else { MergeKind::Back };
            start = start.min(bio.sector);
            (bio, kind)
        })
    }

    /// Marks its bios as turned away and counted.
    pub(crate) fn turned_away(mut self) -> Self {
        for bio in &mut self.bios {
            bio.flags |= BioFlags::RETRIED;
        }
        self
    }

    /// Takes the bio as a part of it, if it may: of one I/O context and operation, adjacent, within
    /// the limits. As in an elevator, a chain that refuses a bio for its size never merges again.
    pub(super) fn take(&mut self, bio: &Bio, rules: &PlugRules) -> bool {
        let first = &self.bios[0];
        // Zeroes carry no data to gather.
        let may = |bio: &Bio| bio.is_mergeable() && bio.op != Op::WriteZeroes;
        let is_alike = (first.op, first.ioc) == (bio.op, bio.ioc);
        if self.has_refused || !is_alike || !may(first) || !may(bio) {
            return false;
        }
        let Some(kind) = adjacency(self.extent, bio) else { return false };
        let joint = Limits::joint_with_bio(self.extent, self.segments, bio, kind);
        if let Err(refusal) = rules.limits.fits(&joint) {
            self.has_refused = refusal.is_for_good();
            return false;
        }
        self.extent.sectors = self.extent.sectors + bio.sectors;
        self.segments = self.segments.saturating_add(bio.segments);
        self.extent.start = self.extent.start.min(bio.sector);
        self.bios.push(*bio);
        true
    }
}

/// What a device's elevator says of merging, as its submitters know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PlugRules {
    /// How large a chain may grow.
    pub limits: Limits,
    /// How much merging is turned off: [`NoMerges::All`] holds for plugs too.
    pub nomerges: NoMerges,
}

impl PlugRules {
    /// The rules of a device with these.
    ///
    /// # Panics
    ///
    /// Where a limit is 0 or 2³² − 1.
    pub fn new(limits: Limits, nomerges: NoMerges) -> Self {
        limits.check();
        Self { limits, nomerges }
    }

    pub(super) fn merge(&self) -> bool {
        self.nomerges != NoMerges::All
    }
}
