//! The counts of a group, alone or with all groups below it.

use super::Elevator;
use crate::arena::GroupId;
use crate::scheduler::Scheduler;
use crate::stats::{BlkioFile, Departed, SliceStats, blkio_files};

impl<S: Scheduler> Elevator<S> {
    /// The group's files of Linux's `blkio` controller, without the groups below it.
    ///
    /// # Panics
    ///
    /// Where the group is gone.
    pub fn blkio(&self, group: GroupId) -> Vec<BlkioFile> {
        // A scheduler that gives groups slices may not know this one yet.
        let none = SliceStats::default();
        let slices = self.slices_of(group);
        let slices = slices.or_else(|| self.has_slices().then_some(&none));
        blkio_files(self.stats.group(group), slices)
    }

    /// The same with all groups below it, also those that were removed: the `_recursive` files. All
    /// counts of a group that is gone are 0.
    pub fn blkio_recursive(&self, group: GroupId) -> Vec<BlkioFile> {
        let all = self.counted_below(group);
        blkio_files(&all.stats, self.has_slices().then_some(&all.slices))
    }

    /// Returns whether the scheduler gives groups slices.
    fn has_slices(&self) -> bool {
        self.slices_of(self.cx.groups.root()).is_some()
    }

    fn slices_of(&self, group: GroupId) -> Option<&SliceStats> {
        self.scheduler.own_stats(self.cx.now, group).slices
    }

    /// The counts of the group and of all groups that are or were below it.
    pub(super) fn counted_below(&self, group: GroupId) -> Departed {
        let mut all = Departed::default();
        for (id, _) in self.cx.groups.iter().filter(|&(id, _)| self.cx.groups.is_within(id, group))
        {
            all.stats.add_counts(self.stats.group(id));
            if let Some(slices) = self.slices_of(id) {
                all.slices.add(slices);
            }
            if let Some(departed) = self.stats.departed.get(id) {
                all.stats.add_counts(&departed.stats);
                all.slices.add(&departed.slices);
            }
        }
        all
    }
}
