"""Runs, and the windows in which the speed of the device is measured that they are as long as."""

from dataclasses import dataclass, field

MS = 1_000_000
SECOND = 1_000_000_000
START_DEPTH = 16  # of the first window, which opens before a scenario sets a depth
STARVED = 20  # a window is starved if for more than this part of it nothing waited
COMPLETIONS, DEAREST, GAPS = 4, 48, 8  # what is enough: of the depth, of requests, of gaps
SLOW = 8, 500 * MS  # completions and a time that are enough, too
BURSTY = 4  # such windows in a row begin cut mode
CUT_GAPS = 4  # long gaps of a window in cut mode
SHORT_GAP, LONGEST_CUT = 30 * MS, 2 * SECOND  # which end it


class Runs:
    """The run that goes on: the context that was served last, and what it may still be charged."""

    def __init__(self, run_us):
        self.run_us, self.context, self.left = run_us, None, 0

    def count(self, context, charge, speed):
        """A request of the context is dispatched, in its run or as the first of one."""
        if context is not self.context:
            self.context, self.left = context, speed * self.run_us // 1_000_000
        self.left -= charge
        if not 0 < charge <= self.left:  # the next one costs as much, and has to fit
            self.context = None


@dataclass
class Measured:
    """What completed in a window behind its guard."""

    since: int
    charges: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    longest_gap: int = 0
    long_gaps: int = 0
    starved: int = 0  # for how long nothing waited, and there was room


class Windows:
    """One after the other. `speed` is that of the last one that closed, in units a second."""

    def __init__(self, depth, reachable, least, cost):
        self.depth, self.least, self.cost = min(depth, reachable), least, cost
        self.speed = self.number = 0
        self.last = 0  # when a request last completed
        self.bursty = 0
        self.cut = None  # in cut mode the longest gap of the last window
        self.noted = 0, False  # when the load was noted, and whether the device starves since then
        self.open(0, min(START_DEPTH, reachable), 0)

    def open(self, now, depth, in_device):
        self.of_depth, self.older, self.guarded, self.opened = depth, in_device, 0, now
        self.measured = Measured(now) if not in_device and self.cut is None else None

    def note(self, now, waits, in_device):
        """From now on something waits or not, and the device has so many."""
        since, starved = self.noted
        if self.measured and starved:
            self.measured.starved += now - since
        self.noted = now, not waits and in_device < self.of_depth

    def leaves(self, rq):
        """The device has a request no more that may have been dispatched before the window."""
        if rq.window < self.number and self.older:
            self.older -= 1

    def complete(self, rq, now, in_device):
        before, self.last = self.last, now
        gap = now - before
        is_long = self.cut is not None and gap >= self.cut // 2
        if not self.measured:
            self.guard(rq, now, is_long)
            return
        end = before if self.cut is None else now
        if gap and self.is_enough(end - self.measured.since, is_long):
            self.close(end - self.measured.since, now - self.measured.since)
            self.number += 1
            self.open(now, self.depth, in_device)
        elif now > self.measured.since or self.cut is not None:
            self.measure(rq, gap, is_long)

    def guard(self, rq, now, is_long):
        """What was dispatched before the window is not measured."""
        self.leaves(rq)
        self.guarded += 1
        if self.older and self.guarded < 16 * self.of_depth + 512:
            return
        if self.cut is not None and now - self.opened >= LONGEST_CUT:
            self.cut, self.bursty = None, 0
        if self.cut is None:
            self.measured = Measured(now)
        elif is_long:
            self.measured = Measured(now)
            self.measure(rq, 0, False)

    def measure(self, rq, gap, is_long):
        self.measured.charges.append(rq.charge)
        self.measured.requests.append(rq)
        self.measured.longest_gap = max(self.measured.longest_gap, gap)
        self.measured.long_gaps += is_long

    def is_enough(self, span, is_long):
        of, count = self.measured, len(self.measured.requests)
        if self.cut is not None:
            return is_long and of.long_gaps + 1 >= CUT_GAPS or span >= LONGEST_CUT
        return (count >= COMPLETIONS * self.of_depth and span >= self.least
                and sum(of.charges) >= DEAREST * max(of.charges)
                and span >= GAPS * of.longest_gap) or self.is_slow(span)

    def is_slow(self, span):
        count, long = SLOW
        return len(self.measured.requests) >= count and span >= long

    def close(self, span, whole):
        self.speed = self.cost(self.measured.requests) * SECOND // max(span, 1)
        gap = self.measured.longest_gap
        if self.cut is not None:
            self.cut = gap if gap >= SHORT_GAP and span < LONGEST_CUT else None
            self.bursty = 0
            return
        is_starved = self.measured.starved * STARVED > whole
        is_bursty = gap * GAPS > span and self.is_slow(span) and not is_starved
        self.bursty = self.bursty + 1 if is_bursty else 0
        if self.bursty >= BURSTY and gap >= SHORT_GAP:
            self.cut, self.bursty = gap, 0
