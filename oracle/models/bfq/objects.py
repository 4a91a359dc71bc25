"""What BFQ keeps: contexts, queues, groups, and the trees of those that are served by weight.

The numbers in the comments of this folder are the sections of the description of BFQ.
"""

from red_black_tree import RedBlackTree

RT, BE, IDLE = range(3)  # classes, in the order in which they are served
CLASSES = {"rt": RT, "be": BE, "idle": IDLE}
LONG_AGO = -(1 << 60)  # ticks
U64 = (1 << 64) - 1
U32 = (1 << 32) - 1
MS = 1_000_000  # ns
SECOND = 1_000_000_000
DEFAULT_WEIGHT = 40  # of a queue of level 4
FAR = 800  # sectors that make a seek
SMALL = 64  # sectors below which a request costs a seek on a device that does not rotate


class ClassTree:
    """The nodes of one class that compete in one place (1.2)."""

    def __init__(self):
        self.active = RedBlackTree(lambda node: node.finish)
        self.idle = RedBlackTree(lambda node: node.finish)
        self.first_idle = self.last_idle = None
        self.vtime = 0
        self.weight_sum = 0


class Schedule:
    """Where the children of a group compete (1.2); `group` is none for the root's."""

    def __init__(self, group, idle_class_last):
        self.group = group
        self.trees = [ClassTree() for _ in (RT, BE, IDLE)]
        self.in_service = self.next = None
        self.idle_class_last = idle_class_last


class Node:
    """What is served by weight (1.3): a queue or a group."""

    def __init__(self, parent, schedule, weight):
        self.parent, self.schedule = parent, schedule
        self.start = self.finish = 0
        self.tree = self.place = None  # the tree that it is on, and where
        self.known = False
        self.service = self.budget = 0
        self.weight = self.new_weight = self.orig_weight = weight
        self.change_due = False

    def path(self):
        """The node and its ancestors, upwards."""
        node = self
        while node:
            yield node
            node = node.parent


class Group(Node):
    cls, is_queue = BE, False

    def __init__(self, parent, schedule, weight):
        super().__init__(parent, schedule, weight)
        self.pending = False
        self.set_up_children(self, 0)

    def set_up_children(self, group, idle_class_last):
        self.children = Schedule(group, idle_class_last)
        self.async_queues = {}
        self.positions = RedBlackTree(lambda queue: queue.next_rq.start)
        self.last_created = None


class Root(Group):
    """The root group, which is itself never scheduled."""

    def __init__(self, now_tick):
        self.set_up_children(None, now_tick)


class Think:
    """How long a process takes from a completion to its next request (7.4)."""

    def __init__(self, last_end):
        self.last_end = last_end
        self.samples = self.total = self.mean = 0

    def add(self, now, most):
        elapsed = min((now - self.last_end) & U64, most)
        self.samples = (7 * self.samples + 256) // 8
        self.total = (7 * self.total + 256 * elapsed) // 8
        self.mean = (self.total + 128) // self.samples


class Queue(Node):
    """A queue of one process, or of several that share it (1.4)."""

    is_queue = True

    def __init__(self, context, sync, now, tick):
        group = context.group
        self.cls, self.level = context.priority
        parent = None if isinstance(group, Root) else group
        super().__init__(parent, group.children, (8 - self.level) * 10)
        self.group, self.sync = group, sync
        self.name_after(context)
        self.change_due = True
        self.fresh = self.short_think = sync
        self.io_bound = True
        self.busy = self.waiting = self.resumable = self.fifo_checked = False
        self.in_large_burst = self.soft_rt_check = self.shared = self.split_due = False
        self.max_budget = 0
        self.slot_end = LONG_AGO
        self.think = Think(now + 1)  # Q1
        self.creation, self.window_start, self.idle_total = tick, now, 0
        self.factor, self.raise_span, self.raise_tick = 1, 0, tick
        self.interactive_start = self.split_at = LONG_AGO
        self.soft_rt_from = tick
        self.served_raised = self.served_since_busy = 0
        self.busy_since = self.first_served = 0
        self.seek_history, self.last_request_end = 1, 0
        self.base_time = self.inject_limit = self.inject_tick = 0
        self.dispatched = 0
        self.sorted = RedBlackTree(lambda rq: rq.start)
        self.fifo = []
        self.next_rq = None
        self.redirected_to = self.owner = None
        self.waker = self.tentative_waker = None
        self.waker_detections = self.waker_since = 0
        self.woken = []
        self.counted_weight = None
        self.position = None  # where it is in its group's position tree
        # What keeps it alive, beside service and its counted weight (18.6).
        self.procs = self.bound = self.stable_references = 0

    def name_after(self, context):
        self.name = f"{context.task}{'S' if self.sync else 'A'}"

    def left(self):
        return self.budget - self.service

    def seeky(self):
        return bin(self.seek_history).count("1") > 19

    def all_seeky(self):
        return self.seek_history == U32


class Context:
    """The I/O context of a task (1.5), with what is saved of a queue that was merged (18.5).

    `priority` is its class and level.
    """

    def __init__(self, task, group, priority):
        self.task, self.group, self.priority = task, group, priority
        self.queue = {True: None, False: None}  # by sync
        self.in_flight = 0
        self.stable_merge = None
        self.stably_merged = False
        self.saved = None
        self.was_in_burst_list = self.saved_in_large_burst = False
