//! The candidate of a server: the entity that would be served next.
//!
//! The server keeps it instead of looking it up for each choice. When an entity changes, the
//! candidate is updated with as little work as possible: the changed entity is surely better, or
//! the trees are asked.

use crate::arena::{GroupId, Slot};
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
    /// Updates the candidate of a group's server after a change of `changed`; where that is the
    /// empty entity, the trees are asked. Returns what that means to the server of the parent.
    pub(super) fn update_next(
        &mut self,
        group: GroupId,
        changed: Slot,
        service: Service,
        now: Jiffies,
    ) -> ParentServer {
        let before = self.servers[group].next;
        let is_better = changed.is_some() && changed != before && self.is_better(changed, before);
        let next = if is_better { changed } else { self.look_up(group, service, now) };
        let server = &mut self.servers[group];
        server.next = next;
        if next.is_none() {
            return ParentServer::Unaffected;
        }
        let mut budget_fell = false;
        if server.entity.is_some() {
            let budget = self.entities[next].budget;
            let before = std::mem::replace(&mut self.entities[server.entity].budget, budget);
            budget_fell = before > budget;
        }
        if before.is_none() || budget_fell {
            ParentServer::Affected
        } else {
            ParentServer::Unaffected
        }
    }

    /// Returns whether `changed` is surely served before `candidate`. Without a candidate it is,
    /// eligible or not.
    #[inline]
    fn is_better(&self, changed: Slot, candidate: Slot) -> bool {
        if candidate.is_none() {
            return true;
        }
        let (new, old) = (&self.entities[changed], &self.entities[candidate]);
        let tree = &self.servers[new.parent].classes[new.class as usize];
        new.class == old.class && new.start <= tree.vtime && old.finish > new.finish
    }

    /// Chooses among the classes of a group: the most urgent class first, or the idle class if it
    /// was not looked at first for long. The time of that is renewed even if the idle class has no
    /// active entity.
    #[inline]
    fn look_up(&mut self, group: GroupId, service: Service, now: Jiffies) -> Slot {
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
        for class in first as usize..IoClass::COUNT {
            let tree = &mut self.servers[group].classes[class];
            let choice = tree.choose::<L>(&self.entities, time);
            if choice.overdue.is_some() {
                self.retire(choice.overdue);
            }
            if choice.next.is_some() {
                return choice.next;
            }
        }
        Slot::NONE
    }
}
