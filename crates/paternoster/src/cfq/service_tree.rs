//! The service trees of a group: its busy queues by class and workload, on each tree in the order
//! of keys. In one of the hierarchies (`hierarchy/entities.rs`) its child groups are among them.
//!
//! ```text
//!           ASYNC   SYNC_NOIDLE   SYNC
//!     RT     [ ]        [ ]       [ ]       a key says when the slice is due: the lowest is next
//!     BE     [q4]       [q1 q9]   [q3]
//!     IDLE   [q7]
//! ```
//!
//! What a key is depends on the hierarchy: a time, in `hierarchy/leaf_weight.rs`, which as in Linux
//! is an unsigned number that wraps; or a vdisktime, in `hierarchy/vdisktime.rs`.

use crate::arena::{GroupId, Slot};
use crate::cfq::queue_id::QueueId;
use crate::io_context::IoClass;
use crate::parts::keyed_tree::KeyedTree;
use crate::parts::think_time::ThinkTime;
use crate::time::{Instant, Nanos};
use crate::trace::Workload;

/// When a queue's slice is due: at a time in nanoseconds, or at a vdisktime, which is counted from
/// [`Key::ORIGIN`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    /// Vdisktime 0. It is in the middle, as vdisktimes may be less.
    const ORIGIN: Self = Self(1 << 63);
    /// Vdisktimes this far from the origin are counted anew from there.
    const FAR: Self = Self(Self::ORIGIN.0 + (1 << 62));

    pub(super) const fn at(moment: Instant) -> Self {
        Self(moment.as_nanos())
    }

    pub(super) const fn later(self, nanos: i64) -> Self {
        Self(self.0.wrapping_add_signed(nanos))
    }

    pub(super) const fn earlier(self, span: Nanos) -> Self {
        Self(self.0.wrapping_sub(span.as_nanos()))
    }

    /// The vdisktime that it is; one below 0 wraps.
    pub(super) const fn vdisktime(self) -> u64 {
        self.0.wrapping_sub(Self::ORIGIN.0)
    }

    /// The vdisktime so far behind.
    pub(super) const fn advanced(self, by: i64) -> Self {
        Self(self.0.saturating_add_signed(by))
    }
}

/// What competes on a service tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Queue(QueueId),
    /// A child of the group whose tree it is.
    Group(GroupId),
}

impl Entity {
    /// The queue that it is, in a hierarchy in which groups are on no service tree.
    #[inline]
    pub(super) fn queue(self) -> QueueId {
        match self {
            Self::Queue(queue) => queue,
            Self::Group(_) => unreachable!("a group is on a service tree"),
        }
    }
}

/// Names one of the service trees of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeId(usize);

impl TreeId {
    pub(super) const IDLE: Self = Self(2 * Workload::COUNT);
    const COUNT: usize = 2 * Workload::COUNT + 1;

    pub(super) const fn new(class: IoClass, workload: Workload) -> Self {
        match class {
            IoClass::Rt => Self(workload as usize),
            IoClass::Be => Self(Workload::COUNT + workload as usize),
            IoClass::Idle => Self::IDLE,
        }
    }
}

/// The place of a queue on a service tree of its group, or of a group on one of its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreePlace {
    pub(super) tree: TreeId,
    place: Slot,
}

/// One tree.
#[derive(Debug)]
pub(super) struct ServiceTree {
    entities: KeyedTree<Key, Entity>,
    /// The greatest vdisktime that a chosen entity had.
    min: Key,
    /// The think time of all I/O contexts whose queues are on the tree.
    pub(super) think: ThinkTime,
}

impl ServiceTree {
    #[inline]
    pub(super) fn first_key(&self) -> Option<Key> {
        self.entities.first().map(|(key, _)| key)
    }

    pub(super) fn last_key(&self) -> Option<Key> {
        self.entities.last().map(|(key, _)| key)
    }

    /// The vdisktime at which an entity joins an empty tree, or a queue without a jump any tree.
    pub(super) fn min(&self) -> Key {
        self.min
    }

    /// Chooses the entity with the least vdisktime; the minimum moves up to that.
    pub(super) fn choose(&mut self) -> Option<Entity> {
        let (vdisktime, entity) = self.entities.first()?;
        self.min = self.min.max(vdisktime);
        if self.min > Key::FAR {
            self.count_anew();
        }
        Some(entity)
    }

    /// Counts all vdisktimes from the origin again, so that none ever overflows.
    fn count_anew(&mut self) {
        let by = self.min.0 - Key::ORIGIN.0;
        self.entities.shift_keys(|key| Key(key.0.saturating_sub(by)));
        self.min = Key::ORIGIN;
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Entity> {
        self.entities.first().map(|(_, entity)| entity)
    }

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.entities.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }
}

/// The service trees of one group.
#[derive(Debug)]
pub(super) struct ServiceTrees([ServiceTree; TreeId::COUNT]);

impl ServiceTrees {
    /// Trees on which such think times begin.
    pub(super) fn new(think: ThinkTime) -> Self {
        let tree = |_| ServiceTree { entities: KeyedTree::default(), min: Key::ORIGIN, think };
        Self(std::array::from_fn(tree))
    }

    #[inline]
    pub(super) fn tree(&self, tree: TreeId) -> &ServiceTree {
        &self.0[tree.0]
    }

    #[inline]
    pub(super) fn tree_mut(&mut self, tree: TreeId) -> &mut ServiceTree {
        &mut self.0[tree.0]
    }

    /// Puts `entity`, whose place is `old` if it has one, on `tree` by `key`. Returns its place.
    #[inline]
    pub(super) fn put(
        &mut self,
        entity: Entity,
        tree: TreeId,
        key: Key,
        old: Option<TreePlace>,
    ) -> TreePlace {
        if let Some(old) = old {
            if old.tree == tree {
                let entities = &mut self.tree_mut(tree).entities;
                if key != entities.key(old.place) {
                    entities.set_key(old.place, key);
                }
                return old;
            }
            self.remove(old);
        }
        let place = self.tree_mut(tree).entities.insert(key, entity);
        TreePlace { tree, place }
    }

    /// Moves the entity at `place` back by what it is charged, behind those of the same vdisktime.
    pub(super) fn charge(&mut self, TreePlace { tree, place }: TreePlace, by: u64) {
        let entities = &mut self.tree_mut(tree).entities;
        let key = Key(entities.key(place).0.saturating_add(by));
        entities.set_key(place, key);
    }

    /// The key of the entity at `place`.
    pub(super) fn key(&self, TreePlace { tree, place }: TreePlace) -> Key {
        self.tree(tree).entities.key(place)
    }

    /// Takes the entity at `place` off its tree.
    #[inline]
    pub(super) fn remove(&mut self, place: TreePlace) {
        self.tree_mut(place.tree).entities.remove(place.place);
    }

    #[inline]
    pub(super) fn of(&self, class: IoClass, workload: Workload) -> &ServiceTree {
        self.tree(TreeId::new(class, workload))
    }

    /// Entities of a class, which is not IDLE.
    #[inline]
    pub(super) fn busy_of(&self, class: IoClass) -> u32 {
        Workload::ALL.iter().map(|&workload| self.of(class, workload).len()).sum()
    }

    /// Busy queues on the asynchronous trees.
    #[inline]
    pub(super) fn busy_async(&self) -> u32 {
        let classes = [IoClass::Rt, IoClass::Be].iter();
        classes.map(|&class| self.of(class, Workload::Async).len()).sum()
    }

    /// Busy queues on the tree of the idle class.
    #[inline]
    pub(super) fn busy_idle(&self) -> u32 {
        self.tree(TreeId::IDLE).len()
    }

    /// All entities, in no particular order.
    pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
        self.0.iter().flat_map(|tree| tree.entities.values())
    }

    /// Entities on all trees.
    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(ServiceTree::len).sum()
    }

    /// The most urgent class that has an entity: RT before BE before IDLE.
    #[inline]
    pub(super) fn first_class(&self) -> IoClass {
        let mut classes = [IoClass::Rt, IoClass::Be].into_iter();
        classes.find(|&class| self.busy_of(class) > 0).unwrap_or(IoClass::Idle)
    }

    /// The workload of `class` whose tree has the least mark; of equal marks that of the workload
    /// that is first in their order. Empty trees have no mark. The class has an entity.
    #[inline]
    pub(super) fn least_workload<M: Ord>(
        &self,
        class: IoClass,
        mark: impl Fn(&ServiceTree) -> Option<M>,
    ) -> Workload {
        let with_entities =
            Workload::ALL.into_iter().filter_map(|it| Some((mark(self.of(class, it))?, it)));
        let least = with_entities.min_by(|(one, _), (other, _)| one.cmp(other));
        least.expect("the class has an entity").1
    }

    /// What a drain takes next, in Linux's order.
    pub(super) fn any_first(&self) -> Option<Entity> {
        let in_order = [IoClass::Be, IoClass::Rt]
            .into_iter()
            .flat_map(|class| Workload::ALL.map(|workload| TreeId::new(class, workload)));
        in_order.chain([TreeId::IDLE]).find_map(|tree| self.tree(tree).first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slotmap::KeyData;

    /// Two queues 100 apart, each charged 2⁵⁹ when it is chosen. After 16 charges of each the
    /// vdisktimes would be beyond 2⁶⁴, so they are counted anew in between; the order stays.
    #[test]
    fn vdisktimes_never_overflow() {
        let tree = TreeId::new(IoClass::Be, Workload::Sync);
        let mut trees = ServiceTrees::new(ThinkTime::new(Instant::START));
        let queues = [1, 2].map(|n| Entity::Queue(KeyData::from_ffi((1 << 32) + n).into()));
        let places = [(0, 0), (1, 100)]
            .map(|(queue, key)| trees.put(queues[queue], tree, Key::ORIGIN.advanced(key), None));
        for round in 0..100 {
            for (queue, place) in queues.iter().zip(places) {
                assert_eq!(trees.tree_mut(tree).choose(), Some(*queue), "round {round}");
                trees.charge(place, 1 << 59);
            }
            let [first, last] = [ServiceTree::first_key, ServiceTree::last_key]
                .map(|key| key(trees.tree(tree)).expect("a queue").0);
            assert_eq!(last - first, 100, "round {round}");
        }
    }
}
