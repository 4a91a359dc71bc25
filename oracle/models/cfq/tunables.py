"""Tunables (24)."""

MS = 1_000_000
U32 = (1 << 32) - 1


class Tunables:
    """24. Times are in ns."""
    TIMES = {"fifo_expire_sync": 125, "fifo_expire_async": 250, "slice_sync": 100,
             "slice_async": 40, "slice_idle": 8, "group_idle": 8, "target_latency": 300}
    COUNTS = {"quantum": 8, "back_seek_max": 16384, "back_seek_penalty": 2,
              "slice_async_rq": 2, "low_latency": 1}
    LEAST = {"slice_idle": 0, "group_idle": 0, "back_seek_max": 0, "low_latency": 0}

    def __init__(self, values, rotational):
        for name, default in self.TIMES.items():
            setattr(self, name, default * MS)
        for name, default in self.COUNTS.items():
            setattr(self, name, default)
        if not rotational:
            self.slice_idle = 0
        for name, value in values.items():
            self.set(name, value)

    def set(self, name, value):
        plain = name[:-3] if name.endswith("_us") else name
        unit = 1000 if name.endswith("_us") else MS if plain in self.TIMES else 1
        if plain not in self.TIMES and plain not in self.COUNTS:
            raise ValueError("cfq has no tunable %r" % name)
        most = 1 if plain == "low_latency" else U32
        setattr(self, plain, min(max(int(value), self.LEAST.get(plain, 1)), most) * unit)
