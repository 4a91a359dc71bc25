//! Changes of weight, raising and class, and when they count.
//!
//! What is asked for is *due*, and is applied when the entity is next put on its active tree: on no
//! tree its timestamps may begin to run by another weight. A change of raising may be *settled* at
//! once, in the middle of a service. With the weight the count changes of active queues by weight.
//!
//! ```text
//!   asked for   new_weight, raising_factor, new_class         change_due
//!   applied     weight = own_weight × raising_factor, class   by which timestamps run
//! ```

use crate::arena::{GroupId, Slot};
use crate::bfq::wf2q::entity::{Entity, EntityId, weight_of};
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{QueueId, Wf2q};
use crate::io_context::{IoClass, IoPrio};

impl<L: Lookup> Wf2q<L> {
    /// Sets the raising factor, which counts from when the queue is next put on its tree.
    pub(in crate::bfq) fn set_raising_factor(&mut self, queue: QueueId, factor: u32) {
        let entity = &mut self.entities[queue];
        entity.change_due |= entity.raising_factor != factor;
        entity.raising_factor = factor;
    }

    /// Makes the weight what it is when raised as it is to be, at once and in the middle of a
    /// service: where that began or ended. Leaving timestamps stay.
    #[inline]
    pub(in crate::bfq) fn settle_raising(&mut self, queue: QueueId) {
        let entity = &self.entities[queue];
        let is_settled = (entity.weight > entity.own_weight) == (entity.raising_factor > 1);
        if !is_settled && entity.change_due {
            self.apply(queue, entity.class);
        }
    }

    /// Gives the queue the class and the weight of `io_prio`, from when it is next put on its tree.
    pub(in crate::bfq) fn reprioritise(&mut self, queue: QueueId, io_prio: IoPrio) {
        let entity = &mut self.entities[queue];
        entity.new_class = io_prio.class();
        entity.change_due = true;
        self.set_weight(queue, weight_of(io_prio));
    }

    /// Gives the queue that weight, raising aside, from when it is next put on its tree.
    pub(in crate::bfq) fn set_weight(&mut self, queue: QueueId, weight: u32) {
        let entity = &mut self.entities[queue];
        entity.change_due |= entity.new_weight != weight;
        entity.new_weight = weight;
    }

    /// Gives the group that weight, from when it is next put on its tree; the root has none.
    pub(in crate::bfq) fn set_group_weight(&mut self, group: GroupId, weight: u32) {
        if let Some(entity) = self.entities.id_at(self.servers[group].entity) {
            self.set_weight(entity, weight);
        }
    }

    /// Returns whether shares would not hold for `queue` if all queues were served alike: active
    /// queues differ in weight and it does not have the least, or groups have I/O pending.
    #[inline]
    pub(in crate::bfq) fn weights_matter_for(&self, queue: QueueId) -> bool {
        self.groups_pending > 0 || (self.counters.differ() && !self.has_least_weight(queue))
    }

    /// Returns whether the queue is counted, and under the least weight of all.
    fn has_least_weight(&self, queue: QueueId) -> bool {
        let counted = self.entities[queue].counted;
        counted.is_some() && counted == self.counters.least()
    }

    /// Counts the queue under its weight, among the active ones that are not raised; it is counted
    /// once.
    pub(in crate::bfq) fn count_weight(&mut self, queue: QueueId) {
        let entity = &mut self.entities[queue];
        if entity.raising_factor == 1 && entity.counted.is_none() {
            entity.counted = Some(entity.weight);
            self.counters.add(entity.weight);
        }
    }

    pub(super) fn uncount_weight(&mut self, queue: QueueId) {
        if let Some(weight) = self.entities[queue].counted.take() {
            self.counters.remove(weight);
        }
    }

    /// Applies the changes that are due of an entity that is on no tree.
    #[inline]
    pub(super) fn apply_changes(&mut self, node: Slot) {
        let Entity { change_due, new_class, id, .. } = self.entities[node];
        if change_due {
            self.apply(id, new_class);
        }
    }

    /// Applies the weight that is due, and `class`: from now on timestamps run by them. The class
    /// may change only while the entity is on no tree.
    fn apply(&mut self, id: EntityId, class: IoClass) {
        let entity = &mut self.entities[id];
        let (before, old_class) = (entity.weight, entity.class);
        entity.take_new_weight();
        entity.class = class;
        entity.change_due = class != entity.new_class;
        let parent = entity.parent;
        let weight = entity.own_weight * entity.raising_factor;
        let recount = weight != before && entity.is_queue();
        if recount {
            self.uncount_weight(id);
        }
        self.entities[id].weight = weight;
        if recount {
            self.count_weight(id);
        }
        let classes = &mut self.servers[parent].classes;
        classes[old_class as usize].weight_sum -= u64::from(before);
        classes[class as usize].weight_sum += u64::from(weight);
        if class != old_class {
            self.entities[id].start = classes[class as usize].vtime;
        }
    }
}
