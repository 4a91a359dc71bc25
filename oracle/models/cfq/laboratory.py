"""The device and the run (FORMAT.md)."""
import heapq
import json

from checks import check
from merging import Merging
from objects import BE, IDLE, NORMAL_LEVEL, RT, Request
from scheduler import Cfq

COMPLETION, TIMER, ARRIVAL = 0, 1, 2


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

    def start(self, reading):
        self.event = self.run.schedule(self.run.cfq.clock.begins(reading), TIMER, None)

    def cancel(self):
        self.event = None

    def armed(self):
        return self.event is not None


class Run:
    def __init__(self, scenario, kernel, mode, out, readings, checked=False):
        self.t, self.out, self.checked = 0, out, checked
        self.heap, self.sequence = [], 0
        self.timer = Timer(self)
        self.cfq = Cfq(scenario, kernel, mode, self.log, self.timer, readings)
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
        self.cfq.now = self.cfq.clock.read(self.t)
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
