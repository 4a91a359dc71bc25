//! The candidate of a server: the entity that would be served next.
//!
//! The server keeps it instead of looking it up for each choice. When an entity changes, the
//! candidate is updated with as little work as possible: the changed entity is surely better, or
//! the trees are asked.

use crate::arena::GroupId;
use crate::bfq::wf2q::entity::EntityId;
use crate::bfq::wf2q::tree::{Lookup, TreeTime};
use crate::bfq::wf2q::{Service, Wf2q};
use crate::io_context::IoClass;
use crate::time::Jiffies;

/// What a change in a group's server means to that of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentServer {
    /// The parent may have to choose again: the group had no candidate before, or its budget has
    /// become smaller.
    Affected,
    Unaffected,
}

impl<L: Lookup> Wf2q<L> {
    /// Updates the candidate of a group's server after a change of `changed`; without `changed`,
    /// the trees are asked. Returns what that means to the server of the parent.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn update_next(
        &mut self,
        group: GroupId,
        changed: Option<EntityId>,
        service: Service,
        now: Jiffies,
    ) -> ParentServer {
        let before = self.servers[group].next;
        let better = changed.filter(|&id| Some(id) != before && self.is_better(id, before));
        let next = better.or_else(|| self.look_up(group, service, now));
        let server = &self.servers[group];
        let mut budget_fell = false;
        if let (Some(next), Some(own)) = (next, server.entity) {
            let budget = self.entities[next].budget;
            budget_fell = self.entities[own].budget > budget;
            self.entities[own].budget = budget;
        }
        self.servers[group].next = next;
        if next.is_some() && (before.is_none() || budget_fell) {
            ParentServer::Affected
        } else {
            ParentServer::Unaffected
        }
    }

    /// Returns whether `changed` is surely served before `candidate`. Without a candidate it is,
    /// eligible or not.
    fn is_better(&self, changed: EntityId, candidate: Option<EntityId>) -> bool {
        let Some(candidate) = candidate else { return true };
        let (new, old) = (&self.entities[changed], &self.entities[candidate]);
        let (new_times, old_times) = (self.entities.times(changed), self.entities.times(candidate));
        let tree = &self.servers[new.parent].classes[new.class as usize];
        new.class == old.class
            && new_times.start <= tree.vtime
            && old_times.finish > new_times.finish
    }

    /// Chooses among the classes of a group: the most urgent class first, or the idle class if it
    /// was not looked at first for long. The time of that is renewed even if the idle class has no
    /// active entity.
    fn look_up(&mut self, group: GroupId, service: Service, now: Jiffies) -> Option<EntityId> {
        let server = &mut self.servers[group];
        let mut first = IoClass::Rt;
        if now > server.idle_class_last + self.idle_class_guard {
            if server.classes[IoClass::Idle as usize].has_active() {
                first = IoClass::Idle;
            }
            server.idle_class_last = now;
        }
        // While an entity is served, and so is eligible, the time does not move for others.
        let is_served = server.in_service.is_some() && service == Service::GoesOn;
        let time = if is_served { TreeTime::Stays } else { TreeTime::MovesUp };
        for class in IoClass::ALL.into_iter().filter(|&class| class >= first) {
            let tree = &mut self.servers[group].classes[class as usize];
            let choice = tree.choose::<L>(&self.entities, time);
            if let Some(overdue) = choice.overdue {
                self.retire(overdue);
            }
            if choice.next.is_some() {
                return choice.next;
            }
        }
        None
    }
}
