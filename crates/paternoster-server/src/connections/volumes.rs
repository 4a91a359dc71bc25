//! The volumes of a disk, as log lines and `stat` call them, and the looks at what others have done
//! to their images.

use std::collections::BTreeMap;

use paternoster::{Instant, Nanos};
use paternoster_disk::{Damage, SyncStats, VolumeId};

use super::DiskOwner;
use crate::config::VolumeConfig;

/// The least time between two looks at images, but for those after faults.
const LOOK: Nanos = Nanos::from_millis(1_000);
/// Images that are looked at at once: of more, those that come next are looked at a second later.
const LOOKS: usize = 64;

/// The volumes of a disk, in the order of the configuration; at least one.
#[derive(Debug)]
pub(crate) struct Volumes {
    is_pool: bool,
    all: Vec<(VolumeId, String)>,
    /// What is wrong with the image of each, as of the last look.
    damage: BTreeMap<VolumeId, Damage>,
    /// Which is looked at next.
    next: usize,
    /// When images were looked at last.
    looked_at: Option<Instant>,
}

impl Volumes {
    /// Those of a pool have names of their own.
    pub(crate) fn new<'c>(
        is_pool: bool,
        all: impl IntoIterator<Item = (VolumeId, &'c VolumeConfig)>,
    ) -> Self {
        let all = all.into_iter().map(|(id, config)| (id, config.name.clone()));
        Self { is_pool, all: all.collect(), damage: BTreeMap::new(), next: 0, looked_at: None }
    }

    /// Bytes of all.
    pub(super) fn size(&self, owner: &DiskOwner) -> u64 {
        self.all.iter().map(|&(id, _)| owner.backend(id).capabilities().size).sum()
    }

    /// What has become of the syncs of each.
    pub(super) fn syncs(&self, owner: &DiskOwner) -> impl Iterator<Item = SyncStats> {
        self.all.iter().map(|&(id, _)| owner.engine().sync_stats(id))
    }

    /// The first, which stands for what all have in common.
    pub(super) fn first(&self) -> VolumeId {
        self.all[0].0
    }

    /// The name of a volume of a pool; that of another is its disk's.
    pub(super) fn name(&self, id: VolumeId) -> Option<&str> {
        let named = self.all.iter().find(|(of, _)| *of == id && self.is_pool);
        named.map(|(_, name)| &**name)
    }

    /// Looks at some images if it is time for that, or at the image of that volume. Returns what is
    /// newly wrong, and with which.
    pub(super) fn look(
        &mut self,
        owner: &DiskOwner,
        after_fault: Option<VolumeId>,
    ) -> Vec<(VolumeId, Damage)> {
        let mut looks: Vec<_> = after_fault.into_iter().collect();
        if self.begins_look(owner.now()) {
            let turn = self.all.iter().cycle().skip(self.next).take(LOOKS.min(self.all.len()));
            looks.extend(turn.map(|&(id, _)| id));
            self.next = (self.next + LOOKS) % self.all.len();
        }
        let mut new = Vec::new();
        for id in looks {
            let damage = owner.backend(id).damage();
            let before = match damage {
                Some(damage) => self.damage.insert(id, damage),
                None => self.damage.remove(&id),
            };
            new.extend(damage.filter(|_| damage != before).map(|damage| (id, damage)));
        }
        new
    }

    /// Begins a look at images if it is time for one. Returns whether it is.
    fn begins_look(&mut self, now: Instant) -> bool {
        let due = self.looked_at.is_none_or(|at| now.saturating_since(at) >= LOOK);
        if due {
            self.looked_at = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_looked_at_at_most_once_a_second() {
        let mut volumes = Volumes::new(true, []);
        let at = |millis| Instant::START + Nanos::from_millis(millis);
        let looks = [0, 10, 999, 1000, 1001, 5000].map(|millis| volumes.begins_look(at(millis)));
        assert_eq!(looks, [true, false, false, true, false, true]);
    }
}
