"""How long a slice is (4), and the end of a turn with its charge (10)."""
from by_vdisktime import Entities, QueuesByVdisktime
from objects import BE, NORMAL_LEVEL, RT


class Slices:
    # --- what is charged for (9.2) ---

    def iops_mode(self):
        return self.kernel.iops_mode and self.tun.slice_idle == 0 and self.hw_tag != 0

    def group_delay(self):
        return self.group_delay_iops if self.iops_mode() else self.clock.second // 5

    # --- slices (4) ---

    def nominal(self, sync, level):
        base = self.tun.slice_sync if sync else self.tun.slice_async
        return base + (base // 5) * (NORMAL_LEVEL - level)

    def offset_of_one(self, q):
        """What one competitor moves a new queue back by (8.2)."""
        return self.nominal(True, 0) - self.nominal(q.sync, q.ioprio)

    def scaled_slice(self, q):
        s = self.nominal(q.sync, q.ioprio)
        if not self.tun.low_latency:
            return s
        n = self.refresh_average(q.group, RT if q.cls == RT else BE)
        want, have = self.tun.slice_sync * n, self.h.group_span(q.group)
        if want > have:
            low = min(s, 2 * self.tun.slice_idle * s // self.tun.slice_sync)
            s = max(s * have // want, low)
        return s

    def refresh_average(self, g, cls):
        busy = self.h.average_count(g, cls)
        high, low = max(g.avg[cls], busy), min(g.avg[cls], busy)
        g.avg[cls] = (3 * high + low + 2) // 4
        return g.avg[cls]

    def begin_slice(self, q):
        q.slice_start = self.now
        q.slice_len = self.scaled_slice(q)
        q.slice_end = self.now + q.slice_len
        q.fresh = False
        self.log("slice", q=q.name, ns=self.clock.ns(q.slice_len))

    def slice_over(self, q):
        return not q.fresh and self.now >= q.slice_end

    # --- the end of a turn (10) ---

    def expire(self, q, timed_out, why):
        if q.awaiting:
            self.timer.cancel()
        q.awaiting = q.busy_wait = False
        if q.shared and q.seeky():
            q.to_split = True
        said = {}
        if timed_out:
            q.resid = self.residue(q)
            said["resid"] = self.clock.ns(q.resid)
        used, amount = self.charge(q.group, q)
        self.log_expiry(q, why, said, used, amount)
        if q.listed and q.empty():
            self.unlist(q)
        if q.listed:
            self.h.place(q, front=False)
            self.index(q)
        if q is self.active:
            self.active = None
        self.active_ctx = None

    def residue(self, q):
        """Where fresh, this updates the average, in all modes (reading 6)."""
        if not q.fresh:
            return q.slice_end - self.now
        if isinstance(self.h, QueuesByVdisktime) and self.read["fresh-expiry"] == "nothing":
            return 0
        return self.scaled_slice(q)

    def charge(self, g, q):
        """Says what was used, and what the group is charged."""
        used = self.slice_usage(q)
        amount = used
        if self.iops_mode():
            amount = q.slice_sent
        elif not q.sync and self.sync_queues(g) == 0:
            amount = q.slice_len
        self.h.charge(g, q, amount)
        return used, amount

    def log_expiry(self, q, why, said, used, amount):
        g, iops = q.group, int(self.iops_mode())
        self.log("expire", q=q.name, why=why, **said, used=self.clock.ns(used), disp=q.slice_sent,
                 charge=amount if iops else self.clock.ns(amount), iops=iops,
                 sect=q.slice_sectors, group=g.path, vt=g.vtime, qvt=q.vtime)
        if self.kernel.slice_trace:
            self.log("slice_used", q=q.name, sl_used=used, disp=q.slice_sent, charge=amount,
                     iops=iops, sect=q.slice_sectors)

    def sync_queues(self, g):
        """Reading 12: queues of the group's own."""
        n = g.n_queues
        if isinstance(self.h, Entities) and self.read["nobody-else-sync"] == "entities":
            n = g.count_all()
        return n - g.count_async() - g.idle_tree.count

    def slice_usage(self, q):
        if q.slice_start in (0, self.now):
            if self.kernel.requests_as_ticks and self.hw_tag != 0:
                return q.slice_sent
            return max(self.now - q.dispatch_start, self.clock.jiffy)
        return min(self.now - q.slice_start, q.slice_len)
