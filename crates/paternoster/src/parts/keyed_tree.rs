//! A tree of values by key; equal keys are in order of insertion.

use crate::arena::Slot;
use crate::parts::red_black::{Branch, Nodes, Place, Tree};
use crate::parts::tree_nodes::TreeNodes;

/// A textbook red-black tree of values by key. A value is named by the slot of its node.
#[derive(Debug)]
pub(crate) struct KeyedTree<K, V> {
    nodes: TreeNodes<(K, V)>,
    tree: Tree,
    first: Slot,
    last: Slot,
    len: u32,
}

impl<K, V> Default for KeyedTree<K, V> {
    fn default() -> Self {
        let (nodes, tree) = (TreeNodes::default(), Tree::default());
        Self { nodes, tree, first: Slot::NONE, last: Slot::NONE, len: 0 }
    }
}

impl<K: Copy + Ord, V: Copy> KeyedTree<K, V> {
    /// Returns the least key and its value; of equal keys the oldest.
    #[inline]
    pub(crate) fn first(&self) -> Option<(K, V)> {
        self.first.is_some().then(|| self.nodes[self.first])
    }

    /// Returns the greatest key and its value; of equal keys the newest.
    #[inline]
    pub(crate) fn last(&self) -> Option<(K, V)> {
        self.last.is_some().then(|| self.nodes[self.last])
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// All values, in the order of their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = V> {
        let some = |slot: Slot| slot.is_some().then_some(slot);
        let next = move |&slot: &Slot| some(Tree::neighbour(&self.nodes, slot, Branch::Right));
        std::iter::successors(some(self.first), next).map(|slot| self.nodes[slot].1)
    }

    /// Inserts `value` behind those of an equal key.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Slot {
        let new = self.nodes.add((key, value));
        self.link(new, key);
        self.len += 1;
        new
    }

    #[inline]
    fn link(&mut self, new: Slot, key: K) {
        let place = self.place_of(key);
        let Place { parent, side } = place;
        self.tree.insert_below(&mut self.nodes, new, place);
        if parent == self.first && side == Branch::Left {
            self.first = new;
        }
        if parent == self.last && side == Branch::Right {
            self.last = new;
        }
        if parent.is_none() {
            (self.first, self.last) = (new, new);
        }
    }

    /// Returns where one of that key belongs. Most go behind all others: those belong on the right
    /// of the last, whatever the shape.
    #[inline]
    fn place_of(&self, key: K) -> Place {
        let mut place = Place { parent: self.last, side: Branch::Right };
        if self.last.is_none() || key >= self.nodes[self.last].0 {
            return place;
        }
        let mut node = self.tree.root();
        while node.is_some() {
            place = Place { parent: node, side: Branch::right_if(key >= self.nodes[node].0) };
            node = self.nodes.links(node).child(place.side);
        }
        place
    }

    /// Removes the value at `slot`.
    pub(crate) fn remove(&mut self, slot: Slot) {
        self.unlink(slot);
        self.nodes.free(slot);
        self.len -= 1;
    }

    /// Returns the key of the value at `slot`.
    #[inline]
    pub(crate) fn key(&self, slot: Slot) -> K {
        self.nodes[slot].0
    }

    /// Gives each value the key that `shift` makes of its own; the order of keys stays.
    pub(crate) fn shift_keys(&mut self, shift: impl Fn(K) -> K) {
        for (key, _) in self.nodes.all_mut() {
            *key = shift(*key);
        }
    }

    /// Gives the value at `slot` another key; it goes behind those of an equal one.
    pub(crate) fn set_key(&mut self, slot: Slot, key: K) {
        let before = std::mem::replace(&mut self.nodes[slot].0, key);
        if self.last == slot && key >= before {
            // It stays the last.
            return;
        }
        self.relink(slot, key);
    }

    /// Moves the value at `slot` to where `key` belongs. Not inlined: a copy in each caller of
    /// `set_key` costs more than the call.
    #[inline(never)]
    fn relink(&mut self, slot: Slot, key: K) {
        self.unlink(slot);
        self.link(slot, key);
    }

    #[inline]
    fn unlink(&mut self, slot: Slot) {
        if self.first == slot {
            self.first = Tree::neighbour(&self.nodes, slot, Branch::Right);
        }
        if self.last == slot {
            self.last = Tree::neighbour(&self.nodes, slot, Branch::Left);
        }
        self.tree.remove(&mut self.nodes, slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The model is a list: a new entry goes behind the last that is not greater.
        #[test]
        fn first_is_the_oldest_of_the_least_keys(
            steps in proptest::collection::vec((0_u8..8, any::<u16>(), 0_u8..5), 0..300),
        ) {
            let mut tree = KeyedTree::default();
            let mut model: Vec<(u8, usize, Slot)> = vec![];
            for (new, (key, pick, what)) in steps.into_iter().enumerate() {
                let at = usize::from(pick) % model.len().max(1);
                let (value, place) = match what {
                    0..2 if !model.is_empty() => {
                        tree.remove(model.remove(at).2);
                        continue;
                    }
                    2 if !model.is_empty() => {
                        let (_, value, place) = model.remove(at);
                        tree.set_key(place, key);
                        (value, place)
                    }
                    _ => (new, tree.insert(key, new)),
                };
                let at = model.partition_point(|&(other, ..)| other <= key);
                model.insert(at, (key, value, place));
                tree.tree.check(&tree.nodes);
                prop_assert_eq!(tree.first(), model.first().map(|&(key, value, _)| (key, value)));
                prop_assert_eq!(tree.last(), model.last().map(|&(key, value, _)| (key, value)));
                prop_assert_eq!(tree.len() as usize, model.len());
                prop_assert_eq!(tree.is_empty(), model.is_empty());
                prop_assert!(tree.values().eq(model.iter().map(|&(_, value, _)| value)));
            }
        }
    }
}
