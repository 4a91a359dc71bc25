"""Whether the device is kept free for a queue (14.3, 15), and the estimators behind it (16, 20)."""
from objects import IDLE, SYNC

U32 = (1 << 32) - 1
SEEK_FAR = 800
SMALL_NONROT = 64
DEPTH_MIN = 5
DEPTH_SAMPLES = 50
DEEP = 4


class Idling:
    # --- waiting for a busy group (14.3) ---

    def wait_busy(self, q):
        if not q.empty() or not self.h.lone(q) or q.group.think.big(self.tun.group_idle):
            return False
        if self.slice_over(q):
            return True
        left = q.slice_end - self.now
        ctx = self.active_ctx
        if ctx and ctx.think.valid() and left < ctx.think.mean:
            return True
        return left <= self.clock.jiffy

    # --- idling (15) ---

    def queueing_ssd(self):
        return not self.rotational and self.hw_tag != 0

    def should_idle(self, q):
        if self.tun.slice_idle == 0 or q.cls == IDLE:
            return False
        if q.idle_win and not self.queueing_ssd():
            return True
        return q.tree.count == 1 and q.sync and not q.tree.think.big(self.tun.slice_idle)

    def arm(self, q):
        if self.queueing_ssd() and not (self.kernel.ssd_waits_for_group and self.tun.group_idle):
            return
        by_group = not self.should_idle(q)
        if by_group and self.tun.group_idle == 0:
            return
        ctx = self.active_ctx
        if q.in_flight > 0 or ctx is None or not ctx.alive:
            return
        if ctx.think.valid() and q.slice_end - self.now < ctx.think.mean:
            return
        if by_group and not (self.h.lone(q) and self.thinks_shortly(q)):
            return
        q.awaiting = True
        wait = self.tun.group_idle if by_group else self.tun.slice_idle
        self.timer.start(self.now + wait)
        self.log("arm_idle", q=q.name, ns=self.clock.ns(wait), group=int(by_group))

    def thinks_shortly(self, q):
        return not (self.kernel.group_wait_thinks and q.tree.think.big(self.tun.group_idle))

    def arm_at_need(self, q, r):
        """14.4; in some kernels only where the serving tree or the group needs it (27)."""
        self.needs_idling |= not r.noidle
        if (not self.kernel.arms_only_at_need or self.h.serving_type() == SYNC
                or self.needs_idling or self.h.lone(q)):
            self.arm(q)

    def on_timer(self):
        self.log("idle_timer")
        q = self.active
        if q is None or q.forced:
            return
        if self.slice_over(q):
            self.expire(q, False, "slice_used")
            return
        if self.busy == 0 or not q.empty():
            return
        q.deep = False
        self.expire(q, False, "idle_timer")

    # --- estimators (16) ---

    def update_think_times(self, q, r):
        if q.sync:
            r.ctx.think.update(self.now, self.tun.slice_idle)
            q.tree.think.update(self.now, self.tun.slice_idle)
        q.group.think.update(self.now, self.tun.group_idle)

    def update_seekiness(self, q, r):
        if self.rotational:
            distance = abs(r.pos - q.last_end_pos) if q.last_end_pos else 0
            bad = distance > SEEK_FAR
        else:
            bad = r.sectors < SMALL_NONROT
        q.seek_bits = (q.seek_bits << 1 | bad) & U32

    def update_idle_window(self, q, r):
        if not q.sync or q.cls == IDLE:
            return
        if q.queued >= DEEP:
            q.deep = True
        on = q.idle_win
        if (q.next.noidle or not r.ctx.alive or self.tun.slice_idle == 0
                or (not q.deep and q.seeky())):
            on = False
        elif r.ctx.think.valid():
            on = r.ctx.think.mean <= self.tun.slice_idle
        if on != q.idle_win:
            self.log("idle_window", q=q.name, on=int(on))
        q.idle_win = on

    # --- hardware queueing (20) ---

    def estimate_depth(self):
        self.depth_seen = max(self.depth_seen, self.in_driver)
        if self.hw_tag == 1 or (self.rq_queued <= DEPTH_MIN and self.in_driver <= DEPTH_MIN):
            return
        a = self.active
        if (a and a.idle_win and a.in_flight + a.queued < DEPTH_MIN
                and self.in_driver < DEPTH_MIN):
            return
        self.depth_samples += 1
        if self.depth_samples <= DEPTH_SAMPLES:
            return
        old, self.hw_tag = self.hw_tag, int(self.depth_seen >= DEPTH_MIN)
        if old != self.hw_tag:
            self.log("hw_tag", **{"from": old, "to": self.hw_tag})
