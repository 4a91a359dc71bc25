//! What the rest of BFQ may ask of a queue as an entity, and change of it. Outside of `wf2q/`
//! nothing else of an entity is visible.

use crate::arena::{GroupId, Slot};
use crate::bfq::wf2q::entity::{Entity, weight_of};
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{QueueId, Retired, Wf2q};
use crate::io_context::{IoClass, IoPrio};
use crate::request::SectorCount;

impl<L: Lookup> Wf2q<L> {
    /// Makes a queue of that I/O priority, to compete in `group`.
    pub(in crate::bfq) fn add_queue(&mut self, group: GroupId, io_prio: IoPrio) -> QueueId {
        let member = self.membership_in(group);
        self.entities.add(Entity::of_queue(member, io_prio))
    }

    /// Removes a queue that nothing here keeps.
    pub(in crate::bfq) fn remove_queue(&mut self, queue: QueueId) {
        debug_assert!(!self.keeps(queue), "nothing keeps it");
        self.entities.remove(queue);
    }

    /// Returns whether the queue has to exist: it has requests, counts in its tree's sum of
    /// weights, or is counted under its weight.
    #[inline]
    pub(in crate::bfq) fn keeps(&self, queue: QueueId) -> bool {
        let entity = &self.entities[queue];
        entity.requests > 0 || entity.in_weight_sum || entity.counted.is_some()
    }

    /// Returns a queue that has retired; `Retired` says that there may be one.
    #[inline]
    pub(in crate::bfq) fn next_retired(&mut self, _: &Retired) -> Option<QueueId> {
        self.retired.pop()
    }

    /// The queues that compete in `group`, on trees or not.
    pub(in crate::bfq) fn queues_of(&self, group: GroupId) -> impl Iterator<Item = QueueId> {
        let of_group = move |entity: &Entity| entity.is_queue() && entity.parent == group;
        self.entities.iter().filter(move |(_, entity)| of_group(entity)).map(|(id, _)| id)
    }

    #[inline]
    pub(in crate::bfq) fn group_of(&self, queue: QueueId) -> GroupId {
        self.entities[queue].parent
    }

    #[inline]
    pub(in crate::bfq) fn class_of(&self, queue: QueueId) -> IoClass {
        self.entities[queue].class
    }

    /// The I/O priority to which its class and its weight, not raised, amount.
    pub(in crate::bfq) fn io_prio_of(&self, queue: QueueId) -> IoPrio {
        self.entities[queue].io_prio()
    }

    /// Returns whether both are of the same group, class and level.
    pub(in crate::bfq) fn are_peers(&self, one: QueueId, other: QueueId) -> bool {
        let (one, other) = (&self.entities[one], &self.entities[other]);
        one.parent == other.parent && one.level() == other.level() && one.class == other.class
    }

    /// Requests that exist of the queue.
    pub(in crate::bfq) fn requests_of(&self, queue: QueueId) -> u32 {
        self.entities[queue].requests
    }

    /// The weight by which its timestamps run.
    pub(in crate::bfq) fn weight(&self, queue: QueueId) -> u32 {
        self.entities[queue].weight
    }

    /// The same without raising.
    pub(in crate::bfq) fn own_weight(&self, queue: QueueId) -> u32 {
        self.entities[queue].own_weight
    }

    /// Returns whether its weight, raising aside, is or is about to be that of the default
    /// priority.
    pub(in crate::bfq) fn is_of_default_weight(&self, queue: QueueId) -> bool {
        self.entities[queue].new_weight == weight_of(IoPrio::default())
    }

    /// Returns whether `queue` has more weight than `other`; of two groups, whether its group has.
    pub(in crate::bfq) fn weighs_more(&self, queue: QueueId, other: QueueId) -> bool {
        let same_group = self.group_of(queue) == self.group_of(other);
        let weight = |queue: QueueId| {
            let above = self.entities[queue].above;
            let is_alone = same_group || above.is_none();
            self.entities[if is_alone { Slot::of(queue) } else { above }].weight
        };
        weight(queue) > weight(other)
    }

    /// What the queue got of its budget.
    #[inline]
    pub(in crate::bfq) fn service(&self, queue: QueueId) -> SectorCount {
        self.entities[queue].service
    }

    #[inline]
    pub(in crate::bfq) fn budget(&self, queue: QueueId) -> SectorCount {
        self.entities[queue].budget
    }

    /// What is left of its budget; less than 0 if it got more.
    #[inline]
    pub(in crate::bfq) fn left(&self, queue: QueueId) -> i64 {
        self.entities[queue].left()
    }

    /// Gives the queue a budget, which counts from when it is next put on its tree.
    #[inline]
    pub(in crate::bfq) fn set_budget(&mut self, queue: QueueId, budget: SectorCount) {
        self.entities[queue].budget = budget;
    }

    /// Sets the service of the queue to 0: it has used nothing of its budget.
    #[inline]
    pub(in crate::bfq) fn reset_service(&mut self, queue: QueueId) {
        self.entities[queue].service = SectorCount(0);
    }
}
