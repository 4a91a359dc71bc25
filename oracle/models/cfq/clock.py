"""The scheduler's clock, and the unit in which it counts time: ns, or ticks (1, 27)."""

SECOND_NS = 1_000_000_000
AT_START_NS = 1000 * SECOND_NS              # what the clock reads at time 0
U64 = (1 << 64) - 1


class Clock:
    def __init__(self, hz, in_ticks):
        tick = SECOND_NS // hz
        self.in_ticks = in_ticks
        self.unit = tick if in_ticks else 1     # ns
        self.jiffy = tick // self.unit
        self.second = hz if in_ticks else SECOND_NS

    def read(self, t):
        """What it reads at a time of the run."""
        return (t + AT_START_NS) // self.unit

    def begins(self, reading):
        """From what time of the run on it reads that."""
        return reading * self.unit - AT_START_NS

    def ns(self, span):
        return span * self.unit

    def rounded_up(self, ns):
        return -(-ns // self.unit)

    def key(self, reading):
        """As keys are compared: ns without a sign, ticks with wrap, so in effect with one."""
        return reading if self.in_ticks else reading & U64
