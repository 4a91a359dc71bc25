"""Kyber, as plainly as it can be put.

Written from the description of Kyber and from FORMAT.md. It shares no code with the crates, and
where they count, link or pack, it searches lists and sets.
"""

from collections import deque

from run import LONGEST, TICK, Scheduler

START_TICK = 1_000_000
HZ = 1000

DOMAINS = ["READ", "WRITE", "DISCARD", "OTHER"]
DOMAIN_OF = {"R": "READ", "W": "WRITE", "WS": "WRITE", "D": "DISCARD"}
MEASURED = DOMAINS[:3]
TOKENS = {"READ": 256, "WRITE": 128, "DISCARD": 64, "OTHER": 16}
BATCH = {"READ": 16, "WRITE": 8, "DISCARD": 1, "OTHER": 1}
TARGET = {"READ": 2_000_000, "WRITE": 10_000_000, "DISCARD": 5_000_000_000}
ENOUGH = 500
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


class Kyber(Scheduler):
    def __init__(self, scenario, run):
        super().__init__(scenario, run)
        tunables = scenario["tunables"]
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

    def has_work(self):
        return any(self.arrived.values()) or any(self.rqs.values())

    def insert(self, rq):
        self.arrived[DOMAIN_OF[rq.op]].append(rq)

    def merge(self, bio):
        newest_first = list(reversed(self.arrived[DOMAIN_OF[bio.op]]))
        for rq in newest_first[:SCANNED]:
            if not rq.may_take(bio):
                continue
            if rq.end == bio.start:
                kind = "back"
            elif bio.end == rq.start:
                kind = "front"
            else:
                continue
            if rq.length + bio.length > LONGEST:
                rq.no_merge = True
                return False
            rq.take(bio)
            self.run.log(ev="M", rq=bio.name, into=rq.name, kind=kind)
            return True
        return False

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

    def complete(self, rq):
        domain, now = DOMAIN_OF[rq.op], self.run.now
        if domain in MEASURED:
            width = max(self.target[domain] // 4, 1)
            for kind, since in (("total", rq.arrival), ("I/O", rq.handed_over)):
                latency = now - since
                bucket = 0 if latency == 0 else min((latency - 1) // width, 7)
                self.histogram[domain, kind][bucket] += 1
            due = (now // TICK + HZ // 10) * TICK
            self.timer = due if self.timer is None else min(self.timer, due)
        self.tokens[domain].give_back(rq.token)

    def fire(self):
        self.timer = None
        bad = False
        for domain in MEASURED:
            if self.percentile(domain, "I/O", 90) >= 4:
                bad = True
        for domain in MEASURED:
            v = self.percentile(domain, "total", 99)
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
                    self.run.log(ev="depth", dom=domain, v=new)

    def percentile(self, domain, kind, percent):
        counts = self.histogram[domain, kind]
        samples = sum(counts)
        tick = START_TICK + self.run.now // TICK
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
        self.run.log(ev="latency", dom=domain, type=kind, pct=percent, bucket=bucket + 1,
                     samples=samples)
        return bucket
