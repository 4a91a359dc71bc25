//! How entities come to the active trees: they become active, or they are reinserted because their
//! budget, their weight or their service has changed.

use crate::bfq::wf2q::candidate::ParentServer;
use crate::bfq::wf2q::entity::{EntityId, OnTree};
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{ActivationKind, QueueId, Retired, Service, Wf2q};
use crate::time::Jiffies;

/// What is done with an entity whose finish is already behind the time of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overdue {
    Stays,
    /// It is shifted to finish now.
    Shifted,
}

impl<L: Lookup> Wf2q<L> {
    /// Activates a queue, and its parents as far as that changes them.
    pub(in crate::bfq) fn activate(
        &mut self,
        queue: QueueId,
        kind: ActivationKind,
        now: Jiffies,
    ) -> Retired {
        let mut node = Some(queue);
        while let Some(id) = node {
            self.activate_one(id, kind);
            let parent = self.entities[id].parent;
            let effect = self.update_next(parent, Some(id), Service::GoesOn, now);
            if effect == ParentServer::Unaffected {
                break;
            }
            node = self.parent_of(id);
        }
        Retired(())
    }

    /// Reinserts an active queue on its tree, by the budget and the weight that it has now.
    pub(in crate::bfq) fn reinsert(
        &mut self,
        queue: QueueId,
        service: Service,
        now: Jiffies,
    ) -> Retired {
        let whole_path = self.is_in_service(queue);
        let mut node = Some(queue);
        while let Some(id) = node {
            self.activate_one(id, ActivationKind::New);
            let parent = self.entities[id].parent;
            let effect = self.update_next(parent, Some(id), service, now);
            if effect == ParentServer::Unaffected && !whole_path {
                break;
            }
            node = self.parent_of(id);
        }
        Retired(())
    }

    fn activate_one(&mut self, id: EntityId, kind: ActivationKind) {
        if self.is_in_service(id) || self.entities[id].on_tree == OnTree::Active {
            self.reinsert_one(id);
        } else {
            self.become_active(id, kind);
        }
    }

    /// An entity becomes active. It starts at the time of its tree; one on the idle tree does not
    /// gain by having left.
    fn become_active(&mut self, id: EntityId, kind: ActivationKind) {
        let vtime = self.tree_of(id).vtime;
        let finish = self.entities.times(id).finish;
        let goes_on = kind == ActivationKind::InTime && vtime > finish;
        let floor = if goes_on { finish } else { vtime };
        if self.entities[id].on_tree == OnTree::Idle {
            self.take_off_idle(id);
            self.entities.times_mut(id).start = floor.max(finish);
        } else {
            let weight = self.entities[id].weight;
            self.tree_of(id).weight_sum += u64::from(weight);
            self.entities.times_mut(id).start = floor;
            self.entities[id].in_weight_sum = true;
        }
        let entity = &mut self.entities[id];
        if !entity.is_queue() && !std::mem::replace(&mut entity.pending, true) {
            self.groups_pending += 1;
        }
        self.put_on_active(id, if goes_on { Overdue::Shifted } else { Overdue::Stays });
    }

    /// Reinserts an active entity on its tree. One that is in service starts where its service so
    /// far ends.
    pub(super) fn reinsert_one(&mut self, id: EntityId) {
        if self.is_in_service(id) {
            self.entities.finish_after(id, self.entities[id].service);
            let times = self.entities.times_mut(id);
            times.start = times.finish;
        }
        if self.entities[id].on_tree == OnTree::Active {
            self.take_off_active(id);
        }
        self.put_on_active(id, Overdue::Stays);
    }

    /// Puts the entity on the active tree of its class, after due changes are applied. An entity
    /// that is shifted to finish now is shifted by less if it is raised: by that part of the
    /// distance that its raising factor leaves.
    fn put_on_active(&mut self, id: EntityId, overdue: Overdue) {
        self.apply_changes(id);
        let vtime = self.tree_of(id).vtime;
        self.entities.finish_after(id, self.entities[id].budget);
        let entity = &self.entities[id];
        let (parent, class, is_queue) = (entity.parent, entity.class, entity.is_queue());
        let raising = u64::from(entity.raising_factor);
        let times = self.entities.times_mut(id);
        if overdue == Overdue::Shifted && vtime > times.finish {
            let behind = vtime.0.wrapping_sub(times.finish.0) / raising;
            times.start.0 = times.start.0.wrapping_add(behind);
            times.finish.0 = times.finish.0.wrapping_add(behind);
        }
        let server = &mut self.servers[parent];
        server.active += 1;
        server.classes[class as usize].insert_active(&mut self.entities, id);
        if is_queue {
            self.active.push_front(&mut self.entities, id);
        }
    }

    pub(super) fn take_off_active(&mut self, id: EntityId) {
        let entity = &self.entities[id];
        let (parent, class, is_queue) = (entity.parent, entity.class, entity.is_queue());
        let server = &mut self.servers[parent];
        server.active -= 1;
        server.classes[class as usize].remove_active(&mut self.entities, id);
        if is_queue {
            self.active.remove(&mut self.entities, id);
        }
    }
}
