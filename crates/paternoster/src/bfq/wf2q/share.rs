//! What share of all requests a queue may have, as tags are given out: each level of the tree has
//! its part by weight, from the top group down to the queue.

use smallvec::SmallVec;

use crate::bfq::wf2q::entity::EntityId;
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{QueueId, Wf2q};
use crate::io_context::IoClass;

impl<L: Lookup> Wf2q<L> {
    /// Returns whether the queue or one of its parents has used up its share of `limit` requests.
    /// Below an entity that is on no tree there are no shares.
    pub(in crate::bfq) fn is_share_used(&self, queue: QueueId, mut limit: u64) -> bool {
        let parent = |&id: &EntityId| self.entities.id_at(self.entities[id].above);
        let path: SmallVec<[EntityId; 8]> = std::iter::successors(Some(queue), parent).collect();
        for &id in path.iter().rev() {
            let entity = &self.entities[id];
            if !entity.in_weight_sum {
                return false;
            }
            let sum = self.weight_beside(id);
            // To the nearest.
            let share = (limit * u64::from(entity.weight) + sum / 2).checked_div(sum);
            limit = share.unwrap_or(limit);
            if u64::from(entity.requests) >= limit.max(1) {
                return true;
            }
        }
        false
    }

    /// The weights among which an entity has its share: those of its class; for a queue those of
    /// the more urgent classes as well, each eight times as much as the next.
    fn weight_beside(&self, id: EntityId) -> u64 {
        let entity = &self.entities[id];
        let classes = &self.servers[entity.parent].classes;
        let sum_of = |class: IoClass| classes[class as usize].weight_sum;
        if !entity.is_queue() {
            return sum_of(entity.class);
        }
        let classes = IoClass::ALL.into_iter().filter(|&class| class <= entity.class);
        classes.fold(0, |sum, class| sum * 8 + sum_of(class))
    }
}
