//! How entities come to the active trees: they become active, or they are reinserted because their
//! budget, their weight or their service has changed.

use crate::arena::Slot;
use crate::bfq::wf2q::candidate::ParentServer;
use crate::bfq::wf2q::entity::{Entity, OnTree};
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
        let mut node = Slot::of(queue);
        while node.is_some() {
            self.activate_one(node, kind);
            let Entity { parent, above, .. } = self.entities[node];
            let effect = self.update_next(parent, node, Service::GoesOn, now);
            if effect == ParentServer::Unaffected {
                break;
            }
            node = above;
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
        let mut node = Slot::of(queue);
        let whole_path = self.is_in_service(node);
        while node.is_some() {
            self.activate_one(node, ActivationKind::New);
            let Entity { parent, above, .. } = self.entities[node];
            let effect = self.update_next(parent, node, service, now);
            if effect == ParentServer::Unaffected && !whole_path {
                break;
            }
            node = above;
        }
        Retired(())
    }

    fn activate_one(&mut self, node: Slot, kind: ActivationKind) {
        if self.entities[node].on_tree == OnTree::Active || self.is_in_service(node) {
            self.reinsert_one(node);
        } else {
            self.become_active(node, kind);
        }
    }

    /// An entity becomes active. It starts at the time of its tree; one on the idle tree does not
    /// gain by having left.
    #[inline]
    fn become_active(&mut self, node: Slot, kind: ActivationKind) {
        let entity = &mut self.entities[node];
        let tree = &mut self.servers[entity.parent].classes[entity.class as usize];
        let goes_on = kind == ActivationKind::InTime && tree.vtime > entity.finish;
        let floor = if goes_on { entity.finish } else { tree.vtime };
        if entity.on_tree == OnTree::Idle {
            entity.start = floor.max(entity.finish);
            self.take_off_idle(node);
        } else {
            tree.weight_sum += u64::from(entity.weight);
            entity.start = floor;
            entity.in_weight_sum = true;
        }
        let entity = &mut self.entities[node];
        if !entity.is_queue() && !std::mem::replace(&mut entity.pending, true) {
            self.groups_pending += 1;
        }
        self.put_on_active(node, if goes_on { Overdue::Shifted } else { Overdue::Stays });
    }

    /// Reinserts an active entity on its tree. One that is in service starts where its service so
    /// far ends.
    pub(super) fn reinsert_one(&mut self, node: Slot) {
        if self.is_in_service(node) {
            let entity = &mut self.entities[node];
            entity.finish_after(entity.service);
            entity.start = entity.finish;
        }
        if self.entities[node].on_tree == OnTree::Active {
            self.take_off_active(node);
        }
        self.put_on_active(node, Overdue::Stays);
    }

    /// Puts the entity on the active tree of its class, after due changes are applied. An entity
    /// that is shifted to finish now is shifted by less if it is raised: by that part of the
    /// distance that its raising factor leaves.
    fn put_on_active(&mut self, node: Slot, overdue: Overdue) {
        self.apply_changes(node);
        let entity = &mut self.entities[node];
        let server = &mut self.servers[entity.parent];
        let tree = &mut server.classes[entity.class as usize];
        entity.finish_after(entity.budget);
        if overdue == Overdue::Shifted && tree.vtime > entity.finish {
            let behind = tree.vtime.0.wrapping_sub(entity.finish.0);
            let shift = behind / u64::from(entity.raising_factor);
            entity.start.0 = entity.start.0.wrapping_add(shift);
            entity.finish.0 = entity.finish.0.wrapping_add(shift);
        }
        server.active += 1;
        if entity.is_queue() {
            let id = entity.id;
            self.active.push_front(&mut self.entities, id);
        }
        tree.insert_active(&mut self.entities, node);
    }

    pub(super) fn take_off_active(&mut self, node: Slot) {
        let Entity { parent, class, id, .. } = self.entities[node];
        if self.entities[node].is_queue() {
            self.active.remove(&mut self.entities, id);
        }
        let server = &mut self.servers[parent];
        server.active -= 1;
        server.classes[class as usize].remove_active(&mut self.entities, node);
    }
}
