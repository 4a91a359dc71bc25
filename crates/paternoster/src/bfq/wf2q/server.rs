//! The server of a group, and the entity that is in service there.

use crate::arena::{GroupId, Slot};
use crate::bfq::wf2q::candidate::ParentServer;
use crate::bfq::wf2q::entity::Entity;
use crate::bfq::wf2q::tree::{ClassTree, Lookup};
use crate::bfq::wf2q::{QueueId, Retired, Service, Wf2q};
use crate::io_context::IoClass;
use crate::request::SectorCount;
use crate::time::Jiffies;

/// The server of one group.
#[derive(Debug)]
pub(super) struct Server {
    /// What the group is in the server of its parent; the empty entity for the root.
    pub(super) entity: Slot,
    pub(super) classes: [ClassTree; IoClass::COUNT],
    /// The entity in service: a queue, or the child group whose queue is served.
    pub(super) in_service: Slot,
    /// The entity that would be served if the one in service went idle.
    pub(super) next: Slot,
    /// When the idle class was last given its chance.
    pub(super) idle_class_last: Jiffies,
    /// Entities on active trees.
    pub(super) active: u32,
}

impl Server {
    pub(super) fn new(entity: Slot, idle_class_last: Jiffies) -> Self {
        Self {
            entity,
            classes: Default::default(),
            in_service: Slot::NONE,
            next: Slot::NONE,
            idle_class_last,
            active: 0,
        }
    }
}

impl<L: Lookup> Wf2q<L> {
    /// Returns whether another entity than the one in service is next in the root's server. No
    /// other server is asked: of two queues in one child group none may preempt the other.
    pub(in crate::bfq) fn may_preempt(&self, root: GroupId) -> bool {
        let server = &self.servers[root];
        server.next != server.in_service
    }

    /// Puts in service the queue that is due; there is one.
    pub(in crate::bfq) fn serve_next(&mut self, root: GroupId, now: Jiffies) -> (QueueId, Retired) {
        let mut group = root;
        let queue = loop {
            let server = &mut self.servers[group];
            let node = server.next;
            server.in_service = node;
            let Entity { group: child, id, .. } = self.entities[node];
            let Some(child) = child else {
                assert!(node.is_some(), "a server with active entities has a candidate");
                self.take_off_active(node);
                break id;
            };
            // A group that keeps another child stays on its tree.
            if self.servers[child].active == 1 {
                self.take_off_active(node);
            }
            group = child;
        };
        let mut node = Slot::of(queue);
        while node.is_some() {
            let Entity { parent, above, .. } = self.entities[node];
            let effect = self.update_next(parent, Slot::NONE, Service::GoesOn, now);
            if effect == ParentServer::Unaffected {
                break;
            }
            node = above;
        }
        (queue, Retired(()))
    }

    /// The queue and its parents leave service.
    pub(in crate::bfq) fn leave_service(&mut self, queue: QueueId) {
        let mut node = Slot::of(queue);
        while node.is_some() {
            let Entity { parent, above, .. } = self.entities[node];
            self.servers[parent].in_service = Slot::NONE;
            node = above;
        }
    }

    #[inline]
    pub(super) fn is_in_service(&self, node: Slot) -> bool {
        self.servers[self.entities[node].parent].in_service == node
    }

    /// Charges a queue and its parents for service.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::bfq) fn charge(&mut self, queue: QueueId, service: SectorCount) -> Retired {
        let mut node = Slot::of(queue);
        while node.is_some() {
            let entity = &mut self.entities[node];
            entity.service = entity.service + service;
            node = entity.above;
            let tree = &mut self.servers[entity.parent].classes[entity.class as usize];
            let overdue = tree.advance(&self.entities, service);
            if overdue.is_some() {
                self.retire(overdue);
            }
        }
        Retired(())
    }

    /// Sets the service of a queue's parents to 0.
    pub(in crate::bfq) fn reset_service_of_parents(&mut self, queue: QueueId) {
        let mut node = self.entities[queue].above;
        while node.is_some() {
            let entity = &mut self.entities[node];
            entity.service = SectorCount(0);
            node = entity.above;
        }
    }
}
