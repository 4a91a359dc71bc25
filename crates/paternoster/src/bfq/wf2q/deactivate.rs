//! How entities leave the active trees. They go to the idle tree, which keeps them while their
//! finish is ahead. From there, or at once, they are removed for good: they *retire*.
//!
//! ```text
//!   active tree ──▶ in service ──▶ idle tree ──▶ retired, once the time has passed their finish
//!        └──────────────┴─────────────┴────────▶ retired at once, if they change their group
//! ```
//!
//! Until it retires, an entity counts in the sum of weights of its tree.

use crate::arena::Slot;
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
        let (mut node, mut leaving) = (Slot::of(queue), leaving);
        loop {
            let Entity { parent: group, in_weight_sum, .. } = self.entities[node];
            if !in_weight_sum {
                return Retired(());
            }
            self.deactivate_one(node, leaving);
            if self.servers[group].next == node {
                self.update_next(group, Slot::NONE, service, now);
            }
            let server = &self.servers[group];
            node = server.entity;
            if node.is_none() {
                return Retired(());
            }
            if server.next.is_some() || server.in_service.is_some() {
                break;
            }
            leaving = Leaving::KeepOnIdleTree;
        }
        while node.is_some() {
            // This reinserts even a group in service, which then is on a tree while it is served.
            self.reinsert_one(node);
            let Entity { parent, above, .. } = self.entities[node];
            let effect = self.update_next(parent, node, service, now);
            if effect == ParentServer::Unaffected && service == Service::GoesOn {
                break;
            }
            node = above;
        }
        Retired(())
    }

    /// Deactivates an entity. Its finish goes by the service that it got, not by its budget. An
    /// entity in service does not retire by this: being served still keeps it.
    #[inline]
    fn deactivate_one(&mut self, node: Slot, leaving: Leaving) {
        let entity = &mut self.entities[node];
        let server = &mut self.servers[entity.parent];
        let in_service = server.in_service == node;
        entity.finish_after(entity.service);
        if in_service {
            server.in_service = Slot::NONE;
        } else {
            entity.service = SectorCount(0);
        }
        match entity.on_tree {
            OnTree::Active => self.take_off_active(node),
            OnTree::Idle if !in_service => self.take_off_idle(node),
            OnTree::Idle | OnTree::Neither => {}
        }
        let Entity { parent, class, finish, .. } = self.entities[node];
        let vtime = self.servers[parent].classes[class as usize].vtime;
        if leaving == Leaving::KeepOnIdleTree && finish > vtime {
            self.put_on_idle(node);
        } else if in_service {
            self.leave_weight_sum(node);
        } else {
            self.retire(node);
        }
    }

    /// Removes an entity that is not active from the idle tree, if it is there: it retires.
    pub(in crate::bfq) fn remove_idle(&mut self, id: EntityId) -> Retired {
        if self.entities[id].in_weight_sum {
            self.retire(Slot::of(id));
        }
        Retired(())
    }

    /// Retires the entity: it leaves the weight sum, and a queue is freed if nothing else keeps it.
    pub(super) fn retire(&mut self, node: Slot) {
        self.leave_weight_sum(node);
        let entity = &self.entities[node];
        if entity.is_queue() {
            self.retired.push(entity.id);
        }
    }

    fn leave_weight_sum(&mut self, node: Slot) {
        if self.entities[node].on_tree == OnTree::Idle {
            self.take_off_idle(node);
        }
        let entity = &mut self.entities[node];
        let tree = &mut self.servers[entity.parent].classes[entity.class as usize];
        tree.weight_sum -= u64::from(entity.weight);
        entity.in_weight_sum = false;
    }

    fn put_on_idle(&mut self, node: Slot) {
        let Entity { parent, class, id, .. } = self.entities[node];
        if self.entities[node].is_queue() {
            self.idle.push_front(&mut self.entities, id);
        }
        self.servers[parent].classes[class as usize].insert_idle(&mut self.entities, node);
    }

    pub(super) fn take_off_idle(&mut self, node: Slot) {
        let Entity { parent, class, id, .. } = self.entities[node];
        if self.entities[node].is_queue() {
            self.idle.remove(&mut self.entities, id);
        }
        self.servers[parent].classes[class as usize].remove_idle(&mut self.entities, node);
    }

    /// The queue has nothing in flight and is not active: its weight is not counted any more, and
    /// its parents may have no I/O pending any more.
    pub(in crate::bfq) fn drop_pending(&mut self, queue: QueueId) {
        let mut node = self.entities[queue].above;
        while node.is_some() {
            let entity = &mut self.entities[node];
            let server = &self.servers[entity.group.expect("above a queue are groups")];
            if server.next.is_some() || server.in_service.is_some() {
                break;
            }
            if std::mem::take(&mut entity.pending) {
                self.groups_pending -= 1;
            }
            node = entity.above;
        }
        self.uncount_weight(queue);
    }
}
