//! A textbook red-black tree threaded through an arena.
//!
//! Linux's trees are textbook ones too, and a few of its decisions depend on their shape: of
//! several equal keys the one met first on the way down is taken. So the shape is part of the
//! promise, and a balanced tree of another kind would not do.
//!
//! ```text
//!             40b                 b: black, r: red
//!           /     \               a red node has black children;
//!        20r       60b            every way down meets as many black nodes
//!       /   \         \
//!    10b     30b       70r
//! ```

use std::fmt::Debug;

/// The side of a node: smaller keys to the left, equal and greater ones to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branch {
    Left,
    Right,
}

impl Branch {
    const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// A thing's place in a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeLinks<K> {
    parent: Option<K>,
    child: [Option<K>; 2],
    red: bool,
}

impl<K> Default for TreeLinks<K> {
    fn default() -> Self {
        Self { parent: None, child: [None, None], red: false }
    }
}

impl<K: Copy> TreeLinks<K> {
    #[inline]
    pub(crate) fn child(&self, branch: Branch) -> Option<K> {
        self.child[branch as usize]
    }
}

/// An arena whose things can be in a tree.
pub(crate) trait Nodes<K> {
    fn links(&self, key: K) -> &TreeLinks<K>;
    fn links_mut(&mut self, key: K) -> &mut TreeLinks<K>;

    /// Whether each thing keeps a summary of all that hangs from it.
    const SUMMARIZED: bool = false;

    /// Makes the summary of `key` anew, from itself and its children: whether it has changed.
    #[inline]
    fn summarize(&mut self, _key: K) -> bool {
        false
    }
}

/// A tree by its root. It knows no keys: who inserts has looked for the place.
#[derive(Debug)]
pub(crate) struct Tree<K> {
    root: Option<K>,
}

impl<K> Default for Tree<K> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<K: Copy + Eq + Debug> Tree<K> {
    pub(crate) fn root(&self) -> Option<K> {
        self.root
    }

    pub(crate) fn child(nodes: &impl Nodes<K>, node: K, branch: Branch) -> Option<K> {
        nodes.links(node).child(branch)
    }

    /// The outermost node on that side.
    pub(crate) fn outermost(&self, nodes: &impl Nodes<K>, branch: Branch) -> Option<K> {
        self.root.map(|root| Self::descend(nodes, root, branch))
    }

    /// The root of the tree that `node` is in.
    pub(crate) fn root_above(nodes: &impl Nodes<K>, node: K) -> K {
        std::iter::successors(Some(node), |&node| nodes.links(node).parent)
            .last()
            .expect("at least the node itself")
    }

    /// The neighbour of `node` in order, on that side.
    pub(crate) fn neighbour(nodes: &impl Nodes<K>, node: K, branch: Branch) -> Option<K> {
        if let Some(child) = Self::child(nodes, node, branch) {
            return Some(Self::descend(nodes, child, branch.other()));
        }
        let mut node = node;
        loop {
            let parent = nodes.links(node).parent?;
            if Self::child(nodes, parent, branch) != Some(node) {
                return Some(parent);
            }
            node = parent;
        }
    }

    fn descend(nodes: &impl Nodes<K>, from: K, branch: Branch) -> K {
        let mut node = from;
        while let Some(child) = Self::child(nodes, node, branch) {
            node = child;
        }
        node
    }

    /// Returns whether `node` has its place in this tree. One in another tree has not, or is not
    /// that tree's root.
    pub(crate) fn may_hold(&self, nodes: &impl Nodes<K>, node: K) -> bool {
        match nodes.links(node).parent {
            Some(parent) => nodes.links(parent).child.contains(&Some(node)),
            None => self.root == Some(node),
        }
    }

    /// Returns whether `node` has no neighbours and is not alone in this tree.
    pub(crate) fn may_take(&self, nodes: &impl Nodes<K>, node: K) -> bool {
        let links = nodes.links(node);
        links.parent.is_none() && links.child == [None, None] && self.root != Some(node)
    }

    /// Puts `node` below `parent` on the free `side` (or at the root of an empty tree) and
    /// restores the balance.
    pub(crate) fn insert_below(
        &mut self,
        nodes: &mut impl Nodes<K>,
        node: K,
        below: Option<(K, Branch)>,
    ) {
        let parent = below.map(|(parent, _)| parent);
        *nodes.links_mut(node) = TreeLinks { parent, child: [None, None], red: true };
        match below {
            None => self.root = Some(node),
            Some((parent, branch)) => {
                let slot = &mut nodes.links_mut(parent).child[branch as usize];
                debug_assert!(slot.is_none(), "the side is free");
                *slot = Some(node);
            }
        }
        Self::summarize_inserted(nodes, node, parent);
        self.mend_after_insert(nodes, node);
    }

    /// `node` was put below `parent`: makes the summaries anew of all above it that change.
    #[inline]
    fn summarize_inserted<N: Nodes<K>>(nodes: &mut N, node: K, parent: Option<K>) {
        if N::SUMMARIZED {
            nodes.summarize(node);
            Self::summarize_upwards(nodes, parent, None);
        }
    }

    /// Makes the summaries anew from `node` on upwards, for as long as they change, and in any case
    /// beyond `past`: a node that has come there from below.
    #[inline]
    fn summarize_upwards<N: Nodes<K>>(nodes: &mut N, node: Option<K>, past: Option<K>) {
        let mut is_past = past.is_none();
        let mut node = node;
        while let Some(here) = node {
            let changed = nodes.summarize(here);
            if is_past && !changed {
                return;
            }
            is_past |= Some(here) == past;
            node = nodes.links(here).parent;
        }
    }

    fn mend_after_insert(&mut self, nodes: &mut impl Nodes<K>, inserted: K) {
        let mut node = inserted;
        while let Some(parent) = nodes.links(node).parent {
            if !nodes.links(parent).red {
                return;
            }
            let grandparent = nodes.links(parent).parent.expect("a red node is never the root");
            let side = Self::side_of(nodes, parent, grandparent);
            let uncle = Self::child(nodes, grandparent, side.other());
            if let Some(uncle) = uncle.filter(|&uncle| nodes.links(uncle).red) {
                nodes.links_mut(parent).red = false;
                nodes.links_mut(uncle).red = false;
                nodes.links_mut(grandparent).red = true;
                node = grandparent;
                continue;
            }
            let mut top = parent;
            if Self::child(nodes, parent, side.other()) == Some(node) {
                self.rotate(nodes, parent, side);
                top = node;
            }
            nodes.links_mut(top).red = false;
            nodes.links_mut(grandparent).red = true;
            self.rotate(nodes, grandparent, side.other());
            return;
        }
        nodes.links_mut(node).red = false;
    }

    /// Takes `node` out and restores the balance.
    pub(crate) fn remove<N: Nodes<K>>(&mut self, nodes: &mut N, node: K) {
        let TreeLinks { parent, child: [left, right], red } = *nodes.links(node);
        let mut heir = None;
        let (hole, lost_black) = match (left, right) {
            (None, only) | (only, None) => {
                self.put_in_place(nodes, parent, node, only);
                ((parent, only), !red)
            }
            (Some(left), Some(right)) => {
                let replaced = self.replace_by_successor(nodes, node, left, right);
                heir = nodes.links(left).parent;
                replaced
            }
        };
        *nodes.links_mut(node) = TreeLinks::default();
        if N::SUMMARIZED {
            Self::summarize_upwards(nodes, hole.0, heir);
        }
        if lost_black {
            self.mend_after_remove(nodes, hole.0, hole.1);
        }
    }

    /// The successor of `node` takes its place and colour. Where a node is missing now, and
    /// whether it was a black one.
    fn replace_by_successor(
        &mut self,
        nodes: &mut impl Nodes<K>,
        node: K,
        left: K,
        right: K,
    ) -> ((Option<K>, Option<K>), bool) {
        let TreeLinks { parent, red, .. } = *nodes.links(node);
        let successor = Self::descend(nodes, right, Branch::Left);
        let TreeLinks { parent: above, child: [_, moved], red: successor_red } =
            *nodes.links(successor);
        let hole_parent = if successor == right {
            successor
        } else {
            let above = above.expect("below the removed node");
            self.put_in_place(nodes, Some(above), successor, moved);
            nodes.links_mut(successor).child[Branch::Right as usize] = Some(right);
            nodes.links_mut(right).parent = Some(successor);
            above
        };
        self.put_in_place(nodes, parent, node, Some(successor));
        let links = nodes.links_mut(successor);
        links.child[Branch::Left as usize] = Some(left);
        links.red = red;
        nodes.links_mut(left).parent = Some(successor);
        ((Some(hole_parent), moved), !successor_red)
    }

    /// Every way down through `node` (or the gap) below `parent` lacks a black node.
    fn mend_after_remove(&mut self, nodes: &mut impl Nodes<K>, parent: Option<K>, node: Option<K>) {
        let (mut parent, mut node) = (parent, node);
        while let Some(above) = parent {
            if node.is_some_and(|node| nodes.links(node).red) {
                break;
            }
            let side = if Self::child(nodes, above, Branch::Left) == node {
                Branch::Left
            } else {
                Branch::Right
            };
            let sibling = self.black_sibling(nodes, above, side);
            let near = Self::child(nodes, sibling, side);
            let far = Self::child(nodes, sibling, side.other());
            let is_red = |child: Option<K>| child.is_some_and(|child| nodes.links(child).red);
            let far_red = is_red(far);
            if !is_red(near) && !far_red {
                nodes.links_mut(sibling).red = true;
                node = Some(above);
                parent = nodes.links(above).parent;
                continue;
            }
            self.lend_black(nodes, above, side, sibling, far_red);
            return;
        }
        if let Some(node) = node {
            nodes.links_mut(node).red = false;
        }
    }

    /// The sibling on the other side of `above`; where it is red, a rotation brings a black one.
    fn black_sibling(&mut self, nodes: &mut impl Nodes<K>, above: K, side: Branch) -> K {
        const HAS_SIBLING: &str = "a side that lacks a black node has a sibling";
        let sibling = Self::child(nodes, above, side.other()).expect(HAS_SIBLING);
        if !nodes.links(sibling).red {
            return sibling;
        }
        nodes.links_mut(sibling).red = false;
        nodes.links_mut(above).red = true;
        self.rotate(nodes, above, side);
        Self::child(nodes, above, side.other()).expect(HAS_SIBLING)
    }

    /// The sibling has a red child: rotations bring a black node to the side that lacks one.
    fn lend_black(
        &mut self,
        nodes: &mut impl Nodes<K>,
        above: K,
        side: Branch,
        sibling: K,
        far_red: bool,
    ) {
        const HAS_CHILD: &str = "the sibling has a red child";
        let mut top = sibling;
        if !far_red {
            let near = Self::child(nodes, sibling, side).expect(HAS_CHILD);
            nodes.links_mut(near).red = false;
            nodes.links_mut(sibling).red = true;
            self.rotate(nodes, sibling, side.other());
            top = near;
        }
        nodes.links_mut(top).red = nodes.links(above).red;
        nodes.links_mut(above).red = false;
        let far = Self::child(nodes, top, side.other()).expect(HAS_CHILD);
        nodes.links_mut(far).red = false;
        self.rotate(nodes, above, side);
    }

    fn side_of(nodes: &impl Nodes<K>, node: K, parent: K) -> Branch {
        if Self::child(nodes, parent, Branch::Left) == Some(node) {
            Branch::Left
        } else {
            Branch::Right
        }
    }

    /// `node` goes down on `side`, its child on the other side comes up.
    fn rotate(&mut self, nodes: &mut impl Nodes<K>, node: K, side: Branch) {
        let rising = Self::child(nodes, node, side.other()).expect("there is a child to rise");
        let inner = Self::child(nodes, rising, side);
        let parent = nodes.links(node).parent;
        nodes.links_mut(node).child[side.other() as usize] = inner;
        if let Some(inner) = inner {
            nodes.links_mut(inner).parent = Some(node);
        }
        self.put_in_place(nodes, parent, node, Some(rising));
        nodes.links_mut(rising).child[side as usize] = Some(node);
        nodes.links_mut(node).parent = Some(rising);
        nodes.summarize(node);
        nodes.summarize(rising);
    }

    /// What hangs below `parent` in the place of `gone` (at the root without a parent).
    fn put_in_place(
        &mut self,
        nodes: &mut impl Nodes<K>,
        parent: Option<K>,
        gone: K,
        new: Option<K>,
    ) {
        match parent {
            None => self.root = new,
            Some(parent) => {
                let side = Self::side_of(nodes, gone, parent);
                nodes.links_mut(parent).child[side as usize] = new;
            }
        }
        if let Some(new) = new {
            nodes.links_mut(new).parent = parent;
        }
    }

    /// Walks the whole tree: colours, black heights and parents are as they must be.
    #[cfg(test)]
    pub(crate) fn check(&self, nodes: &impl Nodes<K>) {
        if let Some(root) = self.root {
            assert!(!nodes.links(root).red, "the root is black");
            assert_eq!(nodes.links(root).parent, None, "the root has no parent");
            Self::check_below(nodes, root);
        }
    }

    #[cfg(test)]
    fn check_below(nodes: &impl Nodes<K>, node: K) -> u32 {
        let links = nodes.links(node);
        let heights = links.child.map(|child| {
            let Some(child) = child else { return 0 };
            assert_eq!(nodes.links(child).parent, Some(node), "a child knows its parent");
            assert!(!(links.red && nodes.links(child).red), "a red node has black children");
            Self::check_below(nodes, child)
        });
        assert_eq!(heights[0], heights[1], "every way down has as many black nodes");
        heights[0] + u32::from(!links.red)
    }
}

#[cfg(test)]
mod tests;
