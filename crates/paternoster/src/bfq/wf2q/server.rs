//! The server of a group, and the entity that is in service there.

use crate::arena::GroupId;
use crate::bfq::wf2q::candidate::ParentServer;
use crate::bfq::wf2q::entity::EntityId;
use crate::bfq::wf2q::tree::{ClassTree, Lookup};
use crate::bfq::wf2q::{QueueId, Retired, Service, Wf2q};
use crate::io_context::IoClass;
use crate::request::SectorCount;
use crate::time::Jiffies;

/// The server of one group.
#[derive(Debug)]
pub(super) struct Server {
    /// What the group is in the server of its parent; none for the root.
    pub(super) entity: Option<EntityId>,
    pub(super) classes: [ClassTree; IoClass::COUNT],
    /// The entity in service: a queue, or the child group whose queue is served.
    pub(super) in_service: Option<EntityId>,
    /// The entity that would be served if the one in service went idle.
    pub(super) next: Option<EntityId>,
    /// When the idle class was last given its chance.
    pub(super) idle_class_last: Jiffies,
    /// Entities on active trees.
    pub(super) active: u32,
}

impl Server {
    pub(super) fn new(entity: Option<EntityId>, idle_class_last: Jiffies) -> Self {
        Self {
            entity,
            classes: Default::default(),
            in_service: None,
            next: None,
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
            let id = server.next.expect("a server with active entities has a candidate");
            server.in_service = Some(id);
            let child = self.entities[id].group;
            // A group that keeps another child stays on its tree.
            if child.is_none_or(|child| self.servers[child].active == 1) {
                self.take_off_active(id);
            }
            match child {
                None => break id,
                Some(child) => group = child,
            }
        };
        let mut node = Some(queue);
        while let Some(id) = node {
            let parent = self.entities[id].parent;
            if self.update_next(parent, None, Service::GoesOn, now) == ParentServer::Unaffected {
                break;
            }
            node = self.parent_of(id);
        }
        (queue, Retired(()))
    }

    /// The queue and its parents leave service.
    pub(in crate::bfq) fn leave_service(&mut self, queue: QueueId) {
        let mut node = Some(queue);
        while let Some(id) = node {
            self.servers[self.entities[id].parent].in_service = None;
            node = self.parent_of(id);
        }
    }

    #[inline]
    pub(super) fn is_in_service(&self, id: EntityId) -> bool {
        self.servers[self.entities[id].parent].in_service == Some(id)
    }

    /// Charges a queue and its parents for service.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::bfq) fn charge(&mut self, queue: QueueId, service: SectorCount) -> Retired {
        let mut node = Some(queue);
        while let Some(id) = node {
            let entity = &mut self.entities[id];
            entity.service = entity.service + service;
            let (parent, class) = (entity.parent, entity.class);
            node = entity.above;
            let tree = &mut self.servers[parent].classes[class as usize];
            if let Some(overdue) = tree.advance(&self.entities, service) {
                self.retire(overdue);
            }
        }
        Retired(())
    }

    /// Sets the service of a queue's parents to 0.
    pub(in crate::bfq) fn reset_service_of_parents(&mut self, queue: QueueId) {
        let mut node = self.parent_of(queue);
        while let Some(id) = node {
            self.entities[id].service = SectorCount(0);
            node = self.parent_of(id);
        }
    }
}
