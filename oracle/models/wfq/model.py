"""wfq at a fixed depth and at fixed prices, as plainly as it can be put.

Written from the description of the scheduler (its sections are named) and from FORMAT.md; it shares
no code with the crates. Where they keep trees it sorts lists. Only the speed of the device is
learned here, which runs are as long as; depth and prices are not: a scenario sets `depth` and
`cost`, and `keep_slots` 0.
"""

from choosing import Rules, choose, count, goes_first
from elevator import MergingScheduler
from limits import ADVANCES, FINE, OTHERS, Limits
from prices import FIXED, REQUESTS, Prices, moved
from runs import Runs, Windows
from tree import Clock, Context, Group

DEFAULT = {"grace_us": 0, "cost_op_bytes": 16_384, "cost_write": 100, "cost_fua": 100,
           "class_age": 1000, "write_depth": 100, "burst": 100, "run_us": 0, "window_us": 2000}
WEIGHT, ROOT_WEIGHT = 100, 1000
CLASSES = {"rt": 0, "be": 1, "idle": 2}
NEVER_MERGE = ("WF", "Z")
US, MS = 1_000, 1_000_000
SHOWN = [
    "start that v set", "start that was ahead of v", "start that grace set behind v",
    "request of a lower class in its turn", "request dispatched again for nothing",
    "joined one leaves its place", "context that a merge emptied",
    "write passed over for write_depth", "request passed over for a cap",
    "merge into a request of another context",
    "request dispatched for a reservation", "start held back after a reservation",
    "request of others while one is behind its reservation",
    "request of a run before one of a lower tag", "window closed", "window in cut mode closed",
]


class Wfq(MergingScheduler):
    def __init__(self, scenario, run):
        super().__init__(scenario, run, SHOWN)
        tunables = {**DEFAULT, **scenario["tunables"]}
        if tunables.get("keep_slots", 0) or not tunables.get("depth"):
            raise ValueError("the model has a fixed depth, and keep_slots 0")
        if not REQUESTS <= tunables.get("cost", 0) <= FIXED:
            raise ValueError("the model has fixed prices")
        self.sweeps = scenario["device"]["rotational"]
        self.prices = Prices(tunables)
        self.depth = tunables["depth"]
        self.runs = Runs(tunables["run_us"])
        reachable, least = scenario["device"]["queue_depth"], tunables["window_us"] * US
        self.windows = Windows(self.depth, reachable, least, self.prices.cost)
        self.writes_at_most = -(-self.depth * tunables["write_depth"] // 100)
        self.age, self.burst = tunables["class_age"] * MS, tunables["burst"] * MS
        self.set_up_groups(scenario, Clock(tunables["grace_us"] * US, self.tell_busy))
        self.waiting = self.writes = self.dispatched = 0
        self.passed = 0  # units, for reservations while others waited

    def set_up_groups(self, scenario, clock):
        self.groups = {"/": Group(clock, "/", None, None, ROOT_WEIGHT)}
        self.groups["/"].limits = Limits({})
        for group in scenario["groups"]:
            above = self.groups[group["path"].rsplit("/", 1)[0] or "/"]
            weights = group.get("weight", WEIGHT), group.get("leaf_weight", WEIGHT)
            made = Group(clock, group["path"], above, *weights)
            made.limits = Limits(group)
            self.groups[made.name] = made
        self.reserved = [group for group in self.groups.values() if group.limits.reservations]
        self.has_caps = any(group.limits.caps for group in self.groups.values())

    @property
    def now(self):
        return self.run.now

    # --- requests ---

    def has_work(self):
        return self.waiting > 0

    def merge(self, bio):
        if bio.op in NEVER_MERGE:
            bio.no_merge = True
            return False
        return super().merge(bio)

    def insert(self, rq):
        rq.paid, rq.context = False, None
        rq.no_merge = rq.no_merge or rq.op in NEVER_MERGE
        if self.join_at_insert(rq):
            return
        rq.context, rq.since = self.context_of(rq), self.now
        self.wait(rq)
        rq.context.requests.append(rq)
        rq.place = rq.context.by_sector.insert(rq)
        self.note_load(self.run.in_device)
        rq.is_candidate = not rq.no_merge
        if rq.is_candidate:
            self.enter(rq)

    def place_of(self, rq):
        """Where its context is: in the own node of its group, by task and class."""
        return self.groups[rq.group].own, (rq.task, CLASSES[rq.priority.split("/")[0]])

    def context_of(self, rq):
        """The context of the request, with the weight of its newest request's level."""
        own, key = self.place_of(rq)
        if key not in own.contexts:
            own.contexts[key] = Context(own, *key)
        own.contexts[key].weight = 8 - int(rq.priority.partition("/")[2] or 7)
        return own.contexts[key]

    def wait(self, rq):
        """It is put into its context by the caller."""
        self.waiting += 1
        self.saw_entry(rq.context)
        rq.context.enter(self.now)
        rq.context.own.look(self.now)

    def note_load(self, in_device):
        """What a cap holds does not wait for the device."""
        waits = self.waiting and (self.opens() is None or self.may_serve())
        self.windows.note(self.now, waits, in_device)

    def may_serve(self):
        """Whether no cap holds something that waits."""
        return choose(self.groups["/"], self.rules()) is not None

    def requeue(self, rq):
        self.windows.leaves(rq)
        rq.paid, rq.is_candidate = True, False
        self.back(rq)
        self.wait(rq)
        rq.context.requests.appendleft(rq)
        rq.place = rq.context.by_sector.insert(rq)
        self.note_load(self.run.in_device)

    def complete(self, rq):
        self.back(rq)
        number, is_cut = self.windows.number, self.windows.cut is not None
        self.note_load(self.run.in_device)
        self.windows.complete(rq, self.now, self.dispatched)
        if self.windows.number > number:
            self.saw("window in cut mode closed" if is_cut else "window closed")

    def back(self, rq):
        """The device has it no more."""
        self.dispatched -= 1
        self.writes -= rq.op != "R"

    def exit(self, task):
        for group in self.groups.values():
            for key in [key for key in group.own.contexts if key[0] == task]:
                del group.own.contexts[key]

    def change_weights(self, path, weight, leaf_weight):
        group = self.groups[path]
        group.weight = weight or group.weight
        group.own.weight = leaf_weight or group.own.weight

    def fire(self):
        """A cap has opened; what follows is a dispatch, as after any event."""

    # --- what is dispatched ---

    def dispatch(self):
        self.timer = None
        if self.run.in_device >= self.depth:
            return None
        for group in self.behind_reservation():
            context = choose(group, self.rules())
            if context:
                return self.serve_reserved(context, group)
        least = choose(self.groups["/"], self.rules())
        if least:
            return self.serve(self.of_run(least), None)
        self.timer = self.opens()
        return None

    def serve_reserved(self, context, group):
        """Serves that for the group's reservation, unless others have let 19 times as much pass."""
        other = choose(self.groups["/"], self.rules())
        if other is None or group in other.own.groups():
            return self.serve(context, group)
        head = other.head(self.sweeps)
        if self.passed >= OTHERS * self.prices.together(head.op, 1, moved(head)):
            self.saw("request of others while one is behind its reservation")
            return self.serve(other, None)
        self.passed += self.prices.charge(context.head(self.sweeps))
        return self.serve(context, group)

    def of_run(self, least):
        """The context of the run that goes on, if it has a request that may go; else that one."""
        context = self.runs.context
        if not (context and self.is_there(context) and goes_first(context, self.rules())):
            return least
        if context is not least:
            self.saw("request of a run before one of a lower tag")
        return context

    def is_there(self, context):
        """Its I/O context has not exited."""
        return context in context.own.contexts.values()

    def behind_reservation(self):
        owed = [group for group in self.reserved
                if group.is_active() and group.limits.due() <= self.now << FINE]
        return sorted(owed, key=lambda group: (group.limits.due(), group.key))

    def rules(self):
        return Rules(self.now, self.age, self.passes, self.cost)

    def cost(self, context):
        """Of its next request; nothing if that was paid before."""
        return self.prices.charge(context.head(self.sweeps))

    def dearest(self, one):
        """Of a class's next read and its next write, what the dearer one costs."""
        contexts, costs = one.by_key(), [0]
        for is_read in (True, False):
            of_way = (context for context in contexts
                      if (context.head(self.sweeps).op == "R") == is_read)
            context = next(of_way, None)
            if context:
                costs.append(self.cost(context))
        return max(costs)

    def passes(self, context):
        rq = context.head(self.sweeps)
        if rq.op != "R" and self.writes >= self.writes_at_most:
            self.saw("write passed over for write_depth")
            return False
        if self.opens_for(context) > self.now:
            self.saw("request passed over for a cap")
            return False
        return True

    def opens_for(self, context):
        """From when on no cap is in the way of its head; a requeued one is not asked again."""
        if not self.has_caps:
            return 0
        rq = context.head(self.sweeps)
        if rq.paid:
            return 0
        return max(group.limits.opens(rq, self.burst) for group in context.own.groups())

    def opens(self):
        """When the first cap opens for what waits."""
        if not self.has_caps:
            return None
        contexts = [context for group in self.groups.values()
                    for one in group.own.classes for context in one.active]
        return min((at for at in map(self.opens_for, contexts) if at > self.now), default=None)

    def serve(self, context, reserved):
        rq, own = context.head(self.sweeps), context.own
        context.requests.remove(rq)
        if not rq.paid:
            context.position = rq.start
        context.by_sector.erase(rq.place)
        charge = self.charge(rq)
        self.runs.count(context, charge, self.windows.speed)
        top = context.path()[-1]
        self.run.log(ev="fair_dispatch", rq=rq.name, start=str(top.start), charge=charge,
                     why="reserved" if reserved else "weight")
        if count(context, charge, self.rules(), self.dearest):
            self.saw("request of a lower class in its turn")
        if rq.paid:
            self.saw("request dispatched again for nothing")
        context.pay(charge, self.now)
        own.look(self.now)
        self.limit(rq, own, charge, reserved)
        if not reserved:
            self.passed = max(0, self.passed - OTHERS * charge)
        self.waiting -= 1
        self.writes += rq.op != "R"
        self.dispatched += 1
        if rq.is_candidate:
            self.leave(rq)
        self.note_load(self.run.in_device + 1)
        return rq

    def charge(self, rq):
        """What the request is charged now, and in which window it is dispatched."""
        charge = self.prices.charge(rq)
        rq.window = self.windows.number
        if not rq.paid:
            rq.charge, rq.moved = charge, moved(rq)
        return charge

    def limit(self, rq, own, charge, reserved):
        for group in own.groups():
            if not rq.paid:
                group.limits.take(rq, charge, self.now)
        if reserved:
            self.saw("request dispatched for a reservation")
            most = reserved.parent.v + ADVANCES * reserved.advance(charge)
            if reserved.start > most:
                self.saw("start held back after a reservation")
                reserved.start = most
                reserved.rekey()

    def tell_busy(self, node):
        self.run.log(ev="fair_busy", node=node.name, start=str(node.start), v=str(node.parent.v))

    def saw_entry(self, node):
        while node and not node.is_active():
            entry = node.parent.entry(self.now)
            if node.start > entry:
                self.saw("start that was ahead of v")
            elif node.parent.v > entry:
                self.saw("start that grace set behind v")
            elif entry:
                self.saw("start that v set")
            node = node.up

    # --- merging ---

    def find_front(self, bio):
        own, key = self.place_of(bio)
        found = key in own.contexts and own.contexts[key].by_sector.find(bio.end)[0]
        return found.item if found else None

    def before(self, rq):
        place = rq.context.by_sector.prev(rq.place)
        return place and place.item

    def behind(self, rq):
        place = rq.context.by_sector.next(rq.place)
        return place and place.item

    def moved_to_front(self, rq):
        rq.context.by_sector.erase(rq.place)
        rq.place = rq.context.by_sector.insert(rq)

    def take(self, into, rq, kind):
        if into.task != rq.task:
            self.saw("merge into a request of another context")
        super().take(into, rq, kind)

    def absorbed(self, into, rq):
        """The request leaves its context, which it may never have entered."""
        context = rq.context
        if context is None:
            return
        if into.context is context and rq.since < into.since:
            self.saw("joined one leaves its place")
            into.since = rq.since
            context.requests.remove(into)
            context.requests.insert(context.requests.index(rq), into)
        context.requests.remove(rq)
        context.by_sector.erase(rq.place)
        self.waiting -= 1
        self.leave(rq)
        if not context.requests:
            self.saw("context that a merge emptied")
            context.leave()
        context.own.look(self.now)
        self.note_load(self.run.in_device)
