//! The service trees of a group: its busy queues by class and workload, on each tree in the order
//! of keys.
//!
//! ```text
//!           ASYNC   SYNC_NOIDLE   SYNC
//!     RT     [ ]        [ ]       [ ]       a key is about when the slice is due: the lowest is
//!     BE     [q4]       [q1 q9]   [q3]      next
//!     IDLE   [q7]
//! ```
//!
//! A key is the time at which the queue is placed, plus an offset, less the residue of the queue's
//! last slice. The offset is greater for a lower level and for a group with more queues. As in
//! Linux, a key is an unsigned number that wraps.

use crate::cfq::queue_id::QueueId;
use crate::io_context::IoClass;
use crate::parts::keyed_tree::{KeyedTree, PlaceId};
use crate::parts::think_time::ThinkTime;
use crate::time::{Instant, Nanos};
use crate::trace::Workload;

/// When a queue's slice is due, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    pub(super) const fn at(moment: Instant) -> Self {
        Self(moment.as_nanos())
    }

    pub(super) const fn later(self, nanos: i64) -> Self {
        Self(self.0.wrapping_add_signed(nanos))
    }

    pub(super) const fn earlier(self, span: Nanos) -> Self {
        Self(self.0.wrapping_sub(span.as_nanos()))
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

/// A queue's place on a service tree of its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreePlace {
    pub(super) tree: TreeId,
    key: Key,
    place: PlaceId,
}

/// One tree.
#[derive(Debug)]
pub(super) struct ServiceTree {
    queues: KeyedTree<Key, QueueId>,
    /// The think time of all I/O contexts whose queues are on the tree.
    pub(super) think: ThinkTime,
}

impl ServiceTree {
    #[inline]
    pub(super) fn first_key(&self) -> Option<Key> {
        self.queues.first().map(|(key, _)| key)
    }

    #[inline]
    pub(super) fn first(&self) -> Option<QueueId> {
        self.queues.first().map(|(_, queue)| queue)
    }

    #[inline]
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.queues.len()).expect("fewer than 2³² queues exist")
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

/// The service trees of one group.
#[derive(Debug)]
pub(super) struct ServiceTrees([ServiceTree; TreeId::COUNT]);

impl ServiceTrees {
    pub(super) fn new(now: Instant) -> Self {
        let tree = |_| ServiceTree { queues: KeyedTree::default(), think: ThinkTime::new(now) };
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

    /// Puts `queue`, whose place is `old` if it has one, on `tree` by `key`. Returns its place.
    #[inline]
    pub(super) fn put(
        &mut self,
        queue: QueueId,
        tree: TreeId,
        key: Key,
        old: Option<TreePlace>,
    ) -> TreePlace {
        if let Some(old) = old {
            if old.tree == tree {
                if key != old.key {
                    self.tree_mut(tree).queues.set_key(old.place, key);
                }
                return TreePlace { key, ..old };
            }
            self.remove(old);
        }
        let place = self.tree_mut(tree).queues.insert(key, queue);
        TreePlace { tree, key, place }
    }

    /// Takes the queue at `place` off its tree.
    #[inline]
    pub(super) fn remove(&mut self, place: TreePlace) {
        self.tree_mut(place.tree).queues.remove(place.place);
    }

    #[inline]
    pub(super) fn of(&self, class: IoClass, workload: Workload) -> &ServiceTree {
        self.tree(TreeId::new(class, workload))
    }

    /// Busy queues of a class, which is not IDLE.
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

    /// Busy queues on all trees.
    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(ServiceTree::len).sum()
    }

    /// The most urgent class that has a queue: RT before BE before IDLE.
    #[inline]
    pub(super) fn first_class(&self) -> IoClass {
        let mut classes = [IoClass::Rt, IoClass::Be].into_iter();
        classes.find(|&class| self.busy_of(class) > 0).unwrap_or(IoClass::Idle)
    }

    /// The workload of `class` whose first queue is due first; on equal keys the one that is first
    /// in their order. The class has a busy queue.
    pub(super) fn due_workload(&self, class: IoClass) -> Workload {
        let first_key = |workload| self.of(class, workload).first_key();
        let with_queues =
            Workload::ALL.into_iter().filter_map(|workload| Some((first_key(workload)?, workload)));
        with_queues.min_by_key(|&(key, _)| key).expect("the class has a queue").1
    }

    /// The queue that a drain takes next, in Linux's order.
    pub(super) fn any_first(&self) -> Option<QueueId> {
        let in_order = [IoClass::Be, IoClass::Rt]
            .into_iter()
            .flat_map(|class| Workload::ALL.map(|workload| TreeId::new(class, workload)));
        in_order.chain([TreeId::IDLE]).find_map(|tree| self.tree(tree).first())
    }
}
