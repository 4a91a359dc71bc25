"""Whether the device is kept idle for a queue that has nothing to send, and for how long (12)."""

from objects import IDLE, MS


class Idling:
    # 12.1

    def better_to_idle(self, queue):
        if queue.procs == 0:
            return False
        if self.strict:
            return True
        if self.slice_idle == 0 or not queue.sync or queue.cls == IDLE:
            return False
        return self.idling_boosts(queue) or self.idling_guarantees(queue)

    def idling_boosts(self, queue):
        """Whether it is good for throughput, and does no harm."""
        if queue.procs == 0:
            return False
        sequential = not queue.seeky() and queue.io_bound and queue.short_think
        boosts = (not self.nonrot and self.hw_tag == 0
                  or (not self.nonrot or self.hw_tag == 0) and sequential)
        return boosts and self.raised_busy == 0

    def idling_guarantees(self, queue):
        if queue.procs == 0:
            return False
        busy = sum(self.busy)
        return (queue.factor > 1 and (self.raised_busy < busy
                                      or self.in_driver >= queue.dispatched + 4)
                or self.asymmetric(queue) or busy == 1)

    # 12.2

    def arm(self, queue):
        queue.waiting = True
        span = self.slice_idle
        if queue.seeky() and queue.factor == 1 and not self.asymmetric(queue):
            span = min(span, 2 * MS)
        elif queue.factor > 1:
            span = max(span, 20 * MS)
        self.idling_start, self.idling_start_tick = self.now, self.tick
        self.timer = self.run.now + span
        self.log(ev="idle", q=queue.name, ns=span)

    def stop_waiting(self, queue):
        queue.waiting = False
        self.timer = None

    # 12.4

    def fire(self):
        self.timer = None
        queue = self.in_service
        self.log(ev="idle_timer")
        if queue is None:
            return
        queue.waiting = False
        if self.tick >= queue.slot_end:
            self.expire(queue, True, "BUDGET_TIMEOUT")
        elif not queue.fifo:
            self.expire(queue, True, "TOO_IDLE")
