"""mq-deadline, as plainly as it can be put.

Written from the descriptions of mq-deadline and of merging, and from FORMAT.md; it shares no code
with the crates. Nothing in a scenario inserts at the head or has zones, so neither is here.
"""

from elevator import MergingScheduler
from red_black_tree import RedBlackTree
from run import TICK

CLASSES = {"rt": 0, "be": 1, "idle": 2}
DEFAULT = {"read_expire": 500, "write_expire": 5000, "writes_starved": 2, "front_merges": 1,
           "fifo_batch": 16, "prio_aging_expire": 10_000}
SHOWN = [
    "batch is full", "decision with nothing next",
    "reads preferred to waiting writes", "writes preferred to waiting reads",
    "decision goes on upward", "decision jumps to an expired one",
    "dispatch for its age", "look for an aged one changes the batch",
    "wait for a higher class in the device",
    "front merge though front_merges is 0", "front merge with one of several",
    "front merge into the next", "front merge moves past another",
    "joined one leaves its deadline", "joined one was the next",
]


class Class:
    """The requests of one I/O priority class; `queued` counts those in the device too."""

    def __init__(self):
        self.sorted = {way: RedBlackTree(lambda rq: rq.start) for way in "RW"}
        self.fifo = {way: [] for way in "RW"}
        self.next = {way: None for way in "RW"}
        self.queued = 0

    def waiting(self):
        return self.fifo["R"] or self.fifo["W"]


def way_of(rq):
    return "R" if rq.op == "R" else "W"


def item(node):
    return node.item if node else None


class MqDeadline(MergingScheduler):
    def __init__(self, scenario, run):
        super().__init__(scenario, run, SHOWN)
        values = {**DEFAULT, **scenario["tunables"]}
        # Clamped where they are out of range, which changes nothing that a log shows.
        self.expire = {"R": values["read_expire"], "W": values["write_expire"]}
        self.writes_starved = values["writes_starved"] % 2**32
        self.front_merges = values["front_merges"] > 0
        self.fifo_batch = values["fifo_batch"]
        self.aging = values["prio_aging_expire"]
        self.classes = [Class() for _ in CLASSES]
        self.last_way, self.batching, self.starved = "W", 0, 0

    @property
    def tick(self):
        return self.run.now // TICK

    def class_of(self, rq):
        return self.classes[CLASSES[rq.priority.split("/")[0]]]

    def has_work(self):
        return any(own.waiting() for own in self.classes)

    def insert(self, rq):
        rq.way, rq.deadline = way_of(rq), None
        own = self.class_of(rq)
        own.queued += 1
        if self.join_at_insert(rq):
            return
        rq.node = own.sorted[rq.way].insert(rq)
        self.enter(rq)
        rq.deadline = self.tick + self.expire[rq.way]
        own.fifo[rq.way].append(rq)

    def complete(self, rq):
        self.class_of(rq).queued -= 1

    # --- what is dispatched ---

    def dispatch(self):
        if sum(own.queued > 0 for own in self.classes) > 1:
            rq = self.pick_aged()
            if rq:
                return rq
        for number, own in enumerate(self.classes):
            rq = self.pick(number, self.tick)
            if rq:
                return rq
            if own.queued:
                if any(lower.waiting() for lower in self.classes[number + 1:]):
                    self.saw("wait for a higher class in the device")
                return None
        return None

    def pick_aged(self):
        for number in (1, 2):
            before = self.last_way, self.batching, self.starved
            rq = self.pick(number, self.tick - self.aging)
            if rq:
                self.saw("dispatch for its age")
                return rq
            if before != (self.last_way, self.batching, self.starved):
                self.saw("look for an aged one changes the batch")
        return None

    def pick(self, number, latest):
        """A request of the class, come by the tick `latest`; the batch may change without one."""
        own = self.classes[number]
        way = self.last_way
        rq = own.next[way]
        if rq is None or self.batching >= self.fifo_batch:
            way = self.choose_way(own)
            if way is None:
                return None
            self.saw("batch is full" if rq else "decision with nothing next")
            rq = self.choose(own, way)
            self.last_way, self.batching = way, 0
        if rq.deadline - self.expire[way] > latest:
            return None
        self.batching += 1
        own.next[way] = self.behind(rq)
        self.remove(rq)
        if self.batching == 1:
            self.run.log(ev="batch", dir=way, prio=number, starved=self.starved)
        return rq

    def choose_way(self, own):
        if own.fifo["R"]:
            if own.fifo["W"]:
                starved = self.starved
                self.starved += 1
                if starved >= self.writes_starved:
                    self.saw("writes preferred to waiting reads")
                    self.starved = 0
                    return "W"
                self.saw("reads preferred to waiting writes")
            return "R"
        if own.fifo["W"]:
            self.starved = 0
            return "W"
        return None

    def choose(self, own, way):
        first, following = own.fifo[way][0], own.next[way]
        if following is None:
            return first
        if self.tick >= first.deadline:
            if first is not following:
                self.saw("decision jumps to an expired one")
            return first
        self.saw("decision goes on upward")
        return following

    def remove(self, rq):
        """Takes it out of all but `next`."""
        own = self.class_of(rq)
        own.sorted[rq.way].erase(rq.node)
        own.fifo[rq.way].remove(rq)
        self.leave(rq)

    # --- merging ---

    def find_front(self, bio):
        if not self.front_merges:
            return None
        ordered = self.class_of(bio).sorted[way_of(bio)]
        found = ordered.find(bio.end)[0]
        if found and any(item(beside(found)) and beside(found).item.start == bio.end
                         for beside in (ordered.prev, ordered.next)):
            self.saw("front merge with one of several")
        return item(found)

    def before(self, rq):
        return item(self.class_of(rq).sorted[rq.way].prev(rq.node))

    def behind(self, rq):
        return item(self.class_of(rq).sorted[rq.way].next(rq.node))

    def moved_to_front(self, rq):
        own = self.class_of(rq)
        before = self.before(rq)
        if not self.front_merges:
            self.saw("front merge though front_merges is 0")
        if own.next[rq.way] is rq:
            self.saw("front merge into the next")
        own.sorted[rq.way].erase(rq.node)
        rq.node = own.sorted[rq.way].insert(rq)
        if self.before(rq) is not before:
            self.saw("front merge moves past another")

    def absorbed(self, into, rq):
        own = self.class_of(rq)
        own.queued -= 1
        if rq.deadline is None:
            return
        fifo = own.fifo[rq.way]
        if rq.deadline < into.deadline:
            self.saw("joined one leaves its deadline")
            into.deadline = rq.deadline
            fifo.remove(into)
            fifo.insert(fifo.index(rq), into)
        if own.next[rq.way] is rq:
            self.saw("joined one was the next")
            own.next[rq.way] = self.behind(rq)
        self.remove(rq)
