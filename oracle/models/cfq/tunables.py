"""Tunables (24, 27)."""

US, MS = 1_000, 1_000_000                   # ns
U32 = (1 << 32) - 1


class Tunables:
    """Times are in the clock's unit."""
    # Defaults as parts of a second: in ticks they are cut off (27).
    TIMES = {"fifo_expire_sync": (1, 8), "fifo_expire_async": (1, 4), "slice_sync": (1, 10),
             "slice_async": (1, 25), "slice_idle": (1, 125), "group_idle": (1, 125),
             "target_latency": (3, 10)}
    RAISED_TO_ONE = ("slice_async", "slice_idle", "group_idle")
    COUNTS = {"quantum": 8, "back_seek_max": 16384, "back_seek_penalty": 2,
              "slice_async_rq": 2, "low_latency": 1}
    LEAST = {"slice_idle": 0, "group_idle": 0, "back_seek_max": 0, "low_latency": 0,
             "group_isolation": 0}
    MOST = {"low_latency": 1, "group_isolation": 1}

    def __init__(self, values, rotational, clock, kernel):
        self.clock = clock
        self.counts = dict(self.COUNTS)
        if kernel.group_isolation:
            self.counts["group_isolation"] = 0
        for name, (part, of) in self.TIMES.items():
            least = 1 if name in self.RAISED_TO_ONE else 0
            setattr(self, name, max(clock.second * part // of, least))
        for name, default in self.counts.items():
            setattr(self, name, default)
        if not rotational:
            self.slice_idle = 0
        for name, value in values.items():
            self.set(name, value)

    def set(self, name, value):
        plain = name[:-3] if name.endswith("_us") else name
        if plain not in self.TIMES and plain not in self.counts:
            raise ValueError("cfq has no tunable %r" % name)
        number = min(max(int(value), self.LEAST.get(plain, 1)), self.MOST.get(plain, U32))
        if plain in self.TIMES:
            number = self.clock.rounded_up(number * (MS if plain == name else US))
        setattr(self, plain, number)
