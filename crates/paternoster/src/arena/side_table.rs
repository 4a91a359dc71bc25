//! A table of more that belongs to the things of an arena.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use slotmap::Key;

use super::{generation_of, index_of, key_of};

/// A table of more that belongs to the things of an arena, by the arena's keys. A thing has at most
/// one entry. What a removed thing has left stays under its old key, and counts, until it is taken
/// out or the next thing with that slot has an entry.
#[derive(Clone, Debug)]
pub struct SideTable<K, V> {
    entries: Vec<Entry<V>>,
    len: usize,
    kind: PhantomData<K>,
}

#[derive(Clone, Debug)]
struct Entry<V> {
    generation: u32,
    value: Option<V>,
}

impl<K, V> Default for SideTable<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new(), len: 0, kind: PhantomData }
    }
}

impl<K: Key, V> SideTable<K, V> {
    /// Makes an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores what belongs to `key`, and returns what belonged to it before.
    ///
    /// # Panics
    ///
    /// Where it is a key of nothing ([`Key::null`]).
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.room(key).replace(value);
        self.len += usize::from(before.is_none());
        before
    }

    /// Returns what belongs to `key`, which is `make()` where nothing did.
    ///
    /// # Panics
    ///
    /// Where it is a key of nothing ([`Key::null`]).
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let is_new = self.room(key).is_none();
        self.len += usize::from(is_new);
        self.room(key).get_or_insert_with(make)
    }

    /// Returns the room for what belongs to `key`; what belonged to another thing of its slot goes.
    #[inline]
    fn room(&mut self, key: K) -> &mut Option<V> {
        let (index, generation) = (index_of(key) as usize, generation_of(key));
        if index >= self.entries.len() {
            self.grow(key);
        }
        let entry = &mut self.entries[index];
        if entry.generation != generation {
            self.len -= usize::from(entry.value.is_some());
            *entry = Entry { generation, value: None };
        }
        &mut entry.value
    }

    /// Makes room up to the slot of `key`.
    #[cold]
    fn grow(&mut self, key: K) {
        assert!(!key.is_null(), "a key of nothing has no entry");
        let entry = || Entry { generation: generation_of(key), value: None };
        self.entries.resize_with(index_of(key) as usize + 1, entry);
    }

    /// Takes out what belongs to `key`.
    #[inline]
    pub fn remove(&mut self, key: K) -> Option<V> {
        let entry = self.entries.get_mut(index_of(key) as usize)?;
        if entry.generation != generation_of(key) {
            return None;
        }
        let value = entry.value.take();
        self.len -= usize::from(value.is_some());
        value
    }

    /// Returns whether something belongs to `key`.
    #[inline]
    pub fn contains_key(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    /// Returns what belongs to `key`.
    #[inline]
    pub fn get(&self, key: K) -> Option<&V> {
        let entry = self.entries.get(index_of(key) as usize)?;
        if entry.generation == generation_of(key) { entry.value.as_ref() } else { None }
    }

    /// Returns what belongs to `key`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let entry = self.entries.get_mut(index_of(key) as usize)?;
        if entry.generation == generation_of(key) { entry.value.as_mut() } else { None }
    }

    /// Keeps what `keep` approves of.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        for (index, entry) in (0..).zip(&mut self.entries) {
            let key = key_of(index, entry.generation);
            if entry.value.as_mut().is_some_and(|value| !keep(key, value)) {
                entry.value = None;
                self.len -= 1;
            }
        }
    }

    /// Takes out everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.len = 0;
    }

    /// Returns how many entries it has.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all entries, in the order of the slots of their things.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        (0..).zip(&self.entries).filter_map(|(index, entry)| {
            entry.value.as_ref().map(|value| (key_of(index, entry.generation), value))
        })
    }

    /// Returns all entries, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        (0..).zip(&mut self.entries).filter_map(|(index, entry)| {
            entry.value.as_mut().map(|value| (key_of(index, entry.generation), value))
        })
    }

    /// Returns all keys that have an entry.
    pub fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// Returns all that belongs to a key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().filter_map(|entry| entry.value.as_ref())
    }

    /// Returns all that belongs to a key, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().filter_map(|entry| entry.value.as_mut())
    }
}

impl<K: Key, V> Index<K> for SideTable<K, V> {
    type Output = V;
    /// What belongs to `key`; panics where nothing does. Where the thing is gone, debug builds
    /// panic, and others may return what belongs to the one that has its slot now.
    #[inline]
    fn index(&self, key: K) -> &V {
        debug_assert!(self.contains_key(key), "{key:?} has an entry");
        self.entries[index_of(key) as usize].value.as_ref().expect("a key that has an entry")
    }
}

impl<K: Key, V> IndexMut<K> for SideTable<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        debug_assert!(self.contains_key(key), "{key:?} has an entry");
        self.entries[index_of(key) as usize].value.as_mut().expect("a key that has an entry")
    }
}

impl<K: Key, V> FromIterator<(K, V)> for SideTable<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut table = Self::new();
        for (key, value) in entries {
            table.insert(key, value);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::arena::{Arena, RequestId};

    /// What belonged to a thing that is gone stays until the next thing of its slot has an entry.
    #[test]
    fn entry_belongs_to_one_thing_of_a_slot() {
        let (mut things, mut table) = (Arena::<RequestId, ()>::default(), SideTable::new());
        let first = things.insert(());
        assert_eq!((table.insert(first, 1), table.insert(first, 2)), (None, Some(1)));
        things.remove(first);
        let second = things.insert(());
        assert_eq!((table.get(second), table.get(first)), (None, Some(&2)));
        assert_eq!(table.insert(second, 3), None);
        assert_eq!((table.remove(first), table.get(first), table[second]), (None, None, 3));
        assert_eq!((table.len(), table.keys().next()), (1, Some(second)));
    }

    proptest! {
        #[test]
        fn any_side_table_is_a_map(
            steps in proptest::collection::vec((0_u8..4, 0_u32..8, 0_u32..100), 0..200),
        ) {
            let (mut table, mut map) = (SideTable::<RequestId, u32>::new(), BTreeMap::new());
            for (what, index, value) in steps {
                let key = key_of(index, 1);
                match what {
                    0 => prop_assert_eq!(table.remove(key), map.remove(&key)),
                    1 => {
                        let own = map.entry(key).or_insert(value);
                        prop_assert_eq!(table.get_or_insert_with(key, || value), own);
                    }
                    2 => {
                        table.retain(|_, other| *other != value);
                        map.retain(|_, other| *other != value);
                    }
                    _ => prop_assert_eq!(table.insert(key, value), map.insert(key, value)),
                }
                prop_assert_eq!((table.len(), table.is_empty()), (map.len(), map.is_empty()));
                let all: BTreeMap<_, _> = table.iter().map(|(key, value)| (key, *value)).collect();
                prop_assert_eq!(&all, &map);
                prop_assert_eq!(table.values().count(), map.len());
                prop_assert_eq!(table.get(key), map.get(&key));
            }
        }
    }
}
