"""Kyber, and the run of a scenario of oracle/FORMAT.md, as plainly as they can be put.

Written from the description of Kyber and from FORMAT.md. It shares no code with the crates, and
where they count, link or pack, it searches lists and sets.
"""

import heapq
from collections import deque

START_TICK = 1_000_000
TICK = 1_000_000  # ns
HZ = 1000

DOMAINS = ["READ", "WRITE", "DISCARD", "OTHER"]
DOMAIN_OF = {"R": "READ", "W": "WRITE", "WS": "WRITE", "D": "DISCARD"}
MEASURED = DOMAINS[:3]
TOKENS = {"READ": 256, "WRITE": 128, "DISCARD": 64, "OTHER": 16}
BATCH = {"READ": 16, "WRITE": 8, "DISCARD": 1, "OTHER": 1}
TARGET = {"READ": 2_000_000, "WRITE": 10_000_000, "DISCARD": 5_000_000_000}
ENOUGH = 500
LONGEST = 2560  # sectors of a merged request
SCANNED = 8


class Tokens:
    """Which numbers are taken; a returned one stays taken until its word is swept."""

    def __init__(self, count):
        self.size = 64
        while 4 * self.size > count:
            self.size //= 2
        self.most = self.depth = count
        self.taken, self.returned = set(), set()
        self.hint = 0

    def words(self, depth):
        return -(-depth // self.size)

    def sweep(self, word):
        swept = {n for n in self.returned if n // self.size == word}
        self.taken -= swept
        self.returned -= swept

    def lowest(self, word):
        numbers = range(word * self.size, min((word + 1) * self.size, self.depth))
        return next((n for n in numbers if n not in self.taken), None)

    def get(self):
        if self.hint >= self.depth:
            self.hint = 0
        words = self.words(self.depth)
        first = self.hint // self.size
        for step in range(words):
            word = (first + step) % words
            found = self.lowest(word)
            if found is None:
                self.sweep(word)
                found = self.lowest(word)
            if found is not None:
                self.taken.add(found)
                if found == self.hint:
                    self.hint = found + 1 if found + 1 < self.depth - 1 else 0
                return found
        self.hint = 0
        return None

    def give_back(self, number):
        self.returned.add(number)
        if number < self.depth:
            self.hint = number

    def resize(self, depth):
        for word in range(self.words(self.depth)):
            self.sweep(word)
        self.depth = depth


class Kyber:
    def __init__(self, tunables, log):
        self.log = log
        self.target = dict(TARGET)
        self.target["READ"] = tunables.get("read_lat_nsec", self.target["READ"])
        self.target["WRITE"] = tunables.get("write_lat_nsec", self.target["WRITE"])
        self.tokens = {d: Tokens(TOKENS[d]) for d in DOMAINS}
        self.arrived = {d: deque() for d in DOMAINS}
        self.rqs = {d: deque() for d in DOMAINS}
        self.current, self.batching = "READ", 0
        self.histogram = {(d, t): [0] * 8 for d in MEASURED for t in ("total", "I/O")}
        self.deadline = {d: 0 for d in MEASURED}
        self.p99 = {d: -1 for d in MEASURED}
        self.timer = None

    def has_work(self):
        return any(self.arrived.values()) or any(self.rqs.values())

    def insert(self, rq):
        self.arrived[rq.domain].append(rq)

    def merge(self, bio):
        """The request that takes the bio, and at which end; or nothing."""
        newest_first = list(reversed(self.arrived[bio.domain]))
        for rq in newest_first[:SCANNED]:
            if rq.no_merge or rq.op_code != bio.op_code or rq.owner != bio.owner:
                continue
            if rq.start + rq.length == bio.start:
                kind = "back"
            elif bio.start + bio.length == rq.start:
                kind = "front"
            else:
                continue
            if rq.length + bio.length > LONGEST:
                rq.no_merge = True
                return None
            rq.start = min(rq.start, bio.start)
            rq.length += bio.length
            rq.bios.append(bio.name)
            return rq, kind
        return None

    def dispatch(self):
        if self.batching < BATCH[self.current]:
            rq = self.take(self.current)
            if rq:
                return rq
        self.batching = 0
        for _ in DOMAINS:
            self.current = DOMAINS[(DOMAINS.index(self.current) + 1) % 4]
            rq = self.take(self.current)
            if rq:
                return rq
        return None

    def take(self, domain):
        if not self.rqs[domain] and not self.arrived[domain]:
            return None
        token = self.tokens[domain].get()
        if token is None:
            return None
        if not self.rqs[domain]:
            self.rqs[domain], self.arrived[domain] = self.arrived[domain], deque()
        self.batching += 1
        rq = self.rqs[domain].popleft()
        rq.token = token
        return rq

    def complete(self, rq, now):
        if rq.domain in MEASURED:
            width = max(self.target[rq.domain] // 4, 1)
            for kind, since in (("total", rq.arrival), ("I/O", rq.handed_over)):
                latency = now - since
                bucket = 0 if latency == 0 else min((latency - 1) // width, 7)
                self.histogram[rq.domain, kind][bucket] += 1
            due = (now // TICK + HZ // 10) * TICK
            self.timer = due if self.timer is None else min(self.timer, due)
        self.tokens[rq.domain].give_back(rq.token)

    def fire(self, now):
        self.timer = None
        bad = False
        for domain in MEASURED:
            if self.percentile(domain, "I/O", 90, now) >= 4:
                bad = True
        for domain in MEASURED:
            v = self.percentile(domain, "total", 99, now)
            if bad:
                if v < 0:
                    v = self.p99[domain]
                self.p99[domain] = -1
            elif v >= 0:
                self.p99[domain] = v
            if v < 0:
                continue
            tokens = self.tokens[domain]
            if bad or v >= 4:
                new = max(1, min(tokens.depth * (v + 1) // 4, tokens.most))
                if new != tokens.depth:
                    tokens.resize(new)
                    self.log(now, ev="depth", dom=domain, v=new)

    def percentile(self, domain, kind, percent, now):
        counts = self.histogram[domain, kind]
        samples = sum(counts)
        tick = START_TICK + now // TICK
        if samples == 0:
            return -1
        if self.deadline[domain] == 0:
            self.deadline[domain] = tick + HZ
        if samples < ENOUGH and tick < self.deadline[domain]:
            return -1
        self.deadline[domain] = 0
        need = -(-samples * percent // 100)
        bucket = 0
        while bucket < 7 and counts[bucket] < need:
            need -= counts[bucket]
            bucket += 1
        self.histogram[domain, kind] = [0] * 8
        self.log(now, ev="latency", dom=domain, type=kind, pct=percent, bucket=bucket + 1,
                 samples=samples)
        return bucket


class Request:
    """A bio, and the request that it becomes."""

    def __init__(self, name, task, op, start, length, now):
        self.name, self.bios = name, [name]
        self.flush = op == "F"
        self.domain = DOMAIN_OF.get(op)
        self.op_code = op[0]
        priority = "be/4" if task["ioprio"] == "none" else task["ioprio"]
        self.owner = (task["group"], priority)
        self.start, self.length = start, length
        self.arrival = now
        self.no_merge = False


class Run:
    """The run of a scenario; `lines` is its log."""

    def __init__(self, scenario):
        self.lines = []
        self.device = scenario["device"]
        self.merges = scenario["merges"]
        self.kyber = Kyber(scenario["tunables"], self.log)
        self.flushes = deque()
        self.events, self.sequence = [], 0
        self.in_device = 0
        self.waiting = deque()
        self.serving = [None] * self.device["channels"]
        self.heads = [0] * self.device["channels"]
        self.timer = None
        self.arrivals, self.followers = {}, {}
        self.left = 0
        for task in scenario["tasks"]:
            self.set_up(task)
        while self.left:
            now, kind, _, what = heapq.heappop(self.events)
            self.handle(now, kind, what)

    def log(self, t, **line):
        self.lines.append({"t": t, **line})

    def schedule(self, at, kind, what):
        self.sequence += 1
        heapq.heappush(self.events, (at, kind, self.sequence, what))

    def set_up(self, task):
        for i, request in enumerate(task["requests"]):
            name = f"{task['id']}.{i}"
            self.arrivals[name] = (task, request)
            self.left += 1
            if i < task["depth"]:
                self.schedule(task["start_ns"] + request[0], 2, name)
            else:
                self.followers[f"{task['id']}.{i - task['depth']}"] = name

    def handle(self, now, kind, what):
        if kind == 0:
            self.complete(now, what)
        elif kind == 1:
            if self.timer != now:
                return
            self.timer = None
            self.kyber.fire(now)
        else:
            self.arrive(now, what)
        while self.in_device < self.device["queue_depth"]:
            rq = self.next_request()
            if rq is None:
                break
            self.log(now, ev="D", rq=rq.name)
            rq.handed_over = now
            self.in_device += 1
            self.begin(now, rq)
        if self.kyber.timer != self.timer:
            self.timer = self.kyber.timer
            self.schedule(self.timer, 1, None)

    def next_request(self):
        if self.flushes:
            return self.flushes.popleft()
        return self.kyber.dispatch() if self.kyber.has_work() else None

    def arrive(self, now, name):
        task, (_, op, start, length) = self.arrivals[name]
        rq = Request(name, task, op, start, length, now)
        self.log(now, ev="Q", rq=name)
        if rq.flush:
            self.flushes.append(rq)
            return
        merged = self.kyber.merge(rq) if self.merges else None
        if merged:
            into, kind = merged
            self.log(now, ev="M", rq=name, into=into.name, kind=kind)
        else:
            self.kyber.insert(rq)

    def begin(self, now, rq):
        if None not in self.serving:
            self.waiting.append(rq)
            return
        self.serve(now, self.serving.index(None), rq)

    def serve(self, now, server, rq):
        device = self.device
        time = device["base_ns"] + rq.length * device["per_sector_ns"]
        if rq.start != self.heads[server]:
            distance = abs(rq.start - self.heads[server])
            time += device["seek_base_ns"]
            time += distance * device["seek_ns_per_mi_sector"] // 1_048_576
        self.heads[server] = rq.start + rq.length
        self.serving[server] = rq
        self.schedule(now + time, 0, server)

    def complete(self, now, server):
        rq = self.serving[server]
        self.serving[server] = None
        self.in_device -= 1
        if not rq.flush:
            self.kyber.complete(rq, now)
        if self.waiting:
            self.serve(now, server, self.waiting.popleft())
        for bio in rq.bios:
            self.log(now, ev="C", rq=bio)
            self.left -= 1
        for bio in rq.bios:
            follower = self.followers.get(bio)
            if follower:
                self.schedule(now + self.arrivals[follower][1][0], 2, follower)
