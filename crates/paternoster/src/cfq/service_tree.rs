//! The queues of a group that want a turn: a tree for each class, in order of their keys.

use crate::cfq::Cfq;
use crate::cfq::queue::QueueId;
use crate::io_context::IoClass;
use crate::parts::keyed_tree::{KeyedTree, PlaceId};
use crate::time::Instant;
use crate::trace::Trace;

/// A queue's place on a service tree of its group.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreePlace {
    class: IoClass,
    place: PlaceId,
}

/// The service trees of one group. A queue's key is the moment at which it began to wait for its
/// turn: within a class turns go round.
#[derive(Debug, Default)]
pub(super) struct ServiceTrees {
    trees: [KeyedTree<Instant, QueueId>; IoClass::COUNT],
}

impl ServiceTrees {
    /// The queue whose turn is next: RT before BE before IDLE.
    pub(super) fn first(&self) -> Option<QueueId> {
        self.trees.iter().find_map(KeyedTree::first).map(|(_, queue)| queue)
    }

    /// Queues on the trees.
    pub(super) fn len(&self) -> usize {
        self.trees.iter().map(KeyedTree::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.trees.iter().all(KeyedTree::is_empty)
    }

    fn insert(&mut self, class: IoClass, key: Instant, queue: QueueId) -> TreePlace {
        TreePlace { class, place: self.trees[class as usize].insert(key, queue) }
    }

    fn remove(&mut self, place: TreePlace) {
        self.trees[place.class as usize].remove(place.place);
    }
}

impl<T: Trace> Cfq<T> {
    /// Puts the queue on the tree of its class, behind those that wait; the tree may be another
    /// one than before.
    pub(super) fn place(&mut self, now: Instant, queue: QueueId) {
        let state = &mut self.queues[queue];
        let trees = &mut self.groups[state.group].trees;
        if let Some(place) = state.place.take() {
            trees.remove(place);
        }
        state.place = Some(trees.insert(state.io_prio.class(), now, queue));
    }

    /// Takes the queue off its tree.
    pub(super) fn unplace(&mut self, queue: QueueId) {
        let state = &mut self.queues[queue];
        let place = state.place.take().expect("a listed queue has a place");
        self.groups[state.group].trees.remove(place);
    }
}
