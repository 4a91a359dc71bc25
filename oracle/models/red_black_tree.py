"""A red-black tree, for decisions that depend on its shape: which of several is met first.

Insertion and erasure are the textbook's (Cormen et al.); an erased node with two children is
replaced by its in-order successor.
"""


class Node:
    __slots__ = ("item", "left", "right", "parent", "red")

    def __init__(self, item, nil):
        self.item, self.red = item, True
        self.left = self.right = self.parent = nil


class RedBlackTree:
    """The textbook's. `position(item)` is read anew at every comparison."""

    def __init__(self, position):
        self.position = position
        self.nil = Node(None, None)
        self.nil.left = self.nil.right = self.nil.parent = self.nil
        self.nil.red = False
        self.root = self.nil

    def insert(self, item, unique=False):
        """Puts it right of its equals; where `unique`, an equal keeps it off: None."""
        at, above, left = self.root, self.nil, False
        new = self.position(item)
        while at is not self.nil:
            here = self.position(at.item)
            if unique and here == new:
                return None
            above, left = at, new < here
            at = at.left if left else at.right
        node = Node(item, self.nil)
        node.parent = above
        if above is self.nil:
            self.root = node
        elif left:
            above.left = node
        else:
            above.right = node
        self._mend_insertion(node)
        return node

    def erase(self, node):
        nil = self.nil
        lost_red = node.red
        if node.left is nil:
            gap = node.right
            self._transplant(node, gap)
        elif node.right is nil:
            gap = node.left
            self._transplant(node, gap)
        else:
            heir = self._leftmost(node.right)
            lost_red, gap = heir.red, heir.right
            if heir.parent is node:
                gap.parent = heir
            else:
                self._transplant(heir, gap)
                heir.right = node.right
                heir.right.parent = heir
            self._transplant(node, heir)
            heir.left = node.left
            heir.left.parent = heir
            heir.red = node.red
        if not lost_red:
            self._mend_erasure(gap)
        nil.parent = nil

    def next(self, node):
        if node.right is not self.nil:
            return self._leftmost(node.right)
        return self._climb(node, lambda up, at: at is up.right)

    def prev(self, node):
        if node.left is not self.nil:
            at = node.left
            while at.right is not self.nil:
                at = at.right
            return at
        return self._climb(node, lambda up, at: at is up.left)

    def first(self):
        return None if self.root is self.nil else self._leftmost(self.root)

    def find(self, position):
        """The first node met on the way down that is there, or None; and the last node met."""
        at, last = self.root, None
        while at is not self.nil:
            last, here = at, self.position(at.item)
            if here == position:
                return at, at
            at = at.right if position > here else at.left
        return None, last

    def _climb(self, node, on_that_side):
        at, up = node, node.parent
        while up is not self.nil and on_that_side(up, at):
            at, up = up, up.parent
        return None if up is self.nil else up

    def _leftmost(self, node):
        while node.left is not self.nil:
            node = node.left
        return node

    def _transplant(self, old, new):
        if old.parent is self.nil:
            self.root = new
        elif old is old.parent.left:
            old.parent.left = new
        else:
            old.parent.right = new
        new.parent = old.parent

    def _rotate(self, node, left):
        up = node.right if left else node.left
        inner = up.left if left else up.right
        if left:
            node.right = inner
        else:
            node.left = inner
        if inner is not self.nil:
            inner.parent = node
        self._transplant(node, up)
        if left:
            up.left = node
        else:
            up.right = node
        node.parent = up

    def _mend_insertion(self, node):
        while node.parent.red:
            grand = node.parent.parent
            on_left = node.parent is grand.left
            uncle = grand.right if on_left else grand.left
            if uncle.red:
                node.parent.red = uncle.red = False
                grand.red = True
                node = grand
                continue
            if node is (node.parent.right if on_left else node.parent.left):
                node = node.parent
                self._rotate(node, on_left)
            node.parent.red = False
            grand.red = True
            self._rotate(grand, not on_left)
        self.root.red = False

    def _mend_erasure(self, node):
        while node is not self.root and not node.red:
            on_left = node is node.parent.left
            sibling = node.parent.right if on_left else node.parent.left
            if sibling.red:
                sibling.red, node.parent.red = False, True
                self._rotate(node.parent, on_left)
                sibling = node.parent.right if on_left else node.parent.left
            near, far = ((sibling.left, sibling.right) if on_left
                         else (sibling.right, sibling.left))
            if not near.red and not far.red:
                sibling.red = True
                node = node.parent
                continue
            if not far.red:
                near.red, sibling.red = False, True
                self._rotate(sibling, not on_left)
                sibling = node.parent.right if on_left else node.parent.left
                far = sibling.right if on_left else sibling.left
            sibling.red, node.parent.red, far.red = node.parent.red, False, False
            self._rotate(node.parent, on_left)
            node = self.root
        node.red = False
