#!/usr/bin/env python3
"""A model of the CFQ I/O scheduler, and of its `use_hierarchy` variant.

    cfq.py SCENARIO.json [-o LOG.jsonl] [--hierarchy MODE]
    cfq.py SCENARIO_DIR -o LOG_DIR [--hierarchy MODE]

Reads scenarios and writes decision logs. MODE is `leaf-weight` (Linux v4.20's own
hierarchy), `flat` (use_hierarchy 0) or `entities` (use_hierarchy 1). Without the
option a scenario's own key `hierarchy` decides; without that, `leaf-weight`.

The numbers in the comments (8.2, 28.3.3) are the sections of the description of CFQ.
"Reading 4" and the like are the numbered readings of README.md.
"""
import argparse
import heapq
import json
import os
import sys
from bisect import bisect_right
from pathlib import Path

sys.dont_write_bytecode = True  # the folders stay as they are
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from red_black_tree import RedBlackTree  # noqa: E402

MS = 1_000_000
SECOND = 1_000_000_000
CLOCK_AT_START = 1_000_000_000_000          # what the scheduler's clock reads at time 0
U64 = (1 << 64) - 1
U32 = (1 << 32) - 1

RT, BE, IDLE = 0, 1, 2                      # classes, in the order in which they are served
ASYNC, NOIDLE, SYNC = 0, 1, 2               # types, in the order in which ties are broken
CLASS_NAMES = {RT: "rt", BE: "be", IDLE: "idle"}
TYPE_NAMES = {ASYNC: "async", NOIDLE: "noidle", SYNC: "sync"}

IDLE_KEY_DELAY = 200 * MS
GROUP_DELAY_TIME = 200 * MS
FRONT_KEY_STEP = SECOND
VF_SHIFT = 12
WHOLE = 1 << VF_SHIFT                       # a fraction of 1
SEEK_FAR = 800
CLOSE = 8192
SMALL_NONROT = 64
DEPTH_MIN = 5
DEPTH_SAMPLES = 50
VALID_SAMPLES = 80
DEEP = 4
PAGE = 4096
MAX_SECTORS = 2560                          # no request grows beyond this
NORMAL_LEVEL = 4
ROOT_WEIGHT = 1000
DEFAULT_WEIGHT = 500


# ---------------------------------------------------------------------------------------
# What 28.3 leaves open: the reading taken, and the others that `--reading` can choose.
# ---------------------------------------------------------------------------------------

READINGS = {
    "flat-type": ("placed", "vtime", "key"),             # 1
    "front-placed": ("first", "now", "kept"),            # 2
    "iops-jump": ("none", "written"),                    # 3
    "uncharged": ("stays", "behind", "untouched"),       # 4
    "idle-class": ("last", "shortcut"),                  # 5
    "fresh-expiry": ("average", "nothing"),              # 6
    "flat-span": ("divided", "fraction"),                # 7
    "average": ("entities", "queues"),                   # 8
    "emptied": ("entities", "queues"),                   # 9
    "flat-delay": ("v4.20", "2.6.37"),                   # 10
    "preempted-span": ("group", "path"),                 # 11
    "nobody-else-sync": ("queues", "entities"),          # 12
    "group-placed": ("charged", "joined"),               # 13
}


def default_readings():
    return {name: choices[0] for name, choices in READINGS.items()}


# ---------------------------------------------------------------------------------------
# 28.3.1: the weight of a queue, and the scaling of what is charged
# ---------------------------------------------------------------------------------------

QUEUE_WEIGHT = [1000] + [100 + (7 - level) * 128 for level in range(1, 8)]


def scale(amount, weight):
    """How far `amount` moves an entity of that weight (28.3.3)."""
    return (amount << VF_SHIFT) * DEFAULT_WEIGHT // weight


# ---------------------------------------------------------------------------------------
# Objects (2)
# ---------------------------------------------------------------------------------------

class Think:
    """Think time (16.1)."""

    def __init__(self, now):
        self.last_end, self.samples, self.total, self.mean = now, 0, 0, 0

    def update(self, now, idle):
        elapsed = min(now - self.last_end, 2 * idle)
        self.samples = (7 * self.samples + 256) // 8
        self.total = (7 * self.total + 256 * elapsed) // 8
        self.mean = (self.total + 128) // self.samples

    def valid(self):
        return self.samples > VALID_SAMPLES

    def big(self, limit):
        return self.valid() and self.mean > limit


class Request:
    """One request: at first one arrival, later perhaps several merged."""

    def __init__(self, name, task, op, pos, sectors):
        self.name, self.task, self.op = name, task, op
        self.pos, self.sectors = pos, sectors
        self.sync = op in ("R", "WS")
        self.direction = "R" if op == "R" else "W"
        self.parts = [self]                 # what completes with it, in order
        self.no_merge = False
        self.ctx = self.queue = self.group = self.node = None
        self.fifo_deadline = self.start_time = 0

    def end(self):
        return self.pos + self.sectors


class Context:
    """A task's I/O context (2.2)."""

    def __init__(self, task, now):
        self.task = task
        self.queue = {SYNC: None, ASYNC: None}
        self.think = Think(now)
        self.alive = True


class Queue:
    def __init__(self, sync, group, task):
        self.sync, self.group = sync, group
        self.name = "%d%s" % (task.id, "S" if sync else "A")
        self.cls, self.ioprio = task.cls, task.level
        self.own_ioprio = task.level
        # requests
        self.sorted = RedBlackTree(lambda r: r.pos)
        self.fifo = []
        self.next = None
        self.queued = 0
        self.in_flight = self.alloc = 0
        # place
        self.listed = False
        self.tree = None
        self.key = 0                        # where it is on its tree
        self.vtime = 0                      # variant: its vdisktime; becomes the key when placed
        self.placed = 0                     # variant: when it was placed last
        self.near = None
        # slice
        self.dispatch_start = self.slice_start = self.slice_end = self.slice_len = 0
        self.slice_sent = self.slice_sectors = 0
        self.resid = 0
        # history and links
        self.seek_bits = self.last_end_pos = 0
        self.merge_into, self.refs = None, 0
        # flags
        self.fresh = self.awaiting = self.forced = self.fifo_done = False
        self.shared = self.to_split = self.deep = self.busy_wait = False
        self.idle_win = sync and self.cls != IDLE

    def empty(self):
        return not self.fifo

    def type(self):
        if not self.sync:
            return ASYNC
        return SYNC if self.idle_win else NOIDLE

    def weight(self):
        return QUEUE_WEIGHT[self.ioprio]

    def seeky(self):
        return self.seek_bits.bit_count() > 4

    def process_refs(self):
        return self.refs - self.alloc


class ServiceTree:
    """Entities in the order of a key, a new one after its equals (2.4, 28.3.2)."""

    def __init__(self, now):
        self.keys, self.entities = [], []
        self.think = Think(now)
        self.min_vtime = 0

    @property
    def count(self):
        return len(self.entities)

    def insert(self, key, entity):
        at = bisect_right(self.keys, key)
        self.keys.insert(at, key)
        self.entities.insert(at, entity)

    def remove(self, entity):
        at = next(i for i, e in enumerate(self.entities) if e is entity)
        del self.keys[at], self.entities[at]

    def first(self):
        return self.entities[0] if self.entities else None

    def first_key(self):
        return self.keys[0]

    def last_key(self):
        return self.keys[-1]

    def take_first(self):
        """The first is chosen: the tree's minimum advances to it (9.5, 28.3.2)."""
        self.min_vtime = max(self.min_vtime, self.first_key())
        return self.first()


class Workload:
    """What a group, or the device, serves: class, type, and until when (11)."""

    def __init__(self):
        self.cls, self.type, self.span_end = BE, ASYNC, 0


class Group:
    def __init__(self, path, parent, weight, leaf_weight, now):
        self.path, self.parent = path, parent
        self.weight, self.leaf_weight = weight, leaf_weight
        self.trees = {cls: [ServiceTree(now) for _ in TYPE_NAMES] for cls in (RT, BE)}
        self.idle_tree = ServiceTree(now)
        self.n_queues = 0                   # listed queues of its own
        self.avg = {RT: 0, BE: 0}
        self.in_flight = 0
        self.think = Think(now)
        self.async_queues = {}
        # as something that is served
        self.vtime, self.on_tree = 0, False
        self.saved_span, self.saved_type, self.saved_class = 0, ASYNC, BE
        # leaf-weight
        self.frac, self.n_active, self.child_weight = 0, 0, 0
        # entities
        self.n_below = 0                    # listed queues in it or below it
        self.placed = 0
        self.workload = Workload()

    def tree(self, cls, kind):
        return self.idle_tree if cls == IDLE else self.trees[cls][kind]

    def count_class(self, cls):
        """What is on the three trees of a class."""
        return sum(tree.count for tree in self.trees[cls])

    def count_async(self):
        return self.trees[RT][ASYNC].count + self.trees[BE][ASYNC].count

    def all_trees(self):
        return self.trees[RT] + self.trees[BE] + [self.idle_tree]

    def count_all(self):
        return sum(tree.count for tree in self.all_trees())

    def path_up(self):
        """Itself, its parent, and so on up to the root."""
        at = self
        while at:
            yield at
            at = at.parent

    def is_in_or_below(self, other):
        return any(g is other for g in self.path_up())


class Tunables:
    """24. Times are in ns."""
    TIMES = {"fifo_expire_sync": 125, "fifo_expire_async": 250, "slice_sync": 100,
             "slice_async": 40, "slice_idle": 8, "group_idle": 8, "target_latency": 300}
    COUNTS = {"quantum": 8, "back_seek_max": 16384, "back_seek_penalty": 2,
              "slice_async_rq": 2, "low_latency": 1}
    LEAST = {"slice_idle": 0, "group_idle": 0, "back_seek_max": 0, "low_latency": 0}

    def __init__(self, values, rotational):
        for name, default in self.TIMES.items():
            setattr(self, name, default * MS)
        for name, default in self.COUNTS.items():
            setattr(self, name, default)
        if not rotational:
            self.slice_idle = 0
        for name, value in values.items():
            self.set(name, value)

    def set(self, name, value):
        plain = name[:-3] if name.endswith("_us") else name
        unit = 1000 if name.endswith("_us") else MS if plain in self.TIMES else 1
        if plain not in self.TIMES and plain not in self.COUNTS:
            raise ValueError("cfq has no tunable %r" % name)
        most = 1 if plain == "low_latency" else U32
        setattr(self, plain, min(max(int(value), self.LEAST.get(plain, 1)), most) * unit)


# ---------------------------------------------------------------------------------------
# The seam: what the three modes do each in its own way
# ---------------------------------------------------------------------------------------

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
            w.span_end = now + self.cfq.jiffy
            return
        if w.cls == was and g.tree(w.cls, w.type).count and now <= w.span_end:
            return
        w.type = self.choose_type(g, w.cls)
        span = self.workload_span(g, w)
        w.span_end = now + span
        self.cfq.log("workload", wl=workload_name(w), group=g.path, ns=span)

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
        return max(span, 2 * cfq.jiffy)


def workload_name(w):
    if w.cls == IDLE:
        return "idle"
    return CLASS_NAMES[w.cls] + "/" + TYPE_NAMES[w.type]


# --- groups side by side on one tree of the device: leaf-weight and flat -----------------

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


class LeafWeight(GroupsOnOneTree):
    """Linux v4.20: queues by time, groups by vdisktime scaled with a compounded fraction."""

    def mark(self, tree):
        return tree.first_key()

    def take_queue(self, tree):
        return tree.first()

    def place(self, q, front):
        """8.2"""
        tree = q.group.tree(q.cls, q.type())
        key = self.key(q, tree, front) & U64
        if q.tree is tree and key == q.key:
            return
        if self.put_on_tree(q, tree, key) and not front:
            self.queue_joined(q.group)

    def key(self, q, tree, front):
        now = self.cfq.now
        if q.cls == IDLE:
            return now + IDLE_KEY_DELAY
        if front:
            return (tree.first_key() if tree.count else now) - FRONT_KEY_STEP
        resid, q.resid = q.resid, 0
        return now + (q.group.n_queues - 1) * self.cfq.offset_of_one(q) - resid

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


# --- queues by vdisktime: flat and entities ------------------------------------------------

class QueuesByVdisktime:
    """28.3.1 to 28.3.4, for queues."""

    def take_queue(self, tree):
        return tree.take_first()

    def jump(self, q):
        """28.3.3; none in IOPS mode (reading 3)."""
        if self.cfq.iops_mode() and self.cfq.read["iops-jump"] == "none":
            return 0
        return scale(self.cfq.offset_of_one(q), DEFAULT_WEIGHT)

    def place(self, q, front):
        """28.3.3 in the frame of 8.2"""
        tree = q.group.tree(q.cls, q.type())
        q.vtime = self.new_vtime(q, tree, front)
        stays = self.stays(q, tree)
        if not (stays and self.cfq.read["uncharged"] == "untouched"):
            q.placed = self.placing_time(q, tree, front)
        if stays:
            return
        if self.put_on_tree(q, tree, q.vtime) and not front:
            self.queue_joined(q.group)

    def new_vtime(self, q, tree, front):
        if q.cls == IDLE:
            return tree.last_key() if tree.count else tree.min_vtime
        if front:
            return (tree.first_key() if tree.count else tree.min_vtime) - 1
        if q.tree is not tree:
            return tree.min_vtime + self.jump(q)
        return q.vtime                      # an expiry: unchanged but for the charge

    def stays(self, q, tree):
        """8.2's shortcut: where the key does not change, neither does the place (4, 5)."""
        if q.cls == IDLE and self.cfq.read["idle-class"] == "last":
            return False
        if self.cfq.read["uncharged"] == "behind":
            return False
        return q.tree is tree and q.vtime == q.key

    def placing_time(self, q, tree, front):
        """Reading 2: a front insertion is placed before the first, as its key is in 8.2."""
        how = self.cfq.read["front-placed"]
        if front and how == "kept":
            return q.placed
        if front and how == "first":
            return (tree.first().placed if tree.count else self.cfq.now) - FRONT_KEY_STEP
        return self.cfq.now

    def charge_queue(self, q, amount):
        """28.3.4: it moves on its tree when it is placed, right after."""
        q.vtime += scale(amount, q.weight())


class Flat(QueuesByVdisktime, GroupsOnOneTree):
    """use_hierarchy 0: the root and all groups side by side, as in 2.6.37."""

    def mark(self, tree):
        """Reading 1: as in `entities`."""
        how = self.cfq.read["flat-type"]
        if how == "placed":
            return tree.first().placed
        return tree.first_key() - (tree.min_vtime if how == "key" else 0)

    def group_delay(self):
        """Reading 10: as in v4.20, so it depends on what is charged."""
        if self.cfq.read["flat-delay"] == "2.6.37":
            return GROUP_DELAY_TIME
        return self.cfq.group_delay()

    def group_span(self, g):
        """Reading 7: as in 2.6.37."""
        total = sum(x.weight for x in self.tree.entities)
        if self.cfq.read["flat-span"] == "fraction":
            return self.cfq.tun.target_latency * max(WHOLE * g.weight // total, 1) >> VF_SHIFT
        return self.cfq.tun.target_latency * g.weight // total

    def charge(self, g, q, amount):
        self.charge_queue(q, amount)
        self.pull(g)
        g.vtime += scale(amount, g.weight)
        self.put(g)
        self.save(g, self.workload)


class Entities(QueuesByVdisktime, Hierarchy):
    """use_hierarchy 1: a group is an entity on its parent's tree, beside the parent's queues."""

    def __init__(self, cfq):
        super().__init__(cfq)
        self.serving = None

    def mark(self, tree):
        """28.3.6: the entity that was placed longest ago."""
        return tree.first().placed

    def serving_type(self):
        return self.serving.workload.type

    def lone(self, q):
        """28.3.8"""
        return q.group.count_all() == 1

    def average_count(self, g, cls):
        """Reading 8: entities, as for the span."""
        if self.cfq.read["average"] == "entities":
            return g.count_class(cls)
        queues = [e for t in g.trees[cls] for e in t.entities if isinstance(e, Queue)]
        return len(queues)

    # 28.3.5: where groups stand

    def home(self, g):
        return g.parent.trees[BE][SYNC]

    def queue_joined(self, g):
        g.n_queues += 1
        for x in g.path_up():
            x.n_below += 1
            if x.parent and not x.on_tree:
                self.join(x)

    def join(self, g):
        tree = self.home(g)
        g.vtime = tree.last_key() + self.cfq.group_delay() if tree.count else tree.min_vtime
        self.put(g)

    def put(self, g):
        self.home(g).insert(g.vtime, g)
        g.on_tree, g.placed = True, self.cfq.now

    def pull(self, g):
        self.home(g).remove(g)
        g.on_tree = False

    def queue_left(self, g):
        g.n_queues -= 1
        for x in g.path_up():
            x.n_below -= 1
            if x.n_below == 0 and x.parent:
                self.pull(x)
            if self.emptied(x):
                x.saved_span = 0

    def emptied(self, g):
        """Reading 9: nothing is left in it, neither queue nor group. Of the root too."""
        if self.cfq.read["emptied"] == "queues":
            return g.n_queues == 0
        return g.n_below == 0

    # 28.3.4

    def charge(self, g, q, amount):
        self.charge_queue(q, amount)
        for x in g.path_up():
            if x.parent:
                self.charge_group(x, amount)
            self.save(x, x.workload)

    def charge_group(self, g, amount):
        """It is put anew, as in 10.2, so this is a placing too (reading 13)."""
        placed = g.placed
        self.pull(g)
        g.vtime += scale(amount, g.weight)
        self.put(g)
        if self.cfq.read["group-placed"] == "joined":
            g.placed = placed

    # 28.3.6

    def choose(self):
        g = self.cfq.root
        while True:
            w = g.workload
            self.restore(g, w)
            self.choose_workload(g, w)
            if self.cfq.rq_queued == 0:
                return None
            entity = g.tree(w.cls, w.type).take_first()
            if isinstance(entity, Queue):
                self.serving = g
                return entity
            g = entity

    def forget_span(self, g):
        """Reading 11: of the preempting queue's own group only."""
        g.saved_span = 0
        if self.cfq.read["preempted-span"] == "path":
            for x in g.path_up():
                x.saved_span = 0

    # 28.3.7

    def group_span(self, g):
        frac = WHOLE
        for x in reversed(list(g.path_up())):
            if x.parent:
                frac = frac * x.weight // self.weight_on_trees(x.parent)
        return self.cfq.tun.target_latency * max(frac, 1) >> VF_SHIFT

    def weight_on_trees(self, g):
        return sum(e.weight() if isinstance(e, Queue) else e.weight
                   for tree in g.all_trees() for e in tree.entities)


MODES = {"leaf-weight": LeafWeight, "flat": Flat, "entities": Entities}


# ---------------------------------------------------------------------------------------
# The scheduler: what all modes share
# ---------------------------------------------------------------------------------------

class Cfq:
    def __init__(self, scenario, mode, log, timer, readings):
        self.now = CLOCK_AT_START
        self.jiffy = SECOND // scenario["hz"]
        self.group_delay_iops = scenario["hz"] // 5
        self.rotational = scenario["device"]["rotational"]
        self.tun = Tunables(scenario["tunables"], self.rotational)
        self.log, self.timer, self.read = log, timer, readings
        self.busy = self.busy_sync = 0
        self.rq_queued = self.in_driver = 0
        self.sent = {True: 0, False: 0}     # in flight, by the kind of the queue
        self.active = self.active_ctx = None
        self.head_pos = 0
        self.hw_tag, self.depth_seen, self.depth_samples = -1, 0, 0
        self.last_delayed_sync = self.now - SECOND
        self.indexes = [RedBlackTree(lambda q: q.next.pos) for _ in range(8)]
        self.configured = {g["path"]: g for g in scenario["groups"]}
        self.root = Group("/", None, ROOT_WEIGHT, ROOT_WEIGHT, self.now)
        self.groups = {"/": self.root}
        self.h = MODES[mode](self)

    # --- groups are made when first needed (22.4) ---

    def group(self, path):
        if path not in self.groups:
            parent = self.group(path.rsplit("/", 1)[0] or "/")
            c = self.configured[path]
            self.groups[path] = Group(path, parent, c.get("weight", DEFAULT_WEIGHT),
                                      c.get("leaf_weight", DEFAULT_WEIGHT), self.now)
        return self.groups[path]

    # --- modes of charging (9.2) ---

    def iops_mode(self):
        return self.tun.slice_idle == 0 and self.hw_tag != 0

    def group_delay(self):
        return self.group_delay_iops if self.iops_mode() else GROUP_DELAY_TIME

    # --- slices (4) ---

    def nominal(self, sync, level):
        base = self.tun.slice_sync if sync else self.tun.slice_async
        return base + (base // 5) * (NORMAL_LEVEL - level)

    def offset_of_one(self, q):
        """What one competitor moves a new queue back by (8.2)."""
        return self.nominal(True, 0) - self.nominal(q.sync, q.ioprio)

    def scaled_slice(self, q):
        s = self.nominal(q.sync, q.ioprio)
        if not self.tun.low_latency:
            return s
        n = self.refresh_average(q.group, RT if q.cls == RT else BE)
        want, have = self.tun.slice_sync * n, self.h.group_span(q.group)
        if want > have:
            low = min(s, 2 * self.tun.slice_idle * s // self.tun.slice_sync)
            s = max(s * have // want, low)
        return s

    def refresh_average(self, g, cls):
        busy = self.h.average_count(g, cls)
        high, low = max(g.avg[cls], busy), min(g.avg[cls], busy)
        g.avg[cls] = (3 * high + low + 2) // 4
        return g.avg[cls]

    def begin_slice(self, q):
        q.slice_start = self.now
        q.slice_len = self.scaled_slice(q)
        q.slice_end = self.now + q.slice_len
        q.fresh = False
        self.log("slice", q=q.name, ns=q.slice_len)

    def slice_over(self, q):
        return not q.fresh and self.now >= q.slice_end

    # --- making a request (5) ---

    def create(self, r):
        r.group = self.group(r.task.group)
        if r.task.ctx is None:
            r.task.ctx = Context(r.task, self.now)
        r.ctx = r.task.ctx
        r.start_time = self.now
        r.queue = self.queue_for(r)
        r.queue.alloc += 1
        r.queue.refs += 1

    def queue_for(self, r):
        slot = SYNC if r.sync else ASYNC
        while True:
            q = r.ctx.queue[slot]
            if q is None:
                q = r.ctx.queue[slot] = self.obtain(r, slot)
            elif q.shared and q.to_split and not self.keep_as_last_user(q, r):
                r.ctx.queue[SYNC] = None
                self.log("split_queue", q=q.name)
                self.drop_chain(q)
                self.drop(q)
                continue
            if q.merge_into:
                q = self.follow_merge(q, r)
            return q

    def keep_as_last_user(self, q, r):
        if q.process_refs() != 1:
            return False
        self.log("split_queue", q=q.name)
        q.shared = q.to_split = False
        q.name = "%dS" % r.task.id
        return True

    def follow_merge(self, q, r):
        target = q.merge_into
        self.log("merge_queues", q=q.name, into=target.name)
        r.ctx.queue[SYNC] = target
        target.shared = True
        self.drop(q)
        return target

    def obtain(self, r, slot):
        """5.4"""
        g, task = r.group, r.task
        if slot == SYNC:
            q = Queue(True, g, task)
        else:
            which = (task.cls, task.level)
            q = g.async_queues.get(which)
            if q is None:
                q = g.async_queues[which] = Queue(False, g, task)
                q.refs += 1                 # the group's own
        q.refs += 1
        return q

    def drop(self, q):
        """22.1"""
        q.refs -= 1
        if q.refs == 0 and q is self.active:
            self.expire(q, False, "queue_gone")

    def drop_chain(self, q):
        x = q.merge_into
        while x:
            after = x.merge_into
            self.drop(x)
            x = after

    # --- inserting (6) ---

    def insert(self, r):
        q = r.queue
        wait = self.tun.fifo_expire_sync if r.sync else self.tun.fifo_expire_async
        r.fifo_deadline = self.now + wait
        q.fifo.append(r)
        q.queued += 1
        r.node = q.sorted.insert(r)
        if not q.listed:
            self.list(q)
        self.offer_as_next(q, r)
        self.rq_queued += 1
        self.update_think_times(q, r)
        self.update_seekiness(q, r)
        self.update_idle_window(q, r)
        q.last_end_pos = r.end()
        if q is self.active:
            self.insert_into_active(q, r)
        elif self.should_preempt(q, r):
            self.preempt(q)

    def offer_as_next(self, q, r):
        old = q.next
        q.next = self.better(old, r, self.head_pos)
        if q.next is not old:
            self.index(q)

    def insert_into_active(self, q, r):
        if not q.awaiting:
            return
        if r.sectors * 512 > PAGE or self.busy > 1:
            self.timer.cancel()
            q.awaiting = False
        else:
            q.forced = True

    # --- which of two requests (7) ---

    def better(self, a, b, start):
        if a is None or a is b:
            return b
        if b is None:
            return a
        if a.sync != b.sync:
            return a if a.sync else b
        cost_a, cost_b = self.cost(a, start), self.cost(b, start)
        if cost_a is not None and cost_b is not None:
            if cost_a != cost_b:
                return a if cost_a < cost_b else b
            return b if b.pos > a.pos else a
        if cost_a is None and cost_b is None:
            return b if b.pos < a.pos else a
        return b if cost_a is None else a

    def cost(self, r, start):
        """None: behind."""
        if r.pos >= start:
            return r.pos - start
        if r.pos + (self.tun.back_seek_max * 2 & U32) >= start:
            return (start - r.pos) * self.tun.back_seek_penalty
        return None

    def follower(self, q, r):
        after, before = q.sorted.next(r.node), q.sorted.prev(r.node)
        if after is None:
            after = q.sorted.first()
        n = after.item if after.item is not r else None
        return self.better(n, before.item if before else None, r.pos)

    # --- listed queues (8.1) ---

    def list(self, q):
        q.listed = True
        self.busy += 1
        self.busy_sync += q.sync
        self.h.place(q, front=False)
        self.index(q)

    def unlist(self, q):
        q.listed = False
        q.tree.remove(q)
        q.tree = None
        self.unindex(q)
        self.h.queue_left(q.group)
        self.busy -= 1
        self.busy_sync -= q.sync

    # --- the end of a turn (10) ---

    def expire(self, q, timed_out, why):
        if q.awaiting:
            self.timer.cancel()
        q.awaiting = q.busy_wait = False
        if q.shared and q.seeky():
            q.to_split = True
        said = {}
        if timed_out:
            q.resid = self.residue(q)
            said["resid"] = q.resid
        said.update(self.charge(q.group, q))
        self.log("expire", q=q.name, why=why, **said)
        if q.listed and q.empty():
            self.unlist(q)
        if q.listed:
            self.h.place(q, front=False)
            self.index(q)
        if q is self.active:
            self.active = None
        self.active_ctx = None

    def residue(self, q):
        """Where fresh, this updates the average, in all modes (reading 6)."""
        if not q.fresh:
            return q.slice_end - self.now
        if isinstance(self.h, QueuesByVdisktime) and self.read["fresh-expiry"] == "nothing":
            return 0
        return self.scaled_slice(q)

    def charge(self, g, q):
        used = self.slice_usage(q)
        amount = used
        if self.iops_mode():
            amount = q.slice_sent
        elif not q.sync and self.sync_queues(g) == 0:
            amount = q.slice_len
        self.h.charge(g, q, amount)
        return {"used": used, "disp": q.slice_sent, "charge": amount,
                "iops": int(self.iops_mode()), "sect": q.slice_sectors, "group": g.path,
                "vt": g.vtime, "qvt": q.vtime}

    def sync_queues(self, g):
        """Reading 12: queues of the group's own."""
        n = g.n_queues
        if isinstance(self.h, Entities) and self.read["nobody-else-sync"] == "entities":
            n = g.count_all()
        return n - g.count_async() - g.idle_tree.count

    def slice_usage(self, q):
        if q.slice_start in (0, self.now):
            return max(self.now - q.dispatch_start, self.jiffy)
        return min(self.now - q.slice_start, q.slice_len)

    # --- which queue goes on (12) ---

    def select(self):
        q = self.active
        if q is None:
            return self.activate(self.h.choose())
        if self.rq_queued == 0:
            return None
        if q.busy_wait and not q.empty():
            return self.replace(q, None, "wait_busy")
        if self.slice_over(q) and not q.forced:
            if (self.h.lone(q) and q.empty() and q.in_flight > 0
                    and self.should_idle(q)):
                return None
            return None if self.held_for_group(q) else self.replace(q, None, "slice_used")
        if not q.empty():
            return q
        c = self.close_cooperator(q)
        if c:
            if q.merge_into is None:
                self.set_up_merge(q, c)
            return self.replace(q, c, "cooperator")
        if self.timer.armed():
            return None
        if q.seeky() and q.idle_win and self.more_than_half_left(q):
            q.deep = q.idle_win = False
        if q.in_flight > 0 and self.should_idle(q):
            return None
        return None if self.held_for_group(q) else self.replace(q, None, "empty")

    def more_than_half_left(self, q):
        return q.fresh or (q.slice_end - self.now) & U64 > (self.now - q.slice_start) & U64

    def held_for_group(self, q):
        g = q.group
        return (self.tun.group_idle > 0 and self.h.lone(q) and g.in_flight > 0
                and not g.think.big(self.tun.group_idle))

    def replace(self, q, c, why):
        self.expire(q, False, why)
        return self.activate(c if c else self.h.choose())

    def activate(self, c):
        if c:
            c.slice_start = c.slice_len = c.slice_end = c.slice_sent = c.slice_sectors = 0
            c.dispatch_start = self.now
            c.awaiting = c.forced = c.fifo_done = False
            c.fresh = True
            self.timer.cancel()
            self.log("active", q=c.name, group=c.group.path)
        self.active = c
        return c

    # --- dispatch (13) ---

    def poll(self):
        if self.busy == 0:
            return None
        q = self.select()
        if q is None:
            return None
        r = self.send_from(q)
        if r is None:
            return None
        q.slice_sent += 1
        q.forced = False
        if self.busy > 1:
            self.end_short_turn(q)
        return r

    def end_short_turn(self, q):
        if q.cls == IDLE:
            why = "idle_class"
        elif not q.sync and q.slice_sent >= 2 * self.tun.slice_async_rq * (8 - q.ioprio):
            why = "async_rq"
        else:
            return
        q.slice_end = self.now + 1
        self.expire(q, False, why)

    def send_from(self, q):
        r = None
        if not q.fifo_done:
            q.fifo_done = True
            oldest = q.fifo[0]
            if self.now >= oldest.fifo_deadline:
                r = oldest
                q.forced = True
                self.log("fifo", q=q.name, rq=r.name)
        if not self.gate(q):
            return None
        if r is None:
            r = q.next
        self.send(q, r)
        if self.active_ctx is None:
            self.active_ctx = r.ctx
        return r

    def gate(self, q):
        if q.forced:
            return True
        if self.should_idle(q) and self.sent[False] > 0:
            return False
        if not q.sync and self.sent[True] > 0:
            return False
        limit = 1 if q.cls == IDLE else max(self.tun.quantum // 2, 1)
        if q.in_flight >= limit:
            if q.cls == IDLE:
                return False
            alone = q.sync and self.busy_sync == 1
            if self.busy > 1 and self.ends_soon(q) and not alone:
                return False
            limit = U64 if self.busy == 1 or alone else self.tun.quantum
        if not q.sync and self.tun.low_latency:
            d = (self.now - self.last_delayed_sync) // self.tun.slice_sync & U32
            if d == 0 and q.in_flight == 0:
                d = 1
            limit = min(limit, d)
        return q.in_flight < limit

    def ends_soon(self, q):
        return q.fresh or self.now + self.tun.slice_idle * q.in_flight > q.slice_end

    def send(self, q, r):
        q.next = self.follower(q, r)
        self.take_off(q, r)
        if q.empty():
            self.unindex(q)
        q.in_flight += 1
        r.group.in_flight += 1
        self.sent[q.sync] += 1
        q.slice_sectors += r.sectors

    def take_off(self, q, r):
        q.sorted.erase(r.node)
        q.fifo.remove(r)
        q.queued -= 1
        self.rq_queued -= 1

    def activated(self, r):
        """3.2: the device took it."""
        self.in_driver += 1
        self.head_pos = r.end()

    # --- completion (14) ---

    def complete(self, r):
        q = r.queue
        self.estimate_depth()
        self.in_driver -= 1
        q.in_flight -= 1
        r.group.in_flight -= 1
        self.sent[q.sync] -= 1
        if r.sync:
            r.ctx.think.last_end = self.now
            tree = q.tree if q.listed else q.group.tree(q.cls, q.type())
            tree.think.last_end = self.now
            if r.start_time + self.tun.fifo_expire_sync <= self.now:
                self.last_delayed_sync = self.now
        q.group.think.last_end = self.now
        if q is self.active:
            self.complete_of_active(q, r)
        self.free(r)

    def complete_of_active(self, q, r):
        empty = q.empty()
        if q.fresh:
            self.begin_slice(q)
        if self.wait_busy(q):
            q.slice_end = self.now + (self.tun.slice_idle or self.tun.group_idle)
            q.busy_wait = True
            self.log("wait_busy", q=q.name)
        if self.slice_over(q):
            self.expire(q, True, "slice_used")
        elif q.cls == IDLE:
            self.expire(q, True, "idle_class")
        elif r.sync and empty and self.close_cooperator(q) is None:
            self.arm(q)

    def free(self, r):
        r.queue.alloc -= 1
        self.drop(r.queue)

    def wait_busy(self, q):
        """14.3"""
        if not q.empty() or not self.h.lone(q) or q.group.think.big(self.tun.group_idle):
            return False
        if self.slice_over(q):
            return True
        left = q.slice_end - self.now
        ctx = self.active_ctx
        if ctx and ctx.think.valid() and left < ctx.think.mean:
            return True
        return left <= self.jiffy

    # --- idling (15) ---

    def queueing_ssd(self):
        return not self.rotational and self.hw_tag != 0

    def should_idle(self, q):
        if self.tun.slice_idle == 0 or q.cls == IDLE:
            return False
        if q.idle_win and not self.queueing_ssd():
            return True
        return q.tree.count == 1 and q.sync and not q.tree.think.big(self.tun.slice_idle)

    def arm(self, q):
        if self.queueing_ssd() and self.tun.group_idle == 0:
            return
        by_group = not self.should_idle(q)
        if by_group and self.tun.group_idle == 0:
            return
        ctx = self.active_ctx
        if q.in_flight > 0 or ctx is None or not ctx.alive:
            return
        if ctx.think.valid() and q.slice_end - self.now < ctx.think.mean:
            return
        if by_group and (not self.h.lone(q) or q.tree.think.big(self.tun.group_idle)):
            return
        q.awaiting = True
        wait = self.tun.group_idle if by_group else self.tun.slice_idle
        self.timer.start(self.now + wait)
        self.log("arm_idle", q=q.name, ns=wait, group=int(by_group))

    def on_timer(self):
        self.log("idle_timer")
        q = self.active
        if q is None or q.forced:
            return
        if self.slice_over(q):
            self.expire(q, False, "slice_used")
            return
        if self.busy == 0 or not q.empty():
            return
        q.deep = False
        self.expire(q, False, "idle_timer")

    # --- estimators (16) ---

    def update_think_times(self, q, r):
        if q.sync:
            r.ctx.think.update(self.now, self.tun.slice_idle)
            q.tree.think.update(self.now, self.tun.slice_idle)
        q.group.think.update(self.now, self.tun.group_idle)

    def update_seekiness(self, q, r):
        if self.rotational:
            distance = abs(r.pos - q.last_end_pos) if q.last_end_pos else 0
            bad = distance > SEEK_FAR
        else:
            bad = r.sectors < SMALL_NONROT
        q.seek_bits = (q.seek_bits << 1 | bad) & U32

    def update_idle_window(self, q, r):
        if not q.sync or q.cls == IDLE:
            return
        if q.queued >= DEEP:
            q.deep = True
        on = q.idle_win
        if not r.ctx.alive or self.tun.slice_idle == 0 or (not q.deep and q.seeky()):
            on = False
        elif r.ctx.think.valid():
            on = r.ctx.think.mean <= self.tun.slice_idle
        if on != q.idle_win:
            self.log("idle_window", q=q.name, on=int(on))
        q.idle_win = on

    # --- preemption (17) ---

    def should_preempt(self, n, r):
        a = self.active
        if a is None or n.cls == IDLE:
            return False
        if a.cls == IDLE:
            return True
        if a.cls == RT and n.cls != RT:
            return False
        if r.sync and not a.sync and not a.forced:
            return True
        if not a.group.is_in_or_below(n.group):
            return False
        if self.slice_over(a):
            return True
        if n.cls == RT and a.cls != RT:
            return True
        if self.h.serving_type() == NOIDLE and n.type() == NOIDLE and a.empty():
            return True
        if a.empty() and not self.should_idle(a):
            return True
        if self.active_ctx is None or not a.awaiting:
            return False
        return abs(r.pos - self.head_pos) <= CLOSE

    def preempt(self, n):
        a = self.active
        self.log("preempt", q=n.name, over=a.name)
        kind = a.type()
        self.expire(a, True, "preempted")
        if kind != n.type():
            self.h.forget_span(n.group)
        self.h.place(n, front=True)
        n.slice_end = 0
        n.fresh = True

    # --- cooperating queues (18) ---

    def unindex(self, q):
        if q.near:
            self.indexes[q.own_ioprio].erase(q.near)
            q.near = None

    def index(self, q):
        self.unindex(q)
        if q.cls != IDLE and q.next:
            q.near = self.indexes[q.own_ioprio].insert(q, unique=True)

    def close_cooperator(self, q):
        if q.cls == IDLE or not q.sync or q.seeky() or self.h.lone(q):
            return None
        c = self.nearest(self.indexes[q.own_ioprio])
        if (c is None or c.group is not q.group or not c.sync or c.seeky()
                or (c.cls == RT) != (q.cls == RT)):
            return None
        return c

    def nearest(self, index):
        hit, last = index.find(self.head_pos)
        if hit:
            return hit.item
        if last is None:
            return None
        if abs(last.item.next.pos - self.head_pos) <= CLOSE:
            return last.item
        other = index.next(last) if last.item.next.pos < self.head_pos else index.prev(last)
        if other and abs(other.item.next.pos - self.head_pos) <= CLOSE:
            return other.item
        return None

    def set_up_merge(self, q, c):
        if c.process_refs() == 0:
            return
        while c.merge_into:
            if c.merge_into is q:
                return
            c = c.merge_into
        a, b = q.process_refs(), c.process_refs()
        if a == 0 or b == 0:
            return
        if b >= a:
            q.merge_into = c
            c.refs += a
        else:
            c.merge_into = q
            q.refs += b

    # --- merged requests (19.3) ---

    def may_merge_into(self, r, bio):
        """19.1's last condition."""
        ctx = bio.task.ctx
        return ctx is not None and ctx.queue[SYNC if bio.sync else ASYNC] is r.queue

    def find_front(self, bio):
        """The request of the bio's queue that starts where the bio ends."""
        ctx = bio.task.ctx
        q = ctx.queue[SYNC if bio.sync else ASYNC] if ctx else None
        if q is None:
            return None
        hit, _ = q.sorted.find(bio.end())
        return hit.item if hit else None

    def neighbour(self, r, behind):
        node = r.queue.sorted.next(r.node) if behind else r.queue.sorted.prev(r.node)
        return node.item if node else None

    def moved_to_front(self, r):
        q = r.queue
        q.sorted.erase(r.node)
        r.node = q.sorted.insert(r)
        self.offer_as_next(q, r)

    def absorbed(self, y, x):
        """x, behind y, is part of y now."""
        q = y.queue
        if x.fifo_deadline < y.fifo_deadline:
            q.fifo.remove(y)
            q.fifo.insert(q.fifo.index(x), y)
            y.fifo_deadline = x.fifo_deadline
        if q.next is x:
            q.next = y
        self.take_off(q, x)
        y.start_time = min(y.start_time, x.start_time)
        self.free(x)

    # --- hardware queueing (20) ---

    def estimate_depth(self):
        self.depth_seen = max(self.depth_seen, self.in_driver)
        if self.hw_tag == 1 or (self.rq_queued <= DEPTH_MIN and self.in_driver <= DEPTH_MIN):
            return
        a = self.active
        if (a and a.idle_win and a.in_flight + a.queued < DEPTH_MIN
                and self.in_driver < DEPTH_MIN):
            return
        self.depth_samples += 1
        if self.depth_samples <= DEPTH_SAMPLES:
            return
        old, self.hw_tag = self.hw_tag, int(self.depth_seen >= DEPTH_MIN)
        if old != self.hw_tag:
            self.log("hw_tag", **{"from": old, "to": self.hw_tag})

    # --- the end of a task (22.2) ---

    def exit(self, task):
        if task.ctx is None:
            return
        task.ctx.alive = False
        for slot in (ASYNC, SYNC):
            q = task.ctx.queue[slot]
            if q is None:
                continue
            if q is self.active:
                self.expire(q, False, "exit")
            self.drop_chain(q)
            self.drop(q)


# ---------------------------------------------------------------------------------------
# The elevator's merging (19.1, 19.2)
# ---------------------------------------------------------------------------------------

class Merging:
    def __init__(self, cfq, enabled, log):
        self.cfq, self.enabled, self.log = cfq, enabled, log
        self.last = None
        self.ends = {}                      # end -> requests, the one hashed last at the end

    def inserted(self, r):
        self.hash(r)
        if self.last is None:
            self.last = r

    def sent(self, r):
        self.unhash(r)
        if self.last is r:
            self.last = None

    def hash(self, r):
        r.hashed = r.end()
        self.ends.setdefault(r.hashed, []).append(r)

    def unhash(self, r):
        there = self.ends[r.hashed]
        there.remove(r)
        if not there:
            del self.ends[r.hashed]

    def try_merge(self, bio):
        """Is the arrival part of a queued request now?"""
        if not self.enabled:
            return False
        r, kind = self.find(bio)
        if r is None:
            return False
        if r.sectors + bio.sectors > MAX_SECTORS:
            self.refuse(r)
            return False
        if kind == "front":
            r.pos = bio.pos
        r.sectors += bio.sectors
        self.merged(r, bio, kind)
        if kind == "back":
            self.after_back(r)
        else:
            self.after_front(r)
        return True

    def refuse(self, r):
        r.no_merge = True
        if self.last is r:
            self.last = None

    def find(self, bio):
        """19.2"""
        if self.last and self.allowed(self.last, bio):
            if self.last.end() == bio.pos:
                return self.last, "back"
            if self.last.pos == bio.end():
                return self.last, "front"
        for r in reversed(self.ends.get(bio.pos, [])):
            if r.no_merge:
                continue
            if self.allowed(r, bio):
                return r, "back"
            break
        r = self.cfq.find_front(bio)
        if r and self.allowed(r, bio):
            return r, "front"
        return None, None

    def allowed(self, r, bio):
        return (not r.no_merge and r.direction == bio.direction
                and not (bio.sync and not r.sync) and self.cfq.may_merge_into(r, bio))

    def merged(self, into, r, kind):
        self.log("M", rq=r.name, into=into.name, kind=kind)
        into.parts += r.parts

    def after_back(self, r):
        self.unhash(r)
        behind = self.cfq.neighbour(r, behind=True)
        if behind and self.joinable(r, behind):
            self.absorb(r, behind)
        self.hash(r)
        self.last = r

    def after_front(self, r):
        before = self.cfq.neighbour(r, behind=False)
        if before and self.joinable(before, r):
            self.unhash(before)
            self.absorb(before, r)
            self.hash(before)
            self.last = before
        else:
            self.cfq.moved_to_front(r)
            self.last = r

    def joinable(self, y, x):
        return (y.end() == x.pos and y.direction == x.direction
                and not y.no_merge and not x.no_merge
                and y.sectors + x.sectors <= MAX_SECTORS)

    def absorb(self, y, x):
        if x.hashed in self.ends and x in self.ends[x.hashed]:
            self.unhash(x)
        y.sectors += x.sectors
        self.merged(y, x, "back")
        self.cfq.absorbed(y, x)


# ---------------------------------------------------------------------------------------
# The device and the run (FORMAT.md)
# ---------------------------------------------------------------------------------------

class Task:
    def __init__(self, given):
        self.id, self.group = given["id"], given["group"]
        self.start, self.depth = given["start_ns"], given["depth"]
        self.cls, self.level = parse_ioprio(given["ioprio"])
        self.requests = given["requests"]
        self.left = len(self.requests)
        self.ctx = None


def parse_ioprio(text):
    if text == "none":
        return BE, NORMAL_LEVEL
    if text == "idle":
        return IDLE, 7
    cls, level = text.split("/")
    return {"rt": RT, "be": BE}[cls], int(level)


class Device:
    """So many servers, each with its own head."""

    def __init__(self, given):
        self.given = given
        self.heads = [0] * given["channels"]
        self.free = list(range(given["channels"]))
        self.waiting = []
        self.held = 0

    def full(self):
        return self.held >= self.given["queue_depth"]

    def take(self, r):
        """Says in how much time it completes, or None where it has to wait."""
        self.held += 1
        if not self.free:
            self.waiting.append(r)
            return None
        return self.serve(r)

    def serve(self, r):
        r.server = heapq.heappop(self.free)
        d = self.given
        time = d["base_ns"] + d["per_sector_ns"] * r.sectors
        head = self.heads[r.server]
        if r.pos != head:
            time += d["seek_base_ns"] + abs(r.pos - head) * d["seek_ns_per_mi_sector"] // (1 << 20)
        self.heads[r.server] = r.end()
        return time

    def release(self, r):
        """Says which waiting request starts now, if one does."""
        self.held -= 1
        heapq.heappush(self.free, r.server)
        return self.waiting.pop(0) if self.waiting else None


class Timer:
    """The one timer of the scheduler."""

    def __init__(self, run):
        self.run, self.event = run, None

    def start(self, clock):
        self.event = self.run.schedule(clock - CLOCK_AT_START, TIMER, None)

    def cancel(self):
        self.event = None

    def armed(self):
        return self.event is not None


COMPLETION, TIMER, ARRIVAL = 0, 1, 2


class Run:
    def __init__(self, scenario, mode, out, readings, checked=False):
        self.t, self.out, self.checked = 0, out, checked
        self.heap, self.sequence = [], 0
        self.timer = Timer(self)
        self.cfq = Cfq(scenario, mode, self.log, self.timer, readings)
        self.merging = Merging(self.cfq, scenario["merges"], self.log)
        self.device = Device(scenario["device"])
        self.tasks = [Task(given) for given in scenario["tasks"]]
        self.flushes = []
        self.left = sum(task.left for task in self.tasks)

    def log(self, ev, **fields):
        self.out.append(json.dumps({"t": self.t, "ev": ev, **fields}, separators=(",", ":")))

    def schedule(self, at, kind, what):
        self.sequence += 1
        event = (at, kind, self.sequence, what)
        heapq.heappush(self.heap, event)
        return event

    def schedule_arrival(self, task, i, since):
        self.schedule(since + task.requests[i][0], ARRIVAL, (task, i))

    def run(self):
        for task in self.tasks:
            for i in range(min(task.depth, len(task.requests))):
                self.schedule_arrival(task, i, task.start)
        while self.heap:
            event = heapq.heappop(self.heap)
            if event[1] == TIMER and event is not self.timer.event:
                continue                    # cancelled or set anew
            self.handle(event)
            self.dispatch()
            if self.checked:
                check(self.cfq, self.device.full())
        if self.left:
            raise RuntimeError("stuck at %d ns: %d requests left" % (self.t, self.left))

    def handle(self, event):
        self.t, kind, _, what = event
        self.cfq.now = self.t + CLOCK_AT_START
        if kind == COMPLETION:
            self.completion(what)
        elif kind == TIMER:
            self.timer.event = None
            self.cfq.on_timer()
        else:
            self.arrival(*what)

    def arrival(self, task, i):
        _, op, pos, sectors = task.requests[i][:4]
        r = Request("%d.%d" % (task.id, i), task, op, pos, sectors)
        r.index = i
        self.log("Q", rq=r.name)
        if op == "F":
            self.flushes.append(r)
        elif not self.merging.try_merge(r):
            self.cfq.create(r)
            self.merging.inserted(r)
            self.cfq.insert(r)

    def dispatch(self):
        while not self.device.full():
            r = self.flushes.pop(0) if self.flushes else self.poll()
            if r is None:
                return
            self.log("D", rq=r.name)
            self.start(r, self.device.take(r))

    def poll(self):
        r = self.cfq.poll()
        if r:
            self.merging.sent(r)
            self.cfq.activated(r)
        return r

    def start(self, r, takes):
        if takes is not None:
            self.schedule(self.t + takes, COMPLETION, r)

    def completion(self, r):
        if r.op != "F":
            self.cfq.complete(r)
        waiting = self.device.release(r)
        if waiting:
            self.start(waiting, self.device.serve(waiting))
        for part in r.parts:
            self.completed(part)

    def completed(self, part):
        self.log("C", rq=part.name)
        task, after = part.task, part.index + part.task.depth
        if after < len(task.requests):
            self.schedule_arrival(task, after, self.t)
        self.left -= 1
        task.left -= 1
        if task.left == 0:
            self.cfq.exit(task)
            self.log("exit", task=task.id)


# ---------------------------------------------------------------------------------------
# What must hold after every event (30), for `--check`
# ---------------------------------------------------------------------------------------

def check(cfq, device_full):
    groups = list(cfq.groups.values())
    for g in groups:
        for tree in g.all_trees():
            assert tree.keys == sorted(tree.keys)
            for entity, key in zip(tree.entities, tree.keys):
                check_entity(g, tree, entity, key)
        check_group(cfq, g)
    assert cfq.busy == sum(g.n_queues for g in groups)
    queues = [e for g in groups for t in g.all_trees() for e in t.entities
              if isinstance(e, Queue)]
    assert cfq.busy == len(queues)
    assert cfq.busy_sync == sum(q.sync for q in queues)
    assert cfq.rq_queued == sum(q.queued for q in queues)
    assert cfq.in_driver == sum(cfq.sent.values())
    assert cfq.active is None or cfq.active.listed
    waits = cfq.timer.armed() or cfq.in_driver or device_full
    assert not cfq.rq_queued or waits, "stuck"


def check_entity(g, tree, entity, key):
    if isinstance(entity, Queue):
        assert entity.listed and entity.tree is tree and entity.group is g
        assert entity.key == key and entity.queued == len(entity.fifo)
        assert (entity.next is None) == entity.empty()
    else:
        assert entity.parent is g and entity.on_tree and entity.vtime == key
        assert tree is g.trees[BE][SYNC]


def check_group(cfq, g):
    below = [x for x in cfq.groups.values() if x.is_in_or_below(g)]
    if isinstance(cfq.h, Entities):
        assert g.n_below == sum(x.n_queues for x in below)
        assert g.on_tree == (g.n_below > 0 and g.parent is not None)
    else:
        assert g.on_tree == (g.n_queues > 0)


# ---------------------------------------------------------------------------------------
# The command line
# ---------------------------------------------------------------------------------------

def decide(scenario, mode=None, readings=None, checked=False):
    """The lines of the log of a scenario."""
    mode = mode or scenario.get("hierarchy", "leaf-weight")
    if scenario.get("scheduler", "cfq") != "cfq":
        raise ValueError("not a scenario for cfq")
    out = []
    Run(scenario, mode, out, readings or default_readings(), checked).run()
    return out


def decide_file(path, to, mode, readings, checked):
    with open(path, encoding="utf-8") as f:
        lines = decide(json.load(f), mode, readings, checked)
    with (open(to, "w", encoding="utf-8") if to else sys.stdout) as f:
        f.write("\n".join(lines) + "\n")


def parse_readings(given):
    readings = default_readings()
    for text in given:
        name, _, value = text.partition("=")
        if value not in READINGS.get(name, ()):
            known = "; ".join("%s=%s" % (n, "|".join(c)) for n, c in READINGS.items())
            raise SystemExit("no reading %r: %s" % (text, known))
        readings[name] = value
    return readings


def main():
    p = argparse.ArgumentParser(description="Decides scenarios as CFQ does.")
    p.add_argument("scenario", help="a scenario, or a folder of NAME.scenario.json")
    p.add_argument("-o", "--out", help="the log, or the folder of the logs")
    p.add_argument("--hierarchy", choices=sorted(MODES), help="overrides the scenario's own")
    p.add_argument("--reading", action="append", default=[], metavar="NAME=VALUE",
                   help="read the description otherwise (README.md)")
    p.add_argument("--check", action="store_true", help="check what must hold at every event")
    args = p.parse_args()
    readings = parse_readings(args.reading)
    if not os.path.isdir(args.scenario):
        decide_file(args.scenario, args.out, args.hierarchy, readings, args.check)
        return
    if not args.out:
        p.error("a folder of scenarios needs -o")
    os.makedirs(args.out, exist_ok=True)
    for name in sorted(os.listdir(args.scenario)):
        if name.endswith(".scenario.json"):
            to = os.path.join(args.out, name.replace(".scenario.json", ".log.jsonl"))
            decide_file(os.path.join(args.scenario, name), to, args.hierarchy, readings,
                        args.check)


if __name__ == "__main__":
    main()
