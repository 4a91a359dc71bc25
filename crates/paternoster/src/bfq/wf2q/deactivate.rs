//! How entities leave the active trees. They go to the idle tree, which keeps them while their
//! finish is ahead. From there, or at once, they are removed for good: they *retire*.
//!
//! ```text
//!   active tree ──▶ in service ──▶ idle tree ──▶ retired, once the time has passed their finish
//!        └──────────────┴─────────────┴────────▶ retired at once, if they change their group
//! ```
//!
//! Until it retires, an entity counts in the sum of weights of its tree.

use crate::bfq::wf2q::candidate::ParentServer;
use crate::bfq::wf2q::entity::{Entity, EntityId, OnTree};
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{Leaving, QueueId, Retired, Service, Wf2q};
use crate::request::SectorCount;
use crate::time::Jiffies;

impl<L: Lookup> Wf2q<L> {
    /// Deactivates a queue, and the parents that have no other active child then.
    pub(in crate::bfq) fn deactivate(
        &mut self,
        queue: QueueId,
        leaving: Leaving,
        service: Service,
        now: Jiffies,
    ) -> Retired {
        let (mut id, mut leaving) = (queue, leaving);
        loop {
            if !self.entities[id].in_weight_sum {
                return Retired(());
            }
            let group = self.entities[id].parent;
            self.deactivate_one(id, leaving);
            if self.servers[group].next == Some(id) {
                self.update_next(group, None, service, now);
            }
            let server = &self.servers[group];
            let Some(parent) = server.entity else { return Retired(()) };
            id = parent;
            if server.next.is_some() || server.in_service.is_some() {
                break;
            }
            leaving = Leaving::KeepOnIdleTree;
        }
        let mut node = Some(id);
        while let Some(id) = node {
            // This reinserts even a group in service, which then is on a tree while it is served.
            self.reinsert_one(id);
            let parent = self.entities[id].parent;
            let effect = self.update_next(parent, Some(id), service, now);
            if effect == ParentServer::Unaffected && service == Service::GoesOn {
                break;
            }
            node = self.parent_of(id);
        }
        Retired(())
    }

    /// Deactivates an entity. Its finish goes by the service that it got, not by its budget. An
    /// entity in service does not retire by this: being served still keeps it.
    fn deactivate_one(&mut self, id: EntityId, leaving: Leaving) {
        let in_service = self.is_in_service(id);
        self.entities.finish_after(id, self.entities[id].service);
        let entity = &mut self.entities[id];
        if in_service {
            self.servers[entity.parent].in_service = None;
        } else {
            entity.service = SectorCount(0);
        }
        match self.entities[id].on_tree {
            OnTree::Active => self.take_off_active(id),
            OnTree::Idle if !in_service => self.take_off_idle(id),
            OnTree::Idle | OnTree::Neither => {}
        }
        let vtime = self.tree_of(id).vtime;
        if leaving == Leaving::KeepOnIdleTree && self.entities.times(id).finish > vtime {
            self.put_on_idle(id);
        } else if in_service {
            self.leave_weight_sum(id);
        } else {
            self.retire(id);
        }
    }

    /// Removes an entity that is not active from the idle tree, if it is there: it retires.
    pub(in crate::bfq) fn remove_idle(&mut self, id: EntityId) -> Retired {
        if self.entities[id].in_weight_sum {
            self.retire(id);
        }
        Retired(())
    }

    /// Retires the entity: it leaves the weight sum, and a queue is freed if nothing else keeps it.
    pub(super) fn retire(&mut self, id: EntityId) {
        self.leave_weight_sum(id);
        if self.entities[id].is_queue() {
            self.retired.push(id);
        }
    }

    fn leave_weight_sum(&mut self, id: EntityId) {
        if self.entities[id].on_tree == OnTree::Idle {
            self.take_off_idle(id);
        }
        let weight = self.entities[id].weight;
        self.tree_of(id).weight_sum -= u64::from(weight);
        self.entities[id].in_weight_sum = false;
    }

    fn put_on_idle(&mut self, id: EntityId) {
        let Entity { parent, class, .. } = self.entities[id];
        self.servers[parent].classes[class as usize].insert_idle(&mut self.entities, id);
        if self.entities[id].is_queue() {
            self.idle.push_front(&mut self.entities, id);
        }
    }

    pub(super) fn take_off_idle(&mut self, id: EntityId) {
        let Entity { parent, class, .. } = self.entities[id];
        self.servers[parent].classes[class as usize].remove_idle(&mut self.entities, id);
        if self.entities[id].is_queue() {
            self.idle.remove(&mut self.entities, id);
        }
    }

    /// The queue has nothing in flight and is not active: its weight is not counted any more, and
    /// its parents may have no I/O pending any more.
    pub(in crate::bfq) fn drop_pending(&mut self, queue: QueueId) {
        let mut node = self.parent_of(queue);
        while let Some(id) = node {
            let group = self.entities[id].group.expect("above a queue are groups");
            let server = &self.servers[group];
            if server.next.is_some() || server.in_service.is_some() {
                break;
            }
            if std::mem::take(&mut self.entities[id].pending) {
                self.groups_pending -= 1;
            }
            node = self.parent_of(id);
        }
        self.uncount_weight(queue);
    }
}
