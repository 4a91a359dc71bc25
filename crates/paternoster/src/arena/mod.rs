//! Things under keys, tables of more that belongs to them, and lists through them.
//!
//! ```text
//!   key:    index 2 │ generation 3                   odd while the thing exists
//!               │          │
//!               ▼          ▼ compared at the doors
//!   entries  [ a 1 ][ b 1 ][ c 3 ][ gone 2 ]            free: 3
//! ```
//!
//! Nothing here counts references or points to its owner. A key names a thing; a stale key is a
//! bug. It is found at the doors, where keys come in from outside ([`Arena::contains_key`]). In
//! between a look-up is a bound and a load, and only debug builds compare the generation as well.

mod list;
mod parallel;
mod side_table;

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use slotmap::{Key, KeyData, new_key_type};

pub(crate) use list::{Linked, List, ListLinks};
pub(crate) use parallel::Parallel;
pub use side_table::SideTable;

new_key_type! {
    /// Names a request for as long as it exists.
    pub struct RequestId;
    /// Names an I/O context until it has exited and its last request is freed.
    pub struct IocId;
    /// Names a group of one elevator.
    pub struct GroupId;
}

/// A place in a table whose first entry is empty: in one of its own, or in one beside an arena,
/// where it is one more than the index of a key. Links on a hot path are slots: they take half the
/// space of a key, and one that leads nowhere leads to the empty entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    /// The slot of the empty entry.
    pub(crate) const NONE: Self = Self(0);

    /// Returns the slot with that index in its table.
    #[inline]
    pub(crate) const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the slot of what belongs to `key`, in a table beside the arena.
    #[inline]
    pub(crate) fn of(key: impl Key) -> Self {
        Self(index_of(key).wrapping_add(1))
    }

    /// Returns the key that has this slot and that generation.
    #[inline]
    pub(crate) fn key<K: Key>(self, generation: Generation) -> K {
        key_of(self.0.wrapping_sub(1), generation.0)
    }

    /// Returns the index in the table.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) const fn is_some(self) -> bool {
        self.0 != 0
    }
}

/// The other half of a key: how often its entry was used before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    #[inline]
    pub(crate) fn of(key: impl Key) -> Self {
        Self(generation_of(key))
    }
}

/// The index of a key. That of a key of nothing is beyond all entries.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is the index")]
fn index_of(key: impl Key) -> u32 {
    key.data().as_ffi() as u32
}

#[inline]
fn generation_of(key: impl Key) -> u32 {
    (key.data().as_ffi() >> 32) as u32
}

#[inline]
fn key_of<K: Key>(index: u32, generation: u32) -> K {
    KeyData::from_ffi(u64::from(generation) << 32 | u64::from(index)).into()
}

/// Things of one kind under their keys. What is removed stays in its entry until that is used
/// again.
#[derive(Debug)]
pub(crate) struct Arena<K, V> {
    entries: Vec<Entry<V>>,
    /// The entry that was freed last is used first.
    free: Vec<u32>,
    /// Entries that are never used again.
    used_up: usize,
    kind: PhantomData<K>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    /// One more each time that the entry is used or freed: odd while it is in use.
    generation: u32,
}

impl<V> Entry<V> {
    #[inline]
    fn is_used(&self) -> bool {
        self.generation % 2 == 1
    }
}

impl<K, V> Default for Arena<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new(), used_up: 0, kind: PhantomData }
    }
}

impl<K: Key, V> Arena<K, V> {
    /// Adds a thing and returns its key.
    #[inline]
    pub(crate) fn insert(&mut self, value: V) -> K {
        self.insert_with_key(|_| value)
    }

    /// Adds a thing that is made from its own key.
    #[inline]
    pub(crate) fn insert_with_key(&mut self, make: impl FnOnce(K) -> V) -> K {
        let Some(index) = self.free.pop() else { return self.append(make) };
        let entry = &mut self.entries[index as usize];
        entry.generation += 1;
        let key = key_of(index, entry.generation);
        entry.value = make(key);
        key
    }

    /// Adds a thing with what is left of the one before in its entry, or with `blank()` in a new
    /// entry. Returns it with its key, to be set up.
    #[inline]
    pub(crate) fn reuse(&mut self, blank: impl FnOnce() -> V) -> (K, &mut V) {
        let Some(index) = self.free.pop() else {
            let key = self.append(|_| blank());
            return (key, &mut self[key]);
        };
        let entry = &mut self.entries[index as usize];
        entry.generation += 1;
        (key_of(index, entry.generation), &mut entry.value)
    }

    /// Adds a thing in a new entry.
    #[cold]
    fn append(&mut self, make: impl FnOnce(K) -> V) -> K {
        // Trees beside an arena need a bit of a slot.
        let index = u32::try_from(self.entries.len()).ok().filter(|&index| index < (1 << 31) - 1);
        let key = key_of(index.expect("fewer than 2³¹ − 1 exist"), 1);
        self.entries.push(Entry { value: make(key), generation: 1 });
        key
    }

    /// Frees the entry of a thing, if there is one of that key, and returns what is left in it.
    #[inline]
    pub(crate) fn remove(&mut self, key: K) -> Option<&mut V> {
        let index = index_of(key);
        let entry = self.entries.get_mut(index as usize)?;
        if entry.generation != generation_of(key) {
            return None;
        }
        entry.generation = entry.generation.wrapping_add(1);
        // After 2³¹ things the entry is never used again, so that no key comes twice.
        if entry.generation > 0 {
            self.free.push(index);
        } else {
            self.used_up += 1;
        }
        Some(&mut entry.value)
    }

    /// Returns whether there is a thing of that key.
    #[inline]
    pub(crate) fn contains_key(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    /// Returns the thing of that key, if there is one.
    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let entry = self.entries.get(index_of(key) as usize)?;
        (entry.generation == generation_of(key)).then_some(&entry.value)
    }

    /// Returns how many things there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len() - self.used_up
    }

    /// Returns whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all, in the order of their entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        let used = (0..).zip(&self.entries).filter(|(_, entry)| entry.is_used());
        used.map(|(index, entry)| (key_of(index, entry.generation), &entry.value))
    }

    /// Returns all, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        let used = (0..).zip(&mut self.entries).filter(|(_, entry)| entry.is_used());
        used.map(|(index, entry)| (key_of(index, entry.generation), &mut entry.value))
    }

    /// Returns all without their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns all without their keys, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }
}

impl<K: Key, V> Index<K> for Arena<K, V> {
    type Output = V;
    /// The thing of that key. Where it is gone, debug builds panic, and others may return what has
    /// its entry now.
    #[inline]
    fn index(&self, key: K) -> &V {
        debug_assert!(self.contains_key(key), "{key:?} is gone");
        &self.entries[index_of(key) as usize].value
    }
}

impl<K: Key, V> IndexMut<K> for Arena<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        debug_assert!(self.contains_key(key), "{key:?} is gone");
        &mut self.entries[index_of(key) as usize].value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn key_that_is_gone_names_nothing_even_if_its_slot_is_used_again() {
        let mut arena = Arena::<RequestId, u32>::default();
        assert!(!arena.contains_key(RequestId::default()), "a key of nothing");
        let [a, b] = [7, 8].map(|value| arena.insert(value));
        assert_eq!(arena.remove(a), Some(&mut 7));
        assert_eq!(arena.remove(a), None);
        assert_eq!((arena.get(a), arena.len()), (None, 1));
        let c = arena.insert_with_key(|c| {
            assert_ne!(c, a);
            9
        });
        assert_eq!(index_of(c), index_of(a), "the slot that was freed last is used first");
        assert_eq!((arena[b], arena[c], arena.get(a)), (8, 9, None));
        assert!(arena.iter().eq([(c, &9), (b, &8)]));
    }

    #[test]
    fn slot_is_used_again_with_what_is_left_in_it() {
        let mut arena = Arena::<RequestId, u32>::default();
        let (a, value) = arena.reuse(|| 0);
        *value = 7;
        arena.remove(a);
        let (b, left) = arena.reuse(|| 0);
        assert_eq!((*left, b == a, arena.contains_key(a)), (7, false, false));
        let (_, blank) = arena.reuse(|| 0);
        assert_eq!((*blank, arena.len()), (0, 2));
    }

    #[test]
    #[should_panic(expected = "is gone")]
    fn debug_builds_find_a_key_that_is_gone() {
        let mut arena = Arena::<RequestId, u32>::default();
        let [a, _] = [7, 8].map(|value| arena.insert(value));
        arena.remove(a);
        let _ = arena[a];
    }

    #[test]
    fn no_key_comes_twice() {
        let mut arena = Arena::<RequestId, ()>::default();
        arena.insert(());
        arena.entries[0].generation = u32::MAX;
        let last: RequestId = key_of(0, u32::MAX);
        assert!(arena.remove(last).is_some());
        let next = arena.insert(());
        assert_ne!(index_of(next), 0, "all keys of that slot were used");
        assert_eq!((arena.len(), arena.iter().count()), (1, 1));
    }

    proptest! {
        /// The model is a map that never forgets a key.
        #[test]
        fn any_arena_is_a_map(
            steps in proptest::collection::vec(any::<(bool, prop::sample::Index)>(), 0..200),
        ) {
            let (mut arena, mut map) = (Arena::<RequestId, usize>::default(), BTreeMap::new());
            let mut gone = vec![];
            for (value, (adds, pick)) in steps.into_iter().enumerate() {
                if adds || map.is_empty() {
                    let key = arena.insert(value);
                    prop_assert_eq!(map.insert(key, value), None, "a key comes once");
                } else {
                    let key = *map.keys().nth(pick.index(map.len())).expect("one of them");
                    prop_assert_eq!(arena.remove(key).copied(), map.remove(&key));
                    gone.push(key);
                }
                prop_assert_eq!((arena.len(), arena.is_empty()), (map.len(), map.is_empty()));
                let all: BTreeMap<_, _> = arena.iter().map(|(key, value)| (key, *value)).collect();
                prop_assert_eq!(&all, &map);
                prop_assert!(map.iter().all(|(&key, value)| arena[key] == *value));
                prop_assert!(gone.iter().all(|&key| arena.get(key).is_none()));
            }
        }
    }
}
