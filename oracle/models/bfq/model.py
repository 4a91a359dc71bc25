"""BFQ, as plainly as it can be put: one mechanism a file, and here what they share.

Written from the descriptions of BFQ and of merging, and from FORMAT.md; it shares no code with the
crates. A scenario changes no ioprio, no group and no tunable while it runs, requeues nothing, and
limits no depth, so none of that is here.
"""

from collections import Counter

from binding import Binding
from budgets import Budgets
from cooperation import Cooperation
from expiration import Expiration
from idling import Idling
from injection import Injection
from insertion import Insertion
from elevator import MergingScheduler
from objects import MS, SECOND, Group, Root
from peak_rate import PeakRate
from raising import Raising
from service import Service
from symmetry import Symmetry
from wf2q import FairQueueing

NS_AT_START = 1_000_000_000_000  # what the clocks read at time 0
TICK_AT_START = 1_000_000
REFERENCE_RATE = {False: 14_000, True: 33_000}  # by `nonrot`
REFERENCE_SPAN = {False: 7_000, True: 2_500}  # ms

# What a scenario may show that no line of a log says.
SHOWN = [
    "activation shifted back", "vtime lowered", "look-up that begins with the idle class",
    "look-up that misses the least finish", "budget that goes on",
    "async request that counts three times", "charged for the time in service",
    "rate given up for a late completion", "rate of 0 for want of a completion",
    "small request that does not end the idling", "empty queue that stays busy",
    "exit of a process in service", "queue freed as it expires",
    "front merge that passes the request before", "join at insert with the last merge's",
    "injection of own writes", "injection of a waker", "injection of one that is woken",
    "injection within the limit",
    "async queue raised", "raising prolonged for the time out of service",
    "raising ends for what was served", "raising ends for a large burst",
    "raising back to interactive", "soft real time ends for seeks",
    "queue joins a large burst", "queue leaves a large burst",
    "queue merge: stable, early", "queue merge: stable, late",
    "queue merge: with that in service", "queue merge: with one that waits",
    "queue merge of several steps", "queue merge hands over a raising",
    "queue merge hands over a waker", "raising saved that had not begun",
    "split that leaves the last its queue", "split that keeps a waker",
    "split from a waker in its chain", "split in a burst", "split in a large burst",
    "raising that is over at a split",
]


class Bfq(FairQueueing, Symmetry, Binding, Insertion, Budgets, PeakRate, Service, Idling,
          Injection, Expiration, Raising, Cooperation, MergingScheduler):
    def __init__(self, scenario, run):
        super().__init__(scenario, run, SHOWN)
        self.hz = scenario["hz"]
        self.nonrot = not scenario["device"]["rotational"]
        self.set_up_state()
        self.set_up_tunables(scenario["tunables"])
        self.contexts = {}
        self.root = Root(self.tick)
        self.groups = {"/": self.root}
        for group in scenario["groups"]:
            above = self.groups[group["path"].rpartition("/")[0] or "/"]
            parent = None if above is self.root else above
            self.groups[group["path"]] = Group(parent, above.children, group["weight"])

    # Times

    @property
    def now(self):
        return self.run.now + NS_AT_START

    @property
    def tick(self):
        return self.run.now * self.hz // SECOND + TICK_AT_START

    def ticks(self, ms):
        return -(-ms * self.hz // 1000)

    def milliseconds(self, ticks):
        return ticks * 1000 // self.hz

    # What is said

    def log(self, **line):
        self.run.log(**line)

    # 1.1

    def set_up_state(self):
        self.in_service = None
        self.busy = [0, 0, 0]  # queues by class
        self.raised_busy = self.queued = self.in_driver = 0
        self.active_list = []  # newest first
        self.weights = Counter()
        self.groups_pending = 0
        self.hw_tag, self.hw_samples, self.max_in_driver = -1, 0, 0
        self.nonrot_queueing = self.nonrot
        self.budgets, self.max_budget = 0, 16384
        self.peak_rate = REFERENCE_RATE[self.nonrot] * 2 // 3
        self.samples = self.near_samples = self.total_sectors = self.greatest_length = 0
        self.first_dispatch = self.last_dispatch = self.interval = 0
        self.last_position = self.slot_last_position = 0
        self.last_completion, self.last_completed_queue = 0, None
        self.budget_start = self.idling_start = self.idling_start_tick = 0
        self.measure_start, self.measure_next, self.measured_rq = 0, False, None
        self.injected = False
        self.burst_tick = self.burst_size = 0
        self.burst_parent, self.large_burst, self.burst_list = None, False, []
        self.bio_queue = None

    def set_up_tunables(self, tunables):
        """In the order in which they are given."""
        self.timeout = self.hz // 8
        self.slice_idle = 8 * MS
        self.fifo_expire = {True: 125 * MS, False: 250 * MS}  # by sync
        self.back_max, self.back_penalty = 16384, 2
        self.strict, self.low_latency, self.user_max_budget = False, True, 0
        self.interactive_factor, self.soft_rt_max_rate = 30, 7000
        self.soft_rt_span, self.raise_min_idle = self.ticks(300), self.ticks(2000)
        self.raise_async_gap, self.burst_interval = self.ticks(500), self.ticks(180)
        span = self.ticks(REFERENCE_SPAN[self.nonrot])
        self.reference = REFERENCE_RATE[self.nonrot] * span
        for name, value in tunables.items():
            self.set_tunable(name, value)

    def set_tunable(self, name, value):
        """20.1"""
        if name == "fifo_expire_sync":
            self.fifo_expire[True] = value * MS
        elif name == "fifo_expire_async":
            self.fifo_expire[False] = value * MS
        elif name == "back_seek_max":
            self.back_max = value
        elif name == "back_seek_penalty":
            self.back_penalty = value
        elif name == "slice_idle":
            self.slice_idle = value * MS
        elif name == "slice_idle_us":
            self.slice_idle = value * 1000
        elif name == "max_budget":
            self.user_max_budget = value
            self.set_max_budget(value or self.auto_budget())
        elif name == "timeout_sync":
            self.timeout = self.ticks(value)
            if self.user_max_budget == 0:
                self.set_max_budget(self.auto_budget())
        elif name == "strict_guarantees":
            if value and not self.strict:
                self.slice_idle = max(self.slice_idle, 8 * MS)
            self.strict = bool(value)
        elif name == "low_latency":
            self.low_latency = bool(value)
        else:
            raise ValueError(f"a scenario has no tunable {name} for BFQ")

    # 7.1

    def merge(self, bio):
        self.bio_context = self.contexts.get(bio.task)
        self.bio_queue = self.bio_context and self.bio_context.queue[bio.sync]
        return super().merge(bio)

    def may_merge(self, rq, bio):
        """Which may make the process use another queue from now on."""
        if not rq.may_take(bio) or bio.sync and not rq.sync or self.bio_queue is None:
            return False
        target = self.cooperator(self.bio_queue, bio.start, self.bio_context)
        if target:
            self.redirect(self.bio_context, self.bio_queue, target)
            self.bio_queue = target
        return rq.queue is self.bio_queue
