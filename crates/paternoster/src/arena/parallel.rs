//! A table of what every request looks up, indexed like an arena.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use slotmap::Key;

use super::{Entry, generation_of, index_of, key_of};

/// A table of what every request looks up, indexed like an arena. A look-up is a bound and a load,
/// where a [`super::SideTable`] asks an Option as well. In return unused entries hold a value that
/// means nothing, and a removed value stays until its entry is used again.
#[derive(Debug)]
pub(crate) struct Parallel<K, V> {
    /// An unused entry is of generation 0.
    entries: Vec<Entry<V>>,
    kind: PhantomData<K>,
}

impl<K, V> Default for Parallel<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new(), kind: PhantomData }
    }
}

impl<K: Key, V> Parallel<K, V> {
    /// Makes the entry of a new thing. Where the table ends before it, `make` is called for each
    /// entry in between as well, so it has no effect besides its value.
    #[inline]
    pub(crate) fn add(&mut self, key: K, mut make: impl FnMut() -> V) {
        let index = index_of(key) as usize;
        if index >= self.entries.len() {
            return self.grow(key, make);
        }
        let entry = &mut self.entries[index];
        entry.value = make();
        entry.generation = generation_of(key);
    }

    /// Makes the last entry, and those before it.
    #[cold]
    fn grow(&mut self, key: K, mut make: impl FnMut() -> V) {
        let index = index_of(key) as usize;
        self.entries.resize_with(index + 1, || Entry { value: make(), generation: 0 });
        self.entries[index].generation = generation_of(key);
    }

    /// Takes note that the thing is gone, if it is there, and returns what it has left.
    #[inline]
    pub(crate) fn remove(&mut self, key: K) -> Option<&mut V> {
        let entry = self.entries.get_mut(index_of(key) as usize)?;
        if entry.generation != generation_of(key) {
            return None;
        }
        entry.generation = 0;
        Some(&mut entry.value)
    }

    /// Returns whether the thing has an entry.
    #[inline]
    pub(crate) fn contains_key(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    /// Returns the entry of that thing, if it has one.
    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let entry = self.entries.get(index_of(key) as usize)?;
        (entry.generation == generation_of(key)).then_some(&entry.value)
    }

    /// Returns the entry of that thing, if it has one, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let entry = self.entries.get_mut(index_of(key) as usize)?;
        (entry.generation == generation_of(key)).then_some(&mut entry.value)
    }

    /// Returns whether no thing has an entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the entries of all things, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let had = (0..).zip(&self.entries).filter(|(_, entry)| entry.generation > 0);
        had.map(|(index, entry)| (key_of(index, entry.generation), &entry.value))
    }

    /// Returns the entries of all things, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        let had = (0..).zip(&mut self.entries).filter(|(_, entry)| entry.generation > 0);
        had.map(|(index, entry)| (key_of(index, entry.generation), &mut entry.value))
    }

    /// Returns the entries without their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Key, V> Index<K> for Parallel<K, V> {
    type Output = V;
    /// The value of that thing. Where it has none, debug builds panic, and others may return one
    /// that means nothing or is another thing's.
    #[inline]
    fn index(&self, key: K) -> &V {
        debug_assert!(self.contains_key(key), "{key:?} is gone");
        &self.entries[index_of(key) as usize].value
    }
}

impl<K: Key, V> IndexMut<K> for Parallel<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        debug_assert!(self.contains_key(key), "{key:?} is gone");
        &mut self.entries[index_of(key) as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{Arena, GroupId};

    #[test]
    fn entry_goes_with_its_thing() {
        let (mut things, mut table) = (Arena::<GroupId, ()>::default(), Parallel::default());
        let [a, b] = [1, 2].map(|value| {
            let key = things.insert(());
            table.add(key, || value);
            key
        });
        things.remove(a);
        assert_eq!(table.remove(a).copied(), Some(1));
        assert_eq!(table.remove(a), None, "an entry goes once");
        let c = things.insert(());
        assert!(!table.contains_key(c), "it has the index, and no entry yet");
        table.add(c, || 3);
        table[b] += 10;
        assert_eq!((table[c], table[b], table.get(a)), (3, 12, None));
    }

    /// A scheduler may come to things that exist, and meet the last of them first.
    #[test]
    fn entries_that_nobody_has_are_not_there() {
        let (mut things, mut table) = (Arena::<GroupId, ()>::default(), Parallel::default());
        let [a, _, c] = [(); 3].map(|()| things.insert(()));
        assert!(table.is_empty());
        table.add(c, || 3);
        assert!(!table.is_empty() && !table.contains_key(a));
        assert_eq!(table.iter().collect::<Vec<_>>(), [(c, &3)]);
        table.add(a, || 1);
        table.iter_mut().for_each(|(_, value)| *value *= 10);
        assert_eq!(table.values().collect::<Vec<_>>(), [&10, &30]);
    }
}
