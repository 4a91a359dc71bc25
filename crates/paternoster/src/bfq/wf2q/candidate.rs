//! The candidate of a server: who would be served next.
//!
//! It is kept rather than looked up for each choice, and brought up to date with as little as will
//! do: an entity that has changed either is better for sure, or the trees are asked.

use crate::arena::GroupId;
use crate::bfq::wf2q::entity::EntityId;
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{Turn, Wf2q};
use crate::io_context::IoClass;
use crate::time::Jiffies;

impl<L: Lookup> Wf2q<L> {
    /// Brings the candidate of a group's server up to date, after `changed` has changed or, where
    /// none is given, in general. Whether the server above may have to choose anew: there was no
    /// candidate before, or the group's budget has become smaller.
    pub(super) fn update_next(
        &mut self,
        group: GroupId,
        changed: Option<EntityId>,
        turn: Turn,
        now: Jiffies,
    ) -> bool {
        let before = self.servers[group].next;
        let better = changed.filter(|&id| Some(id) != before && self.is_better(id, before));
        let next = better.or_else(|| self.look_up(group, turn, now));
        let server = &self.servers[group];
        let mut budget_fell = false;
        if let (Some(next), Some(own)) = (next, server.entity) {
            let budget = self.entities[next].budget;
            budget_fell = self.entities[own].budget > budget;
            self.entities[own].budget = budget;
        }
        self.servers[group].next = next;
        next.is_some() && (before.is_none() || budget_fell)
    }

    /// Whether `changed` is sure to be served before `candidate`, without a look-up. Without a
    /// candidate it is taken as it is, eligible or not.
    fn is_better(&self, changed: EntityId, candidate: Option<EntityId>) -> bool {
        let Some(candidate) = candidate else { return true };
        let (new, old) = (&self.entities[changed], &self.entities[candidate]);
        let (new_times, old_times) = (self.entities.times(changed), self.entities.times(candidate));
        let tree = &self.servers[new.above].classes[new.class as usize];
        new.class == old.class
            && new_times.start <= tree.vtime
            && old_times.finish > new_times.finish
    }

    /// Chooses among the classes of a group: the most urgent first, but the idle class when it has
    /// waited for long. The stamp of that is renewed whether or not one waits there.
    fn look_up(&mut self, group: GroupId, turn: Turn, now: Jiffies) -> Option<EntityId> {
        let server = &mut self.servers[group];
        let mut first = IoClass::Rt;
        if now > server.idle_class_last + self.idle_class_guard {
            if server.classes[IoClass::Idle as usize].has_active() {
                first = IoClass::Idle;
            }
            server.idle_class_last = now;
        }
        // The time is not moved for others while one is being served, which is eligible by that.
        let held = server.in_service.is_some() && turn == Turn::GoesOn;
        for class in IoClass::ALL.into_iter().filter(|&class| class >= first) {
            let tree = &mut self.servers[group].classes[class as usize];
            let (next, overdue) = tree.choose::<L>(&self.entities, held);
            if let Some(overdue) = overdue {
                self.forget(overdue, false);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}
