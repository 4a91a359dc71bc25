//! A tree of values by key; equal keys are in order of insertion.

use slotmap::new_key_type;

use crate::arena::Arena;
use crate::parts::red_black::{Branch, Nodes, Tree, TreeLinks};

new_key_type! {
    /// Names a place in a [`KeyedTree`].
    pub(crate) struct PlaceId;
}

#[derive(Debug)]
struct Place<K, V> {
    key: K,
    value: V,
    links: TreeLinks<PlaceId>,
}

#[derive(Debug)]
struct Places<K, V>(Arena<PlaceId, Place<K, V>>);

impl<K, V> Nodes<PlaceId> for Places<K, V> {
    fn links(&self, place: PlaceId) -> &TreeLinks<PlaceId> {
        &self.0[place].links
    }
    fn links_mut(&mut self, place: PlaceId) -> &mut TreeLinks<PlaceId> {
        &mut self.0[place].links
    }
}

/// A textbook red-black tree of values by key.
#[derive(Debug)]
pub(crate) struct KeyedTree<K, V> {
    places: Places<K, V>,
    tree: Tree<PlaceId>,
    first: Option<PlaceId>,
    last: Option<PlaceId>,
}

impl<K, V> Default for KeyedTree<K, V> {
    fn default() -> Self {
        Self { places: Places(Arena::default()), tree: Tree::default(), first: None, last: None }
    }
}

impl<K: Copy + Ord, V: Copy> KeyedTree<K, V> {
    /// Returns the least key and its value; of equal keys the oldest.
    pub(crate) fn first(&self) -> Option<(K, V)> {
        self.first.map(|place| self.entry(place))
    }

    /// Returns the greatest key and its value; of equal keys the newest.
    pub(crate) fn last(&self) -> Option<(K, V)> {
        self.last.map(|place| self.entry(place))
    }

    pub(crate) fn len(&self) -> usize {
        self.places.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.0.is_empty()
    }

    /// All values, in no particular order.
    pub(crate) fn values(&self) -> impl Iterator<Item = V> {
        self.places.0.values().map(|place| place.value)
    }

    /// Inserts `value` behind those of an equal key.
    pub(crate) fn insert(&mut self, key: K, value: V) -> PlaceId {
        let new = self.places.0.insert(Place { key, value, links: TreeLinks::default() });
        self.link(new, key);
        new
    }

    fn link(&mut self, new: PlaceId, key: K) {
        let below = self.parent_for(key);
        self.tree.insert_below(&mut self.places, new, below);
        if below.is_none_or(|(parent, side)| Some(parent) == self.first && side == Branch::Left) {
            self.first = Some(new);
        }
        if below.is_none_or(|(parent, side)| Some(parent) == self.last && side == Branch::Right) {
            self.last = Some(new);
        }
    }

    /// Returns the place below which one of that key belongs, and the side; none in an empty tree.
    /// Most go behind all others: those belong on the right of the last, whatever the shape.
    fn parent_for(&self, key: K) -> Option<(PlaceId, Branch)> {
        let last = self.last?;
        if key >= self.places.0[last].key {
            return Some((last, Branch::Right));
        }
        let mut below = None;
        let mut node = self.tree.root();
        while let Some(parent) = node {
            let branch = if key < self.places.0[parent].key { Branch::Left } else { Branch::Right };
            below = Some((parent, branch));
            node = Tree::child(&self.places, parent, branch);
        }
        below
    }

    /// Removes the value at `place`.
    pub(crate) fn remove(&mut self, place: PlaceId) {
        self.unlink(place);
        self.places.0.remove(place);
    }

    /// Returns the key of the value at `place`.
    #[inline]
    pub(crate) fn key(&self, place: PlaceId) -> K {
        self.places.0[place].key
    }

    /// Gives each value the key that `shift` makes of its own; the order of keys stays.
    pub(crate) fn shift_keys(&mut self, shift: impl Fn(K) -> K) {
        for place in self.places.0.values_mut() {
            place.key = shift(place.key);
        }
    }

    /// Gives the value at `place` another key; it goes behind those of an equal one.
    pub(crate) fn set_key(&mut self, place: PlaceId, key: K) {
        let before = std::mem::replace(&mut self.places.0[place].key, key);
        if self.last == Some(place) && key >= before {
            // It stays the last.
            return;
        }
        self.relink(place, key);
    }

    /// Moves the value at `place` to where `key` belongs. Not inlined: a copy in each caller of
    /// `set_key` costs more than the call.
    #[inline(never)]
    fn relink(&mut self, place: PlaceId, key: K) {
        self.unlink(place);
        self.link(place, key);
    }

    fn unlink(&mut self, place: PlaceId) {
        if self.first == Some(place) {
            self.first = Tree::neighbour(&self.places, place, Branch::Right);
        }
        if self.last == Some(place) {
            self.last = Tree::neighbour(&self.places, place, Branch::Left);
        }
        self.tree.remove(&mut self.places, place);
    }

    fn entry(&self, place: PlaceId) -> (K, V) {
        let Place { key, value, .. } = self.places.0[place];
        (key, value)
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
            let mut model: Vec<(u8, usize, PlaceId)> = vec![];
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
                tree.tree.check(&tree.places);
                prop_assert_eq!(tree.first(), model.first().map(|&(key, value, _)| (key, value)));
                prop_assert_eq!(tree.last(), model.last().map(|&(key, value, _)| (key, value)));
                prop_assert_eq!(tree.len(), model.len());
                prop_assert_eq!(tree.is_empty(), model.is_empty());
            }
        }
    }
}
