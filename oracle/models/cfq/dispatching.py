"""Which queue goes on (12), and what it sends (13)."""
from kernels import V4_20
from objects import IDLE

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1


class Dispatching:
    # --- which queue goes on (12) ---

    def select(self):
        q = self.active
        if q is None:
            return self.activate(self.h.choose())
        if self.rq_queued == 0:
            return None
        if q.busy_wait and not q.empty():
            return self.replace(q, None, "wait_busy")
        if self.slice_over(q) and not q.forced:
            if self.waits_beyond_slice(q) or self.held_for_group(q, "B"):
                return None
            return self.replace(q, None, "slice_used")
        if not q.empty():
            return q
        c = self.close_cooperator(q)
        if c:
            if q.merge_into is None:
                self.set_up_merge(q, c)
            return self.replace(q, c, "cooperator")
        if self.timer.armed():
            return None
        if q.seeky() and q.idle_win and self.more_than_half_left(q):
            q.deep = q.idle_win = False
        if q.in_flight > 0 and self.should_idle(q):
            return None
        return None if self.held_for_group(q, "F") else self.replace(q, None, "empty")

    def waits_beyond_slice(self, q):
        """Reading K4"""
        if self.kernel is not V4_20 and self.read["b-first-test"] == "gone":
            return False
        return self.h.lone(q) and q.empty() and q.in_flight > 0 and self.should_idle(q)

    def more_than_half_left(self, q):
        return q.fresh or (q.slice_end - self.now) & U64 > (self.now - q.slice_start) & U64

    def held_for_group(self, q, after):
        """G, reached after another step."""
        g = q.group
        return (self.tun.group_idle > 0 and self.h.lone(q) and g.in_flight > 0
                and not (self.asks_think(after) and g.think.big(self.tun.group_idle)))

    def asks_think(self, after):
        """Reading K5"""
        if after == "F" and self.read["g-think"] == "from-b":
            return True
        return self.kernel.step_g_thinks

    def replace(self, q, c, why):
        self.expire(q, False, why)
        return self.activate(c if c else self.h.choose())

    def activate(self, c):
        if c:
            c.slice_start = c.slice_len = c.slice_end = c.slice_sent = c.slice_sectors = 0
            c.dispatch_start = self.now
            c.awaiting = c.forced = c.fifo_done = False
            c.fresh = True
            self.timer.cancel()
            self.log("active", q=c.name, group=c.group.path)
        self.active = c
        return c

    # --- dispatch (13) ---

    def poll(self):
        if self.busy == 0:
            return None
        q = self.select()
        if q is None:
            return None
        r = self.send_from(q)
        if r is None:
            return None
        q.slice_sent += 1
        q.forced = False
        if self.busy > 1:
            self.end_short_turn(q)
        return r

    def end_short_turn(self, q):
        if q.cls == IDLE:
            why = "idle_class"
        elif not q.sync and q.slice_sent >= 2 * self.tun.slice_async_rq * (8 - q.ioprio):
            why = "async_rq"
        else:
            return
        q.slice_end = self.now + 1
        self.expire(q, False, why)

    def send_from(self, q):
        r = None
        if not q.fifo_done:
            q.fifo_done = True
            oldest = q.fifo[0]
            if self.now >= oldest.fifo_deadline:
                r = oldest
                q.forced = True
                self.log("fifo", q=q.name, rq=r.name)
        if not self.gate(q):
            return None
        if r is None:
            r = q.next
        self.send(q, r)
        if self.active_ctx is None:
            self.active_ctx = r.ctx
        return r

    def gate(self, q):
        if q.forced:
            return True
        if self.should_idle(q) and self.sent[False] > 0:
            return False
        if not q.sync and self.sent[True] > 0:
            return False
        limit = 1 if q.cls == IDLE else max(self.tun.quantum // 2, 1)
        if q.in_flight >= limit:
            if q.cls == IDLE:
                return False
            alone = q.sync and self.busy_sync == 1
            if self.busy > 1 and self.ends_soon(q) and not alone:
                return False
            limit = U64 if self.busy == 1 or alone else self.tun.quantum
        if not q.sync and self.tun.low_latency:
            d = (self.now - self.last_delayed_sync) // self.tun.slice_sync & U32
            if d == 0 and q.in_flight == 0:
                d = 1
            limit = min(limit, d)
        return q.in_flight < limit

    def ends_soon(self, q):
        return q.fresh or self.now + self.tun.slice_idle * q.in_flight > q.slice_end

    def send(self, q, r):
        q.next = self.follower(q, r)
        self.take_off(q, r)
        if q.empty():
            self.unindex(q)
        q.in_flight += 1
        r.group.in_flight += 1
        self.sent[q.sync] += 1
        q.slice_sectors += r.sectors

    def take_off(self, q, r):
        q.sorted.erase(r.node)
        q.fifo.remove(r)
        q.queued -= 1
        self.rq_queued -= 1

    def activated(self, r):
        """3.2: the device took it."""
        self.in_driver += 1
        self.head_pos = r.end()
