//! A table beside an arena with an entry for each of its things.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use slotmap::Key;

use super::{Entry, generation_of, index_of};

/// A table beside an arena with an entry for each of its things, made as the thing is. A look-up is
/// a bound and a load, as in the arena: nothing has to say whether there is an entry.
#[derive(Debug)]
pub(crate) struct Parallel<K, V> {
    entries: Vec<Entry<V>>,
    kind: PhantomData<K>,
}

impl<K, V> Default for Parallel<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new(), kind: PhantomData }
    }
}

impl<K: Key, V> Parallel<K, V> {
    /// Makes the entry of a new thing. Its index is the next one, or was used before.
    pub(crate) fn set(&mut self, key: K, value: V) {
        let (index, generation) = (index_of(key) as usize, generation_of(key));
        let entry = Entry { value, generation };
        assert!(index <= self.entries.len(), "each thing before has an entry");
        if index == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[index] = entry;
        }
    }

    /// Takes note that the thing is gone.
    pub(crate) fn forget(&mut self, key: K) {
        debug_assert!(self.contains_key(key), "{key:?} is gone");
        self.entries[index_of(key) as usize].generation = 0;
    }

    /// Returns whether the thing exists.
    #[inline]
    pub(crate) fn contains_key(&self, key: K) -> bool {
        let entry = self.entries.get(index_of(key) as usize);
        entry.is_some_and(|entry| entry.generation == generation_of(key))
    }
}

impl<K: Key, V> Index<K> for Parallel<K, V> {
    type Output = V;
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
            table.set(key, value);
            key
        });
        things.remove(a);
        table.forget(a);
        assert!(!table.contains_key(a));
        let c = things.insert(());
        assert!(!table.contains_key(c), "it has the index, and no entry yet");
        table.set(c, 3);
        table[b] += 10;
        assert_eq!((table[c], table[b], table.contains_key(a)), (3, 12, false));
    }
}
