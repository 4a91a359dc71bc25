//! The nodes of trees that have a table of their own, each with a value.

use std::ops::{Index, IndexMut};

use crate::arena::Slot;
use crate::parts::red_black::{Nodes, TreeLinks};

/// Nodes with values. The first is the empty one, and its value means nothing.
#[derive(Debug)]
pub(crate) struct TreeNodes<V> {
    nodes: Vec<Node<V>>,
    /// Those that are in no tree. The one that was freed last is used first.
    free: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Node<V> {
    value: V,
    links: TreeLinks,
}

impl<V> Default for TreeNodes<V> {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new() }
    }
}

impl<V: Copy> TreeNodes<V> {
    /// Makes a node with that value.
    #[inline]
    pub(crate) fn add(&mut self, value: V) -> Slot {
        let node = Node { value, links: TreeLinks::default() };
        let Some(slot) = self.free.pop() else { return self.append(node) };
        self.nodes[slot.index()] = node;
        slot
    }

    #[cold]
    fn append(&mut self, node: Node<V>) -> Slot {
        if self.nodes.is_empty() {
            self.nodes.push(node);
        }
        let index = u32::try_from(self.nodes.len()).ok().filter(|&index| index < 1 << 31);
        self.nodes.push(node);
        Slot::new(index.expect("a table has fewer than 2³¹ nodes"))
    }

    /// Frees a node, which is in no tree any more.
    #[inline]
    pub(crate) fn free(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    /// The values of all nodes, and some that mean nothing.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.nodes.iter_mut().map(|node| &mut node.value)
    }
}

impl<V> Index<Slot> for TreeNodes<V> {
    type Output = V;
    #[inline]
    fn index(&self, slot: Slot) -> &V {
        &self.nodes[slot.index()].value
    }
}

impl<V> IndexMut<Slot> for TreeNodes<V> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut V {
        &mut self.nodes[slot.index()].value
    }
}

impl<V> Nodes for TreeNodes<V> {
    #[inline]
    fn links(&self, slot: Slot) -> &TreeLinks {
        &self.nodes[slot.index()].links
    }
    #[inline]
    fn links_mut(&mut self, slot: Slot) -> &mut TreeLinks {
        &mut self.nodes[slot.index()].links
    }
}
