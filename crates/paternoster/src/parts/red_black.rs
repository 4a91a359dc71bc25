//! A textbook red-black tree threaded through a table.
//!
//! Linux's trees are textbook ones too, and a few of its decisions depend on their shape: of
//! several equal keys the one met first on the way down is taken. So the shape is part of the
//! promise, and a balanced tree of another kind would not do.
//!
//! ```text
//!             40b                 b: black, r: red
//!           /     \               a red node has black children;
//!        20r       60b            every way down meets as many black nodes
//!       /   \     /   \
//!    10b     30b  –    70r        –: the empty node, which is black and has no children
//! ```
//!
//! The empty node is the first of the table. A link that leads nowhere leads to it, so no link has
//! to be asked whether there is one: its colour is read like any other.

use crate::arena::Slot;

/// The side of a node: smaller keys to the left, equal and greater ones to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Branch {
    Left = 0,
    Right = 1,
}

impl Branch {
    /// The right branch or the left one.
    #[inline]
    pub(crate) const fn right_if(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Left }
    }

    #[inline]
    const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Where a new node belongs: below `parent` on that side, or at the root of an empty tree, where it
/// has no parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) parent: Slot,
    pub(crate) side: Branch,
}

impl Place {
    /// The place in an empty tree.
    pub(crate) const ROOT: Self = Self { parent: Slot::NONE, side: Branch::Left };
}

/// A node's links in a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeLinks {
    /// The slot of its parent, times two; one more if the node is red.
    parent_and_red: u32,
    child: [Slot; 2],
}

impl TreeLinks {
    #[inline]
    fn new(parent: Slot, child: [Slot; 2], red: bool) -> Self {
        let mut links = Self { parent_and_red: u32::from(red), child };
        links.set_parent(parent);
        links
    }

    #[inline]
    pub(crate) fn child(&self, branch: Branch) -> Slot {
        self.child[branch as usize]
    }

    #[inline]
    fn parent(&self) -> Slot {
        Slot::new(self.parent_and_red >> 1)
    }

    #[inline]
    fn is_red(&self) -> bool {
        self.parent_and_red & 1 == 1
    }

    /// On which side `child` is, which is one of its children.
    #[inline]
    fn side_of(&self, child: Slot) -> Branch {
        Branch::right_if(self.child(Branch::Left) != child)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a table has fewer than 2³¹ nodes")]
    fn set_parent(&mut self, parent: Slot) {
        self.parent_and_red = (parent.index() as u32) << 1 | (self.parent_and_red & 1);
    }

    #[inline]
    fn set_red(&mut self, red: bool) {
        self.parent_and_red = self.parent_and_red & !1 | u32::from(red);
    }
}

/// A table of nodes, the first of which is the empty one. It has fewer than 2³¹.
pub(crate) trait Nodes {
    fn links(&self, node: Slot) -> &TreeLinks;
    fn links_mut(&mut self, node: Slot) -> &mut TreeLinks;

    /// The node that follows `node`, which has a right child. A table that knows neighbours need
    /// not go down for it.
    #[inline]
    fn successor(&self, node: Slot) -> Slot {
        Tree::descend(self, self.links(node).child(Branch::Right), Branch::Left)
    }

    /// Whether each node keeps a summary of all that hangs from it.
    const SUMMARIZED: bool = false;

    /// Makes the summary of `node` anew, from itself and its children: whether it has changed.
    #[inline]
    fn summarize(&mut self, _node: Slot) -> bool {
        false
    }

    /// Gives `heir` the summary of `node`, whose place in the tree it has taken.
    #[inline]
    fn inherit_summary(&mut self, _heir: Slot, _node: Slot) {
        debug_assert!(!Self::SUMMARIZED, "a table with summaries says how they are inherited");
    }
}

/// A tree by its root. It knows no keys: the caller finds the place of a new node.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    root: Slot,
}

impl Tree {
    #[inline]
    pub(crate) fn root(&self) -> Slot {
        self.root
    }

    /// The outermost node on that side.
    pub(crate) fn outermost(&self, nodes: &(impl Nodes + ?Sized), branch: Branch) -> Slot {
        if self.root.is_none() { Slot::NONE } else { Self::descend(nodes, self.root, branch) }
    }

    /// The root of the tree that `node` is in.
    pub(crate) fn root_above(nodes: &impl Nodes, node: Slot) -> Slot {
        let mut root = node;
        while nodes.links(root).parent().is_some() {
            root = nodes.links(root).parent();
        }
        root
    }

    /// The neighbour of `node` in order, on that side.
    pub(crate) fn neighbour(nodes: &impl Nodes, node: Slot, branch: Branch) -> Slot {
        let child = nodes.links(node).child(branch);
        if child.is_some() {
            return Self::descend(nodes, child, branch.other());
        }
        let mut node = node;
        loop {
            let parent = nodes.links(node).parent();
            if parent.is_none() || nodes.links(parent).child(branch) != node {
                return parent;
            }
            node = parent;
        }
    }

    #[inline]
    fn descend(nodes: &(impl Nodes + ?Sized), from: Slot, branch: Branch) -> Slot {
        let mut node = from;
        loop {
            let child = nodes.links(node).child(branch);
            if child.is_none() {
                return node;
            }
            node = child;
        }
    }

    /// Returns whether `node` has its place in this tree. One in another tree has not, or is not
    /// that tree's root.
    pub(crate) fn may_hold(&self, nodes: &impl Nodes, node: Slot) -> bool {
        let parent = nodes.links(node).parent();
        if parent.is_none() {
            return self.root == node;
        }
        nodes.links(parent).child.contains(&node)
    }

    /// Returns whether `node` has no neighbours and is not alone in this tree.
    pub(crate) fn may_take(&self, nodes: &impl Nodes, node: Slot) -> bool {
        let TreeLinks { parent_and_red, child } = *nodes.links(node);
        parent_and_red == 0 && child == [Slot::NONE; 2] && self.root != node
    }

    /// Puts `node` at that place, which is free, and restores the balance. Where nodes have
    /// summaries, the caller has updated them on the way down: those of `node` and of all above it
    /// count it already.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn insert_below(
        &mut self,
        nodes: &mut impl Nodes,
        node: Slot,
        Place { parent, side }: Place,
    ) {
        *nodes.links_mut(node) = TreeLinks::new(parent, [Slot::NONE; 2], true);
        if parent.is_none() {
            debug_assert!(self.root.is_none(), "a tree with nodes has a parent for each other");
            self.root = node;
        } else {
            let place = &mut nodes.links_mut(parent).child[side as usize];
            debug_assert!(place.is_none(), "the side is free");
            *place = node;
        }
        self.mend_after_insert(nodes, node, parent);
    }

    /// Makes the summaries anew from `node` on upwards, for as long as they change, and in any case
    /// beyond `past`: a node that has come there from below, if any has.
    #[inline]
    fn summarize_upwards<N: Nodes>(nodes: &mut N, node: Slot, past: Slot) {
        let mut is_past = past.is_none();
        let mut node = node;
        while node.is_some() {
            let changed = nodes.summarize(node);
            if is_past && !changed {
                return;
            }
            is_past |= node == past;
            node = nodes.links(node).parent();
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn mend_after_insert(&mut self, nodes: &mut impl Nodes, node: Slot, parent: Slot) {
        let (mut node, mut parent) = (node, parent);
        loop {
            let links = nodes.links(parent);
            if !links.is_red() {
                break;
            }
            let grandparent = links.parent();
            let links = nodes.links(grandparent);
            let side = links.side_of(parent);
            let (uncle, above) = (links.child(side.other()), links.parent());
            if !nodes.links(uncle).is_red() {
                return self.lift_over(nodes, node, parent, grandparent, side);
            }
            nodes.links_mut(parent).set_red(false);
            nodes.links_mut(uncle).set_red(false);
            nodes.links_mut(grandparent).set_red(true);
            (node, parent) = (grandparent, above);
        }
        if node == self.root {
            nodes.links_mut(node).set_red(false);
        }
    }

    /// The red `node` and its red `parent` come up for the black `grandparent`, which goes down to
    /// the other side.
    fn lift_over(
        &mut self,
        nodes: &mut impl Nodes,
        node: Slot,
        parent: Slot,
        grandparent: Slot,
        side: Branch,
    ) {
        let mut top = parent;
        if nodes.links(parent).child(side.other()) == node {
            self.rotate(nodes, parent, side);
            top = node;
        }
        nodes.links_mut(top).set_red(false);
        nodes.links_mut(grandparent).set_red(true);
        self.rotate(nodes, grandparent, side.other());
    }

    /// Takes `node` out and restores the balance. Its links mean nothing then; debug builds clear
    /// them, for [`may_take`](Self::may_take) and [`may_hold`](Self::may_hold).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn remove<N: Nodes>(&mut self, nodes: &mut N, node: Slot) {
        let links = *nodes.links(node);
        let [left, right] = links.child;
        let has_two = left.is_some() && right.is_some();
        let hole = if has_two {
            self.replace_by_successor(nodes, node, links)
        } else {
            let only = if left.is_none() { right } else { left };
            let parent = links.parent();
            self.hang(nodes, parent, node, only);
            nodes.links_mut(only).set_parent(parent);
            Hole { parent, node: only, lost_black: !links.is_red() }
        };
        if cfg!(debug_assertions) {
            *nodes.links_mut(node) = TreeLinks::default();
        }
        if N::SUMMARIZED {
            let heir = if has_two { nodes.links(left).parent() } else { Slot::NONE };
            Self::summarize_upwards(nodes, hole.parent, heir);
        }
        if hole.lost_black {
            self.mend_after_remove(nodes, hole.parent, hole.node);
        }
    }

    /// The successor of `node`, which has two children, takes its place and colour.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn replace_by_successor(
        &mut self,
        nodes: &mut impl Nodes,
        node: Slot,
        links: TreeLinks,
    ) -> Hole {
        let [left, right] = links.child;
        let successor = nodes.successor(node);
        let before = *nodes.links(successor);
        let moved = before.child(Branch::Right);
        let mut heir = links;
        let parent = if successor == right {
            heir.child = [left, moved];
            successor
        } else {
            let parent = before.parent();
            nodes.links_mut(parent).child[Branch::Left as usize] = moved;
            nodes.links_mut(moved).set_parent(parent);
            nodes.links_mut(right).set_parent(successor);
            parent
        };
        *nodes.links_mut(successor) = heir;
        nodes.links_mut(left).set_parent(successor);
        self.hang(nodes, links.parent(), node, successor);
        Hole { parent, node: moved, lost_black: !before.is_red() }
    }

    /// Every way down through `node`, which may be the empty one, below `parent` lacks a black
    /// node.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn mend_after_remove(&mut self, nodes: &mut impl Nodes, parent: Slot, node: Slot) {
        let (mut parent, mut node) = (parent, node);
        while parent.is_some() && !nodes.links(node).is_red() {
            let links = nodes.links(parent);
            let (side, above) = (links.side_of(node), links.parent());
            // A side that lacks a black node has a sibling.
            let sibling = links.child(side.other());
            let links = nodes.links(sibling);
            if links.is_red() {
                self.bring_black_sibling(nodes, parent, side, sibling);
                continue;
            }
            if links.child.iter().any(|&child| nodes.links(child).is_red()) {
                return self.lend_black(nodes, parent, side, sibling);
            }
            nodes.links_mut(sibling).set_red(true);
            (node, parent) = (parent, above);
        }
        nodes.links_mut(node).set_red(false);
    }

    /// The sibling of a side that lacks a black node is red: a rotation brings a black one.
    #[cold]
    #[inline(never)]
    fn bring_black_sibling(
        &mut self,
        nodes: &mut impl Nodes,
        parent: Slot,
        side: Branch,
        red: Slot,
    ) {
        nodes.links_mut(red).set_red(false);
        nodes.links_mut(parent).set_red(true);
        self.rotate(nodes, parent, side);
    }

    /// The sibling has a red child: rotations bring a black node to the side that lacks one.
    fn lend_black(&mut self, nodes: &mut impl Nodes, parent: Slot, side: Branch, sibling: Slot) {
        let links = nodes.links(sibling);
        let (near, mut far) = (links.child(side), links.child(side.other()));
        let mut top = sibling;
        if !nodes.links(far).is_red() {
            self.rotate(nodes, sibling, side.other());
            (top, far) = (near, sibling);
        }
        // What comes up takes the colour of the parent; both at its sides are black.
        let links = nodes.links_mut(parent);
        let parent_red = links.is_red();
        links.set_red(false);
        nodes.links_mut(top).set_red(parent_red);
        nodes.links_mut(far).set_red(false);
        self.rotate(nodes, parent, side);
    }

    /// `node` goes down on `side`, its child on the other side comes up.
    fn rotate(&mut self, nodes: &mut impl Nodes, node: Slot, side: Branch) {
        let links = nodes.links(node);
        let (rising, parent) = (links.child(side.other()), links.parent());
        let rises = nodes.links_mut(rising);
        let inner = std::mem::replace(&mut rises.child[side as usize], node);
        rises.set_parent(parent);
        let sinks = nodes.links_mut(node);
        sinks.child[side.other() as usize] = inner;
        sinks.set_parent(rising);
        // The parent of the empty node is written, never read.
        nodes.links_mut(inner).set_parent(node);
        self.hang(nodes, parent, node, rising);
        nodes.inherit_summary(rising, node);
        nodes.summarize(node);
    }

    /// Hangs `new` below `parent` in the place of `gone`, or at the root where there is no parent.
    /// The caller sets the parent of `new`.
    #[inline]
    fn hang(&mut self, nodes: &mut impl Nodes, parent: Slot, gone: Slot, new: Slot) {
        if parent.is_none() {
            self.root = new;
        } else {
            let links = nodes.links_mut(parent);
            let side = links.side_of(gone);
            links.child[side as usize] = new;
        }
    }

    /// Walks the whole tree: colours, black heights and parents are as they must be.
    #[cfg(test)]
    pub(crate) fn check(&self, nodes: &impl Nodes) {
        let empty = nodes.links(Slot::NONE);
        assert_eq!((empty.child, empty.is_red()), ([Slot::NONE; 2], false), "the empty node");
        if self.root.is_some() {
            assert!(!nodes.links(self.root).is_red(), "the root is black");
            assert!(nodes.links(self.root).parent().is_none(), "the root has no parent");
            Self::check_below(nodes, self.root);
        }
    }

    #[cfg(test)]
    fn check_below(nodes: &impl Nodes, node: Slot) -> u32 {
        let links = nodes.links(node);
        let heights = links.child.map(|child| {
            if child.is_none() {
                return 0;
            }
            assert_eq!(nodes.links(child).parent(), node, "a child knows its parent");
            let reds = [links, nodes.links(child)].map(TreeLinks::is_red);
            assert_ne!(reds, [true; 2], "a red node has black children");
            Self::check_below(nodes, child)
        });
        assert_eq!(heights[0], heights[1], "every way down has as many black nodes");
        heights[0] + u32::from(!links.is_red())
    }
}

/// Where a node is missing after a removal: below `parent`, where `node` is now.
struct Hole {
    parent: Slot,
    node: Slot,
    /// Whether it was a black one.
    lost_black: bool,
}

#[cfg(test)]
mod tests;
