"""Queues whose requests are close to each other (18)."""
from objects import IDLE, RT

CLOSE = 8192


class Cooperating:
    def unindex(self, q):
        if q.near:
            self.indexes[q.own_ioprio].erase(q.near)
            q.near = None

    def index(self, q):
        self.unindex(q)
        if q.cls != IDLE and q.next:
            q.near = self.indexes[q.own_ioprio].insert(q, unique=True)

    def close_cooperator(self, q):
        if q.cls == IDLE or not q.sync or q.seeky() or self.h.lone(q):
            return None
        c = self.nearest(self.indexes[q.own_ioprio])
        if (c is None or c.group is not q.group or not c.sync or c.seeky()
                or (c.cls == RT) != (q.cls == RT)):
            return None
        return c

    def nearest(self, index):
        hit, last = index.find(self.head_pos)
        if hit:
            return hit.item
        if last is None:
            return None
        if abs(last.item.next.pos - self.head_pos) <= CLOSE:
            return last.item
        other = index.next(last) if last.item.next.pos < self.head_pos else index.prev(last)
        if other and abs(other.item.next.pos - self.head_pos) <= CLOSE:
            return other.item
        return None

    def set_up_merge(self, q, c):
        if c.process_refs() == 0:
            return
        while c.merge_into:
            if c.merge_into is q:
                return
            c = c.merge_into
        a, b = q.process_refs(), c.process_refs()
        if a == 0 or b == 0:
            return
        if b >= a:
            q.merge_into = c
            c.refs += a
        else:
            c.merge_into = q
            q.refs += b
