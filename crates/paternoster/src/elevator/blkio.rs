//! What is counted of a group, alone or with all below it.

use super::Elevator;
use crate::arena::GroupId;
use crate::scheduler::Scheduler;
use crate::stats::{BlkioFile, Departed, TurnStats, blkio_files};

impl<S: Scheduler> Elevator<S> {
    /// The group's files of Linux's `blkio` controller, without what is counted below it.
    ///
    /// # Panics
    ///
    /// Where the group is gone.
    pub fn blkio(&self, group: GroupId) -> Vec<BlkioFile> {
        // A scheduler that gives groups turns may not have heard of this one yet.
        let none = TurnStats::default();
        let turns = self.scheduler.turn_stats(group);
        let turns = turns.or_else(|| self.has_turns().then_some(&none));
        blkio_files(self.stats.group(group), turns)
    }

    /// The same with all groups below it, those that were removed too: the `_recursive` files. Of a
    /// group that is gone they tell nothing.
    pub fn blkio_recursive(&self, group: GroupId) -> Vec<BlkioFile> {
        let all = self.counted_below(group);
        blkio_files(&all.stats, self.has_turns().then_some(&all.turns))
    }

    /// Whether the scheduler gives groups turns.
    fn has_turns(&self) -> bool {
        self.scheduler.turn_stats(self.groups.root()).is_some()
    }

    /// The counts of the group and of all below it, as far as there ever were any.
    pub(super) fn counted_below(&self, group: GroupId) -> Departed {
        let mut all = Departed::default();
        for (id, _) in self.groups.iter().filter(|&(id, _)| self.groups.is_within(id, group)) {
            all.stats.add_counts(self.stats.group(id));
            if let Some(turns) = self.scheduler.turn_stats(id) {
                all.turns.add(turns);
            }
            if let Some(departed) = self.stats.departed.get(id) {
                all.stats.add_counts(&departed.stats);
                all.turns.add(&departed.turns);
            }
        }
        all
    }
}
