"""Caps and reservations of groups (section 7). Times are in 2^-20 ns."""

FINE = 20
SECOND = 10 ** 9 << FINE
BYTES = 512  # of a sector
BEHIND = 10_000_000  # ns: what a reservation makes up for at most
ADVANCES = 16  # of v, which a reservation may put a group ahead
OTHERS = 19  # times what others get, which reservations may have while these wait
CAPS = {"riops": ("R", False), "wiops": ("W", False), "rbps": ("R", True), "wbps": ("W", True)}
RESERVATIONS = {"min_iops": False, "min_bps": True}


def way(rq):
    return "R" if rq.op == "R" else "W"


def size(rq):
    """In bytes; what has none to transfer has none."""
    return 0 if rq.op in ("D", "Z") else rq.length * BYTES


class Cap:
    """One direction of a group, in requests or in bytes a second."""

    def __init__(self, name, rate):
        (self.way, self.of_bytes), self.rate = CAPS[name], rate
        self.tat = 0

    def concerns(self, rq):
        return way(rq) == self.way

    def take(self, rq, now):
        amount = size(rq) if self.of_bytes else 1
        self.tat = max(self.tat, now << FINE) + -(-amount * SECOND // self.rate)


class Reservation:
    """Ops or bytes a second of a group, at least."""

    def __init__(self, name, rate):
        self.of_bytes, self.rate, self.due = RESERVATIONS[name], rate, 0

    def take(self, rq, charge, now):
        amount = size(rq) << FINE if self.of_bytes else charge
        self.due = max(self.due, (now - BEHIND) << FINE) + amount * 10 ** 9 // self.rate


class Limits:
    """Those of one group, as the scenario has it."""

    def __init__(self, group):
        self.caps = [Cap(name, group[name]) for name in CAPS if name in group]
        self.reservations = [Reservation(name, group[name]) for name in RESERVATIONS
                             if group.get(name)]

    def opens(self, rq, burst):
        """From when on the group may send the request, in ns."""
        tats = [cap.tat for cap in self.caps if cap.concerns(rq)]
        return -(-max(tats) >> FINE) - burst if tats else 0

    def due(self):
        return min(one.due for one in self.reservations)

    def take(self, rq, charge, now):
        for cap in self.caps:
            if cap.concerns(rq):
                cap.take(rq, now)
        for one in self.reservations:
            one.take(rq, charge, now)
