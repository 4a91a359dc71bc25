"""Whose request takes the device from the active queue (17)."""
from cooperating import CLOSE
from objects import IDLE, NOIDLE, RT


class Preempting:
    def should_preempt(self, n, r):
        a = self.active
        if a is None or n.cls == IDLE:
            return False
        if a.cls == IDLE:
            return True
        if a.cls == RT and n.cls != RT:
            return False
        if r.sync and not a.sync and not a.forced:
            return True
        if not self.reaches(n.group, a.group):
            return False
        if self.slice_over(a):
            return True
        if n.cls == RT and a.cls != RT:
            return True
        if self.h.serving_type() == NOIDLE and n.type() == NOIDLE and a.empty():
            return True
        if a.empty() and not self.should_idle(a):
            return True
        if self.active_ctx is None or not a.awaiting:
            return False
        return abs(r.pos - self.head_pos) <= CLOSE

    def reaches(self, g, other):
        """Row 6. Ancestors reach, in kernels without a hierarchy too (reading K3)."""
        if self.kernel.side_by_side and self.read["ancestors"] == "none":
            return g is other
        return other.is_in_or_below(g)

    def preempt(self, n):
        a = self.active
        self.log("preempt", q=n.name, over=a.name)
        kind = a.type()
        self.expire(a, True, "preempted")
        if kind != n.type():
            self.h.forget_span(n.group)
        self.h.place(n, front=True)
        n.slice_end = 0
        n.fresh = True
