//! Doubly linked lists through an arena.
//!
//! ```text
//!   List { first ─┐          last ─┐ }
//!                 ▼                ▼
//!   arena:   [ … links ⇄ links ⇄ links … ]     the links live in the things themselves
//! ```

use std::marker::PhantomData;

use slotmap::Key;

/// The links of a thing in a [`List`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListLinks<K> {
    pub(crate) before: Option<K>,
    pub(crate) after: Option<K>,
}

impl<K> Default for ListLinks<K> {
    fn default() -> Self {
        Self { before: None, after: None }
    }
}

/// An arena whose things can be in lists that `L` names.
pub(crate) trait Linked<K, L> {
    fn list_links(&self, key: K) -> &ListLinks<K>;
    fn list_links_mut(&mut self, key: K) -> &mut ListLinks<K>;
}

/// A doubly linked list. `L` says which links of the things it uses, so that a thing can be in one
/// list of each kind.
#[derive(Debug)]
pub(crate) struct List<K, L> {
    first: Option<K>,
    last: Option<K>,
    kind: PhantomData<L>,
}

impl<K, L> Default for List<K, L> {
    fn default() -> Self {
        Self { first: None, last: None, kind: PhantomData }
    }
}

impl<K: Key, L> List<K, L> {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn first(&self) -> Option<K> {
        self.first
    }

    pub(crate) fn last(&self) -> Option<K> {
        self.last
    }

    /// Returns whether `key` has its place in this list. One in another list has not, or that list
    /// has both its neighbours.
    pub(crate) fn may_hold(&self, arena: &impl Linked<K, L>, key: K) -> bool {
        let &ListLinks { before, after } = arena.list_links(key);
        let has_first = match before {
            Some(before) => arena.list_links(before).after == Some(key),
            None => self.first == Some(key),
        };
        let has_last = match after {
            Some(after) => arena.list_links(after).before == Some(key),
            None => self.last == Some(key),
        };
        has_first && has_last
    }

    /// Returns whether `key` has no neighbours and is not alone in this list.
    pub(crate) fn may_take(&self, arena: &impl Linked<K, L>, key: K) -> bool {
        let links = arena.list_links(key);
        links.before.is_none() && links.after.is_none() && self.first != Some(key)
    }

    pub(crate) fn push_back(&mut self, arena: &mut impl Linked<K, L>, key: K) {
        *arena.list_links_mut(key) = ListLinks { before: self.last, after: None };
        match self.last {
            Some(last) => arena.list_links_mut(last).after = Some(key),
            None => self.first = Some(key),
        }
        self.last = Some(key);
    }

    pub(crate) fn push_front(&mut self, arena: &mut impl Linked<K, L>, key: K) {
        *arena.list_links_mut(key) = ListLinks { before: None, after: self.first };
        match self.first {
            Some(first) => arena.list_links_mut(first).before = Some(key),
            None => self.last = Some(key),
        }
        self.first = Some(key);
    }

    /// Removes `absorbed` and puts `key` in its place.
    pub(crate) fn replace(&mut self, arena: &mut impl Linked<K, L>, absorbed: K, key: K) {
        let links = std::mem::take(arena.list_links_mut(absorbed));
        *arena.list_links_mut(key) = links;
        match links.before {
            Some(before) => arena.list_links_mut(before).after = Some(key),
            None => self.first = Some(key),
        }
        match links.after {
            Some(after) => arena.list_links_mut(after).before = Some(key),
            None => self.last = Some(key),
        }
    }

    pub(crate) fn remove(&mut self, arena: &mut impl Linked<K, L>, key: K) {
        let links = std::mem::take(arena.list_links_mut(key));
        match links.before {
            Some(before) => arena.list_links_mut(before).after = links.after,
            None => self.first = links.after,
        }
        match links.after {
            Some(after) => arena.list_links_mut(after).before = links.before,
            None => self.last = links.before,
        }
    }

    pub(crate) fn pop_front(&mut self, arena: &mut impl Linked<K, L>) -> Option<K> {
        let first = self.first?;
        self.remove(arena, first);
        Some(first)
    }

    /// The one before `key`.
    pub(crate) fn before(arena: &impl Linked<K, L>, key: K) -> Option<K> {
        arena.list_links(key).before
    }

    /// The one after `key`.
    pub(crate) fn after(arena: &impl Linked<K, L>, key: K) -> Option<K> {
        arena.list_links(key).after
    }
}
