"""The seam: who is on which tree, how it is placed and charged, and how the next is found.

`Hierarchy` has what all fillings share. Those that order queues by time are here: v4.20's and
that of 2.6.35 to 2.6.37. The variant's two are in by_vdisktime.py.
"""
from objects import (ASYNC, BE, CLASS_NAMES, IDLE, NOIDLE, RT, SYNC, TYPE_NAMES, ServiceTree,
                     Workload)

VF_SHIFT = 12
WHOLE = 1 << VF_SHIFT                       # a fraction of 1
DEFAULT_WEIGHT = 500


def scale(amount, weight):
    """How far `amount` moves something of that weight (27, 28.3.3)."""
    return (amount << VF_SHIFT) * DEFAULT_WEIGHT // weight


class Hierarchy:
    """Who is on which tree, how it is placed, what it is charged, how the next is found."""

    def __init__(self, cfq):
        self.cfq = cfq

    # A filling says:
    #   place(q, front)           puts q on its tree
    #   lone(q)                   is q alone in its group?
    #   queue_joined(g), queue_left(g)
    #   charge(g, q, amount)
    #   choose()                  the next queue
    #   group_span(g)             the group's part of the target latency
    #   mark(tree)                what the type is chosen by: the lowest mark wins
    #   average_count(g, cls)     how many compete in a class, for the average of 4.2

    def average_count(self, g, cls):
        return g.count_class(cls)

    # 8.2: what all modes share of placing

    def put_on_tree(self, q, tree, key):
        """Says whether the queue was on no tree before."""
        was_on = q.tree is not None
        if was_on:
            q.tree.remove(q)
        tree.insert(key, q)
        q.key, q.tree = key, tree
        return not was_on

    # 11.1, 11.2: the workload of a group, restored, chosen and saved

    def restore(self, g, w):
        now = self.cfq.now
        if g.saved_span:
            w.span_end = now + g.saved_span
            w.type, w.cls = g.saved_type, g.saved_class
        else:
            w.span_end = now - 1

    def save(self, g, w):
        now = self.cfq.now
        if w.span_end > now:
            g.saved_span = w.span_end - now
            g.saved_type, g.saved_class = w.type, w.cls
        else:
            g.saved_span = 0

    def forget_span(self, g):
        """17.2"""
        g.saved_span = 0

    def choose_workload(self, g, w):
        now, was = self.cfq.now, w.cls
        w.cls = RT if g.count_class(RT) else BE if g.count_class(BE) else IDLE
        if w.cls == IDLE:
            w.span_end = now + self.cfq.clock.jiffy
            return
        if w.cls == was and g.tree(w.cls, w.type).count and now <= w.span_end:
            return
        w.type = self.choose_type(g, w.cls)
        self.cfq.needs_idling = False
        span = self.workload_span(g, w)
        w.span_end = now + span
        self.cfq.log("workload", wl=workload_name(w), group=g.path,
                     ns=self.cfq.clock.ns(span))

    def choose_type(self, g, cls):
        filled = [kind for kind in TYPE_NAMES if g.tree(cls, kind).count]
        return min(filled, key=lambda kind: self.mark(g.tree(cls, kind)))

    def workload_span(self, g, w):
        """11.3"""
        cfq, tun = self.cfq, self.cfq.tun
        n = g.tree(w.cls, w.type).count
        everything = max(g.avg[w.cls], g.count_class(w.cls))
        span = self.group_span(g) * n // everything
        if w.type == ASYNC:
            cap = tun.target_latency * g.count_async() // cfq.busy
            span = min(span, cap) * tun.slice_async // tun.slice_sync
        else:
            span = max(span, 2 * tun.slice_idle)
        return max(span, 2 * cfq.clock.jiffy)


def workload_name(w):
    if w.cls == IDLE:
        return "idle"
    return CLASS_NAMES[w.cls] + "/" + TYPE_NAMES[w.type]


# --- groups on one tree of the device: all but entities -----------------------------------

class GroupsOnOneTree(Hierarchy):
    def __init__(self, cfq):
        super().__init__(cfq)
        self.tree = ServiceTree(cfq.now)    # of groups
        self.workload = Workload()          # of the device

    def serving_type(self):
        return self.workload.type

    def lone(self, q):
        return q.group.n_queues == 1

    def queue_joined(self, g):
        """9.2"""
        g.n_queues += 1
        if g.on_tree:
            return
        if self.tree.count:
            g.vtime = self.tree.last_key() + self.group_delay()
        else:
            g.vtime = self.tree.min_vtime
        self.put(g)

    def queue_left(self, g):
        """9.4"""
        g.n_queues -= 1
        if g.n_queues == 0:
            self.pull(g)
            g.saved_span = 0

    def group_delay(self):
        return self.cfq.group_delay()

    def put(self, g):
        self.tree.insert(g.vtime, g)
        g.on_tree = True

    def pull(self, g):
        self.tree.remove(g)
        g.on_tree = False

    def choose(self):
        """11.1, 11.4"""
        g = self.tree.take_first()
        self.restore(g, self.workload)
        self.choose_workload(g, self.workload)
        if self.cfq.rq_queued == 0:
            return None
        return self.take_queue(g.tree(self.workload.cls, self.workload.type))


# --- queues by time: Linux -----------------------------------------------------------------

class QueuesByTime:
    """8.2"""

    def mark(self, tree):
        return tree.first_key()

    def take_queue(self, tree):
        return tree.first()

    def place(self, q, front):
        moved = self.move(q)
        tree = q.group.tree(q.cls, q.type())
        key = self.cfq.clock.key(self.key(q, tree, front))
        if q.tree is tree and key == q.key:
            return
        if self.put_on_tree(q, tree, key) and (moved or not front):
            self.queue_joined(q.group)

    def move(self, q):
        """Says whether the queue went to another group."""
        return False

    def key(self, q, tree, front):
        now, second = self.cfq.now, self.cfq.clock.second
        if q.cls == IDLE:
            return self.idle_class_key(tree)
        if front:
            return (tree.first_key() if tree.count else now) - second
        resid, q.resid = q.resid, 0
        return now + (q.group.n_queues - 1) * self.cfq.offset_of_one(q) - resid

    def idle_class_key(self, tree):
        """Reading K1"""
        delay = self.cfq.clock.second // 5
        if self.cfq.read["idle-key"] == "last" and tree.count:
            return tree.last_key() + delay
        return self.cfq.now + delay


class LeafWeight(QueuesByTime, GroupsOnOneTree):
    """Linux v4.20: groups by vdisktime scaled with a compounded fraction."""

    def group_span(self, g):
        return (self.cfq.tun.target_latency * g.frac) >> VF_SHIFT

    def put(self, g):
        """9.3"""
        super().put(g)
        was_idle = g.n_active == 0
        g.n_active += 1
        g.child_weight += g.leaf_weight
        frac = WHOLE * g.leaf_weight // g.child_weight
        x = g
        while x.parent:
            p = x.parent
            if was_idle:
                was_idle = p.n_active == 0
                p.n_active += 1
                p.child_weight += x.weight
            frac = frac * x.weight // p.child_weight
            x = p
        g.frac = max(frac, 1)

    def pull(self, g):
        g.n_active -= 1
        g.child_weight -= g.leaf_weight
        x = g
        while x.n_active == 0:
            x.frac = 0
            if x.parent is None:
                break
            x.parent.n_active -= 1
            x.parent.child_weight -= x.weight
            x = x.parent
        super().pull(g)

    def charge(self, g, q, amount):
        """10.2"""
        frac = g.frac
        self.pull(g)
        g.vtime += (amount << 24) // frac
        self.put(g)
        self.save(g, self.workload)


# --- groups by their own weights: 2.6.35 to 2.6.37, and flat ------------------------------

class GroupsByWeight(GroupsOnOneTree):
    """27: the root and all groups side by side."""

    def group_span(self, g):
        total = sum(x.weight for x in self.tree.entities)
        return self.cfq.tun.target_latency * g.weight // total

    def charge(self, g, q, amount):
        self.charge_queue(q, amount)
        self.pull(g)
        g.vtime += scale(amount, g.weight)
        self.put(g)
        self.save(g, self.workload)

    def charge_queue(self, q, amount):
        """Queues that are ordered by time are charged nothing."""


class SideBySide(QueuesByTime, GroupsByWeight):
    """Linux 2.6.35 to 2.6.37. Without group_isolation, queues that nobody waits for one by one
    share the root."""

    def move(self, q):
        to = self.group_of(q)
        if to is q.group:
            return False
        if q.tree:
            q.tree.remove(q)
            q.tree = None
            self.queue_left(q.group)
        q.own_group = q.group if to is self.cfq.root else None
        q.group = to
        return True

    def group_of(self, q):
        """By what the queue's flags say now."""
        if self.cfq.tun.group_isolation:
            return q.group
        if q.type() == NOIDLE and self.may_leave(q):
            return self.cfq.root
        if q.type() == SYNC and q.own_group:
            return q.own_group
        return q.group

    def may_leave(self, q):
        """The idle class too, whose queues have no idle window (reading K2)."""
        return q.cls != IDLE or self.cfq.read["idle-class-moves"] == "yes"
