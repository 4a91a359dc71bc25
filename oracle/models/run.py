"""The run of a scenario of oracle/FORMAT.md, for any scheduler."""

import heapq
from collections import Counter, deque

TICK = 1_000_000  # ns
LONGEST = 2560  # sectors of a merged request


class Request:
    """A bio, and the request that it becomes."""

    def __init__(self, name, task, op, start, length, now):
        self.name, self.bios = name, [name]
        self.task = task["id"]
        self.op, self.op_code, self.sync = op, op[0], op in ("R", "WS")
        self.group = task["group"]
        self.priority = "be/4" if task["ioprio"] == "none" else task["ioprio"]
        self.start, self.length = start, length
        self.arrival = now
        self.no_merge = False

    @property
    def end(self):
        return self.start + self.length

    def may_take(self, bio):
        """Whether the bio may become part of it where they adjoin, but for their length."""
        return (not self.no_merge and self.op_code == bio.op_code and self.group == bio.group
                and self.priority == bio.priority)

    def take(self, other):
        """Makes what adjoins it a part of it."""
        self.start = min(self.start, other.start)
        self.length += other.length
        self.bios += other.bios


class Scheduler:
    """Finds the time in `run.now`, and logs by `run.log`.

    A run asks of it: merge(bio), whether it is part of a queued request now; insert(rq);
    has_work(); dispatch(), the request that is handed out or None; complete(rq); fire(), at the
    time `timer`; and exit(task), as the last of the task's requests has completed. Where scenarios
    have `requeued` and `changes`: requeue(rq), and change_weights(path, weight, leaf_weight).
    """

    timer = None

    def __init__(self, scenario, run):
        self.run = run

    def exit(self, task):
        pass


class Run:
    """The run of a scenario by a kind of Scheduler; `lines` is its log."""

    def __init__(self, scenario, scheduler):
        self.now, self.lines = 0, []
        self.device = scenario["device"]
        self.merges = scenario["merges"]
        self.scheduler = scheduler(scenario, self)
        self.flushes = deque()
        self.events, self.sequence = [], 0
        self.in_device = 0
        self.waiting = deque()
        self.serving = [None] * self.device["channels"]
        self.heads = [0] * self.device["channels"]
        self.timer = None
        self.arrivals, self.followers = {}, {}
        self.left = Counter()  # requests by task
        self.requeued = dict(scenario.get("requeued", {}))
        self.changed = {task["id"]: {} for task in scenario["tasks"]}
        for change in scenario.get("changes", []):
            self.schedule(change["at_ns"], 3, change)
        for task in scenario["tasks"]:
            self.set_up(task)
        while self.left:
            self.now, kind, _, what = heapq.heappop(self.events)
            self.handle(kind, what)

    def log(self, **line):
        self.lines.append({"t": self.now, **line})

    def schedule(self, at, kind, what):
        self.sequence += 1
        heapq.heappush(self.events, (at, kind, self.sequence, what))

    def set_up(self, task):
        for i, request in enumerate(task["requests"]):
            name = f"{task['id']}.{i}"
            self.arrivals[name] = (task, request)
            self.left[task["id"]] += 1
            if len(request) > 4:
                self.followers.setdefault(request[4], []).append(name)
            elif i < task["depth"]:
                self.schedule(task["start_ns"] + request[0], 2, name)
            else:
                before = f"{task['id']}.{i - task['depth']}"
                self.followers.setdefault(before, []).append(name)

    def handle(self, kind, what):
        if kind == 0:
            self.leave_device(what)
        elif kind == 1:
            if self.timer != self.now:
                return
            self.timer = None
            self.scheduler.fire()
        elif kind == 2:
            self.arrive(what)
        else:
            self.change(what)
        while self.in_device < self.device["queue_depth"]:
            rq = self.next_request()
            if rq is None:
                break
            self.log(ev="D", rq=rq.name)
            rq.handed_over = self.now
            self.in_device += 1
            self.begin(rq)
        if self.scheduler.timer != self.timer:
            self.timer = self.scheduler.timer
            if self.timer is not None:
                self.schedule(self.timer, 1, None)

    def next_request(self):
        if self.flushes:
            return self.flushes.popleft()
        return self.scheduler.dispatch() if self.scheduler.has_work() else None

    def arrive(self, name):
        task, (_, op, start, length, *_) = self.arrivals[name]
        rq = Request(name, task | self.changed[task["id"]], op, start, length, self.now)
        self.log(ev="Q", rq=name)
        if rq.op == "F":
            self.flushes.append(rq)
        elif not (self.merges and self.scheduler.merge(rq)):
            self.scheduler.insert(rq)

    def change(self, change):
        """What is of a task is of its next requests."""
        if "task" in change:
            of_task = {key: change[key] for key in ("group", "ioprio") if key in change}
            self.changed[change["task"]].update(of_task)
        else:
            weights = change.get("weight"), change.get("leaf_weight")
            self.scheduler.change_weights(change["group"], *weights)

    def begin(self, rq):
        if None not in self.serving:
            self.waiting.append(rq)
            return
        self.serve(self.serving.index(None), rq)

    def serve(self, server, rq):
        device = self.device
        time = device["base_ns"] + rq.length * device["per_sector_ns"]
        if rq.start != self.heads[server]:
            distance = abs(rq.start - self.heads[server])
            time += device["seek_base_ns"]
            time += distance * device["seek_ns_per_mi_sector"] // 1_048_576
        self.heads[server] = rq.end
        self.serving[server] = rq
        self.schedule(self.now + time, 0, server)

    def leave_device(self, server):
        rq = self.serving[server]
        self.serving[server] = None
        self.in_device -= 1
        if self.requeued.get(rq.name, 0):
            self.requeued[rq.name] -= 1
            self.requeue(rq)
        else:
            self.complete(rq)
        if self.waiting:
            self.serve(server, self.waiting.popleft())

    def requeue(self, rq):
        self.log(ev="R", rq=rq.name)
        rq.no_merge = True
        if rq.op == "F":
            self.flushes.appendleft(rq)
        else:
            self.scheduler.requeue(rq)

    def complete(self, rq):
        for bio in rq.bios:
            self.log(ev="C", rq=bio)
        if rq.op != "F":
            self.scheduler.complete(rq)
        for bio in rq.bios:
            task = self.arrivals[bio][0]["id"]
            self.left[task] -= 1
            if not self.left[task]:
                del self.left[task]
                self.scheduler.exit(task)
        for bio in rq.bios:
            for follower in self.followers.get(bio, ()):
                self.schedule(self.now + self.arrivals[follower][1][0], 2, follower)
