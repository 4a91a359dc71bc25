//! The queues of a group that want a turn, by class and kind of work, each tree in order of keys.
//!
//! ```text
//!           ASYNC   SYNC_NOIDLE   SYNC
//!     RT     [ ]        [ ]       [ ]       a key is about when the turn is due: the lowest is
//!     BE     [q4]       [q1 q9]   [q3]      next
//!     IDLE   [q7]
//! ```
//!
//! A key is the time of placing, plus an offset that is the greater the lower the level and the
//! more queues the group has, less what was left of the queue's last slice. It is a plain unsigned
//! number in Linux and wraps; so here.

use crate::cfq::Cfq;
use crate::cfq::queue::{Queue, QueueId};
use crate::io_context::IoClass;
use crate::parts::keyed_tree::{KeyedTree, PlaceId};
use crate::parts::think_time::ThinkTime;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, Trace, Workload};

/// Where a queue of the idle class is placed, from now: its tree is a fifo.
const IDLE_KEY_DELAY: Nanos = Nanos::from_millis(200);
/// How far before the first queue one is placed that preempts.
const FRONT_KEY_STEP: Nanos = Nanos::from_millis(1000);

/// When a queue's turn is due, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    const fn at(moment: Instant) -> Self {
        Self(moment.as_nanos())
    }

    const fn later(self, nanos: i64) -> Self {
        Self(self.0.wrapping_add_signed(nanos))
    }

    const fn earlier(self, span: Nanos) -> Self {
        Self(self.0.wrapping_sub(span.as_nanos()))
    }
}

/// Names one of the service trees of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TreeId(usize);

impl TreeId {
    const IDLE: Self = Self(2 * Workload::COUNT);
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
    place: PlaceId,
}

/// One tree.
#[derive(Debug)]
pub(super) struct ServiceTree {
    queues: KeyedTree<Key, QueueId>,
    /// How long all that use the tree think.
    pub(super) think: ThinkTime,
}

impl ServiceTree {
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

    #[inline]
    pub(super) fn of(&self, class: IoClass, workload: Workload) -> &ServiceTree {
        self.tree(TreeId::new(class, workload))
    }

    /// Queues of a class; `class` is not IDLE.
    #[inline]
    pub(super) fn busy_of(&self, class: IoClass) -> u32 {
        Workload::ALL.iter().map(|&workload| self.of(class, workload).len()).sum()
    }

    /// Queues on the async trees.
    #[inline]
    pub(super) fn busy_async(&self) -> u32 {
        let classes = [IoClass::Rt, IoClass::Be].iter();
        classes.map(|&class| self.of(class, Workload::Async).len()).sum()
    }

    /// Queues on the idle tree.
    #[inline]
    pub(super) fn busy_idle(&self) -> u32 {
        self.tree(TreeId::IDLE).len()
    }

    /// Queues on all trees.
    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(ServiceTree::len).sum()
    }

    /// The most urgent class that has a queue: RT before BE before IDLE.
    pub(super) fn first_class(&self) -> IoClass {
        let mut classes = [IoClass::Rt, IoClass::Be].into_iter();
        classes.find(|&class| self.busy_of(class) > 0).unwrap_or(IoClass::Idle)
    }

    /// The workload of `class` whose first queue is due first; on equal keys the first of their
    /// order. The class has a queue.
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

impl<T: Trace> Cfq<T> {
    /// The queue wants turns from now on.
    pub(super) fn list(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let (name, group) = (state.name(), state.group);
        self.trace.event(cx.now, Event::Listed { queue: name });
        self.busy += 1;
        self.busy_sync += u32::from(name.sync);
        // Before it is counted among the queues of its group: see `slice_offset`.
        self.place(cx, queue);
        self.join_group(cx, group);
        self.index_position(queue);
    }

    /// The queue wants no turn any more.
    pub(super) fn unlist(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &mut self.queues[queue];
        let (name, group) = (state.name(), state.group);
        let TreePlace { tree, place } = state.place.take().expect("a listed queue has a place");
        self.groups[group].trees.tree_mut(tree).queues.remove(place);
        self.unindex_position(queue);
        self.leave_group(cx, group);
        self.busy -= 1;
        self.busy_sync -= u32::from(name.sync);
        self.trace.event(cx.now, Event::Unlisted { queue: name });
    }

    /// Puts the queue where its turn is due, on the tree that it should be on. What was left of
    /// its slice counts once.
    pub(super) fn place(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let key = if state.class() == IoClass::Idle {
            Key::at(cx.now + IDLE_KEY_DELAY)
        } else {
            let offset = self.slice_offset(state);
            let residue = std::mem::take(&mut self.queues[queue].residue);
            Key::at(cx.now).later(offset.wrapping_sub(residue))
        };
        self.put_on_tree(queue, key);
    }

    /// Puts the queue, which is listed, before all others of its tree; of the idle class it stays.
    pub(super) fn place_first(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let key = if state.class() == IoClass::Idle {
            Key::at(cx.now + IDLE_KEY_DELAY)
        } else {
            let tree = self.groups[state.group].trees.tree(state.wanted_tree());
            tree.first_key().unwrap_or(Key::at(cx.now)).earlier(FRONT_KEY_STEP)
        };
        self.put_on_tree(queue, key);
    }

    fn put_on_tree(&mut self, queue: QueueId, key: Key) {
        let state = &mut self.queues[queue];
        let tree = state.wanted_tree();
        let trees = &mut self.groups[state.group].trees;
        if let Some(old) = state.place {
            if old.tree == tree {
                if key != state.key {
                    trees.tree_mut(tree).queues.set_key(old.place, key);
                    state.key = key;
                }
                return;
            }
            trees.tree_mut(old.tree).queues.remove(old.place);
        }
        let place = trees.tree_mut(tree).queues.insert(key, queue);
        state.key = key;
        state.place = Some(TreePlace { tree, place });
    }

    /// By how much a queue's turn is due later than that of a level 0 sync queue:
    ///
    /// `(queues of the group − 1) × (slice of level 0 − its own slice)`
    ///
    /// One that is being listed does not count itself, so the first of a group is due *earlier*
    /// the lower its level. So it is in Linux.
    fn slice_offset(&self, queue: &Queue) -> i64 {
        let others = i64::from(self.groups[queue.group].listed) - 1;
        let top = self.nominal_slice(true, 0).as_nanos();
        let own = self.nominal_slice(queue.sync, queue.io_prio.level()).as_nanos();
        others.wrapping_mul(top.wrapping_sub(own).cast_signed())
    }
}
