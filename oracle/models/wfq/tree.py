"""The tree of tags (sections 3 and 4).

    group ── group ── own ── class ── context ── requests
          └─ group

A group, an own node and a context are a Node, which has a start; a group and a class are a Parent
of nodes, which has a v. An own node is active while any of its classes has an active context.
"""

from collections import deque

from red_black_tree import RedBlackTree

VTIME = 32  # a unit of charge at weight 1 advances a start by 2^32
ENTRIES = 8  # of a parent's past


class Clock:
    """The numbers of keys, one sequence for the whole tree, and how long a place is kept."""

    def __init__(self, grace, told):
        self.grace, self.made = grace, 0
        self.told = told  # of a node that becomes active

    def next(self):
        self.made += 1
        return self.made


class Parent:
    """Active children by key, and v with a little of its past."""

    def __init__(self, clock):
        self.clock = clock
        self.active = []
        self.v = 0
        self.past = deque(maxlen=ENTRIES)  # (when, v), the newest last

    def by_key(self):
        return sorted(self.active, key=lambda child: child.key)

    def entry(self, now):
        """v as it was `grace` ago: where one starts that becomes active now."""
        if not self.clock.grace or not self.past:
            return self.v
        old = [v for when, v in self.past if when + self.clock.grace <= now]
        return old[-1] if old else self.past[0][1]

    def serve(self, now):
        """v follows the least start; comes before the served child's advances."""
        self.v = max(self.v, min(child.start for child in self.active))
        grace = self.clock.grace
        if grace and (not self.past or now - self.past[-1][0] >= grace // 4):
            self.past.append((now, self.v))


class Node:
    """A child of `parent`; `up` is the node whose part the parent is, none below the root."""

    def __init__(self, name, parent, up, weight):
        self.name = name
        self.parent, self.up, self.weight = parent, up, weight
        self.start, self.key = 0, None
        self.greatest = 0  # of its advances, which is only checked

    def has_work(self):
        raise NotImplementedError

    def is_active(self):
        return self in self.parent.active

    def enter(self, now):
        """It has work; what is above it becomes active too."""
        node = self
        while node and not node.is_active():
            node.start = max(node.start, node.parent.entry(now))
            node.key = node.start, node.parent.clock.next()
            node.parent.active.append(node)
            node.parent.clock.told(node)
            node = node.up

    def leave(self):
        """It ran empty without being served; what is above it may be so, too."""
        node = self
        while node and node.is_active() and not node.has_work():
            node.parent.active.remove(node)
            node = node.up

    def path(self):
        """Itself and what is above it, below the root."""
        return [self] + (self.up.path() if self.up else [])

    def advance(self, charge):
        return -(-(charge << VTIME) // self.weight)

    def rekey(self):
        """Its start was changed while it may be active; its number stays."""
        if self.is_active():
            self.key = self.start, self.key[1]

    def pay(self, charge, now):
        """A request of it is dispatched, which costs that at each level."""
        node = self
        while node:
            node.parent.serve(now)
            advance = node.advance(charge)
            node.start += advance
            node.greatest = max(node.greatest, advance)
            if node.has_work():
                node.key = node.start, node.parent.clock.next()
            else:
                node.parent.active.remove(node)
            node = node.up


class Context(Node):
    """The requests of one I/O context in one class and in one group."""

    def __init__(self, own, task, number):
        super().__init__(f"task {task}", own.classes[number], own, None)
        self.own, self.number = own, number
        self.requests = deque()  # by arrival, requeued ones before all
        self.by_sector = RedBlackTree(lambda rq: rq.start)
        self.position = 0  # where its last request started, but for requeued ones

    def has_work(self):
        return bool(self.requests)

    def head(self, sweeps):
        """Its next request: the oldest, or the next upwards; a requeued one before both."""
        oldest = self.requests[0]
        if oldest.paid or not sweeps:
            return oldest
        upwards = sorted(self.requests, key=lambda rq: rq.start)
        return next((rq for rq in upwards if rq.start >= self.position), upwards[0])


class Own(Node):
    """The requests of a group itself, beside its child groups."""

    def __init__(self, group, clock, weight):
        above = group if group.parent else None
        super().__init__(f"own {group.name}", group, above, weight)
        self.classes = [Parent(clock) for _ in range(3)]
        self.since = [None] * 3  # when the class began to wait behind a higher one
        self.passed = [0] * 3  # charged to higher classes since it has aged, and not used yet
        self.contexts = {}  # by task and class

    def has_work(self):
        return any(one.active for one in self.classes)

    def groups(self):
        """Its group and those above it, the root too."""
        group, found = self.parent, []
        while group:
            found.append(group)
            group = group.parent
        return found

    def look(self, now):
        """After each event: which classes wait behind a higher one."""
        for number in (1, 2):
            above = any(one.active for one in self.classes[:number])
            if not (above and self.classes[number].active):
                self.since[number], self.passed[number] = None, 0
            elif self.since[number] is None:
                self.since[number] = now


class Group(Node, Parent):
    """A group is both; the root is only a parent."""

    def __init__(self, clock, path, above, weight, leaf_weight):
        Parent.__init__(self, clock)
        Node.__init__(self, path, above, above if above and above.parent else None, weight)
        self.own = Own(self, clock, leaf_weight)

    def has_work(self):
        return bool(self.active)
