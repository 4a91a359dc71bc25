"""What CFQ keeps of requests, contexts, queues, trees and groups (2)."""
from bisect import bisect_right

from red_black_tree import RedBlackTree

RT, BE, IDLE = 0, 1, 2                      # classes, in the order in which they are served
ASYNC, NOIDLE, SYNC = 0, 1, 2               # types, in the order in which ties are broken
CLASS_NAMES = {RT: "rt", BE: "be", IDLE: "idle"}
TYPE_NAMES = {ASYNC: "async", NOIDLE: "noidle", SYNC: "sync"}

VALID_SAMPLES = 80
NORMAL_LEVEL = 4

# The weight of a queue of each level in the variant (28.3.1).
QUEUE_WEIGHT = [1000] + [100 + (7 - level) * 128 for level in range(1, 8)]


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
        self.sync, self.noidle = op in ("R", "WS", "WN"), op == "WN"
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
        self.own_group = None               # where it goes back to, while it is in the root (27)
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
