"""What a request costs: an op, its bytes, and a factor where it writes (sections 4 and 8)."""

OP = 1 << 20  # units
LEARN, REQUESTS, BYTES, FIXED = range(4)
WITHOUT_BYTES = ("D", "Z")


class Prices:
    """Set once; nothing is learned."""

    def __init__(self, tunables):
        self.mode = tunables["cost"]
        self.per_sector = (1 << 37) // tunables["cost_op_bytes"]  # units * 2^8
        self.write = tunables["cost_write"] * 65536 // 100
        self.fua = tunables["cost_fua"] * 65536 // 100

    def charge(self, rq):
        """In units; the second time that a request is dispatched it costs nothing."""
        if rq.paid:
            return 0
        units = 0 if self.mode == BYTES else OP
        if self.mode != REQUESTS and rq.op not in WITHOUT_BYTES:
            units += max(rq.length, 8) * self.per_sector >> 8  # a page at least
        return max(units * self.factor(rq.op) >> 16, 1)

    def factor(self, op):
        """In 2^-16."""
        if op == "R":
            return 65536
        return self.fua if op == "WF" else self.write
