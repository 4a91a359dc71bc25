"""What a request costs: an op, its bytes, and a factor where it writes (sections 4 and 8)."""

OP = 1 << 20  # units
LEARN, REQUESTS, BYTES, FIXED = range(4)
WITHOUT_BYTES = ("D", "Z")


def moved(rq):
    """In sectors: a page at least."""
    return 0 if rq.op in WITHOUT_BYTES else max(rq.length, 8)


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
        return self.together(rq.op, 1, moved(rq))

    def cost(self, requests):
        """What they cost together: reads, writes and writes with FUA are added up apart."""
        cost = 0
        for ops in (("R",), ("W", "WS", *WITHOUT_BYTES), ("WF",)):
            own = [rq for rq in requests if rq.op in ops]
            cost += self.together(ops[0], len(own), sum(rq.moved for rq in own))
        return cost

    def together(self, op, requests, sectors):
        units = 0 if self.mode == BYTES else requests * OP
        if self.mode != REQUESTS:
            units += sectors * self.per_sector >> 8
        return max(units * self.factor(op) >> 16, requests)

    def factor(self, op):
        """In 2^-16."""
        if op == "R":
            return 65536
        return self.fua if op == "WF" else self.write
