//! What always holds, asserted by walking everything.

use crate::bfq::wf2q::entity::OnTree;
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{QueueId, Wf2q};
use crate::io_context::IoClass;

impl<L: Lookup> Wf2q<L> {
    /// Asserts that the queue is raised by that factor, or is about to be.
    pub(in crate::bfq) fn check_raising(&self, queue: QueueId, factor: u32) {
        assert_eq!(self.entities[queue].raising_factor, factor, "raised as its queue says");
    }

    /// Asserts that entities, trees and sums agree.
    pub(in crate::bfq) fn check(&self) {
        let mut placed = 0;
        for (group, server) in self.servers.iter() {
            let mut active = 0;
            for (class, tree) in IoClass::ALL.into_iter().zip(&server.classes) {
                for id in tree.iter(&self.entities) {
                    let entity = &self.entities[id];
                    assert_eq!((entity.parent, entity.class), (group, class), "on its own tree");
                    assert!(entity.in_weight_sum, "what is on a tree is in its sum");
                    active += u32::from(entity.on_tree == OnTree::Active);
                    placed += 1;
                }
                let members = self.entities.iter().map(|(_, entity)| entity).filter(|entity| {
                    entity.in_weight_sum && entity.parent == group && entity.class == class
                });
                let sum: u64 = members.map(|entity| u64::from(entity.weight)).sum();
                assert_eq!(tree.weight_sum, sum, "the weights of all in it");
            }
            assert_eq!(server.active, active, "entities on active trees");
            for node in [server.next, server.in_service] {
                let is_member = || {
                    let id = self.entities[node].id;
                    self.entities.exists(id) && self.entities[node].parent == group
                };
                assert!(node.is_none() || is_member(), "who is next or served is in the group");
            }
        }
        for (_, entity) in self.entities.iter() {
            assert_eq!(entity.above, self.servers[entity.parent].entity, "that of its group");
        }
        let on_trees = self.entities.iter().filter(|(_, entity)| entity.on_tree != OnTree::Neither);
        assert_eq!(placed, on_trees.count(), "an entity is on the tree that it says");
        let counted = self.entities.iter().filter_map(|(_, entity)| entity.counted);
        assert!(self.counters.equals(counted), "queues by weight");
        let pending = self.entities.iter().filter(|(_, entity)| entity.pending).count();
        assert_eq!(pending, self.groups_pending as usize, "groups with I/O pending");
    }
}
