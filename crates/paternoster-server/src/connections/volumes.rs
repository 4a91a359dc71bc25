//! The volumes of a disk, as log lines and `stat` call them, and the looks at what others have done
//! to their images.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use paternoster::{Instant, Nanos};
use paternoster_disk::{Damage, VolumeId};

use super::DiskOwner;
use crate::config::VolumeConfig;

/// The least time between two looks at images, but for those after faults.
const LOOK: Nanos = Nanos::from_millis(1_000);
/// Images that are looked at at once: of more, those that come next are looked at a second later.
const LOOKS: usize = 64;
/// Sentences about servers that a disk has.
const WARNINGS: usize = 10;

/// A volume that is served.
#[derive(Debug)]
struct Served {
    name: String,
    /// Those that are connected.
    clients: u32,
    /// Whether it takes no more clients.
    is_closing: bool,
}

/// The volumes of a disk: a pool may have none.
#[derive(Debug)]
pub(crate) struct Volumes {
    is_pool: bool,
    all: IndexMap<VolumeId, Served>,
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
        let (served, damage) = (IndexMap::new(), BTreeMap::new());
        let mut volumes = Self { is_pool, all: served, damage, next: 0, looked_at: None };
        all.into_iter().for_each(|(id, config)| volumes.add(id, config.name.clone()));
        volumes
    }

    /// Another volume has come.
    pub(super) fn add(&mut self, id: VolumeId, name: String) {
        self.all.insert(id, Served { name, clients: 0, is_closing: false });
    }

    /// A volume takes no more clients.
    pub(super) fn close(&mut self, id: VolumeId) {
        self.all[&id].is_closing = true;
    }

    /// A volume goes.
    pub(super) fn remove(&mut self, id: VolumeId) {
        self.all.swap_remove(&id);
        self.damage.remove(&id);
    }

    /// Returns whether it has not gone.
    pub(super) fn is_here(&self, id: VolumeId) -> bool {
        self.all.contains_key(&id)
    }

    /// Returns whether a client may connect.
    pub(super) fn takes_clients(&self, id: VolumeId) -> bool {
        self.all.get(&id).is_some_and(|of| !of.is_closing)
    }

    /// A client has connected.
    pub(super) fn connected(&mut self, id: VolumeId) {
        self.all[&id].clients += 1;
    }

    /// A client has left.
    pub(super) fn disconnected(&mut self, id: VolumeId) {
        self.all[&id].clients -= 1;
    }

    /// The clients of a volume that are connected.
    pub(super) fn clients(&self, id: VolumeId) -> u32 {
        self.all[&id].clients
    }

    /// One that stands for what all have in common, if there is one.
    pub(super) fn any(&self) -> Option<VolumeId> {
        self.all.first().map(|(&id, _)| id)
    }

    /// What is to be said of what is behind them, a sentence each, and of many the first.
    pub(super) fn warnings(&self, owner: &DiskOwner) -> Vec<String> {
        let now = owner.now();
        let all = self.all.keys().flat_map(|&id| {
            let name = self.name(id).map(|name| format!("volume {name:?}: ")).unwrap_or_default();
            let sentences = owner.backend(id).warnings(now).into_iter();
            sentences.map(move |sentence| format!("{name}{sentence}"))
        });
        all.take(WARNINGS).collect()
    }

    /// The name of a volume.
    pub(super) fn named(&self, id: VolumeId) -> &str {
        &self.all[&id].name
    }

    /// The name of a volume of a pool; that of another is its disk's.
    pub(super) fn name(&self, id: VolumeId) -> Option<&str> {
        self.all.get(&id).filter(|_| self.is_pool).map(|of| &*of.name)
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
            let first = self.next % self.all.len().max(1);
            let turn = self.all.keys().cycle().skip(first).take(LOOKS.min(self.all.len()));
            looks.extend(turn.copied());
            self.next = first + LOOKS;
        }
        let mut new = Vec::new();
        // What failed may have gone since.
        for id in looks.into_iter().filter(|id| self.all.contains_key(id)) {
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
