"""How a queue's turn ends (16)."""


class Expiration:
    # 16.1

    def expire(self, queue, compensate, why):
        """`compensate`: what was idled at the end is not time in service."""
        slow, ms = self.is_slow(queue, compensate)
        if queue.factor == 1 and (slow or why == "BUDGET_TIMEOUT"
                                  and queue.left() >= queue.budget // 3):
            self.charge_time(queue, ms)
        if self.low_latency and queue.factor == 1:
            queue.raise_tick = self.tick
        if self.low_latency and not queue.fifo:
            if queue.dispatched == 0:
                queue.soft_rt_from = self.soft_rt_bound(queue)
            else:
                queue.soft_rt_check = True
        self.injected = self.measure_next = False
        self.measured_rq = None
        self.log(ev="expire", q=queue.name, why=why, slow=int(slow), charged=queue.service,
                 budget=queue.budget, in_dev=queue.dispatched)
        self.adapt_budget(queue, why)
        path = list(queue.path())
        if self.leave_service(queue, why):
            self.saw("queue freed as it expires")
            return
        if not queue.busy and why not in ("BUDGET_TIMEOUT", "BUDGET_EXHAUSTED"):
            queue.resumable = True
        else:
            queue.service = 0
        for group in path[1:]:
            group.service = 0

    # 16.2

    def is_slow(self, queue, compensate):
        """And for how many ms it was in service."""
        if not queue.sync:
            return False, 0
        end = self.idling_start if compensate else self.now
        us = (end - self.budget_start) // 1000
        if us < 1000:
            return queue.seeky(), 2 if self.nonrot else 8
        if us > 20_000:
            return queue.service < self.max_budget // 2, us // 1000
        return queue.seeky(), us // 1000

    # 16.5

    def leave_service(self, queue, why):
        """Whether the queue has been freed."""
        if queue.shared and queue.seeky():
            queue.split_due = True
        kept = why == "PREEMPTED" and self.idling_guarantees(queue)
        if not queue.fifo and not kept:
            if queue.dispatched == 0:
                queue.slot_end = self.tick
            self.remove_busy(queue, True)
        else:
            if not queue.fifo:
                self.saw("empty queue that stays busy")
            self.activate_path(queue, False, True, True)
            if queue.fifo:
                self.update_position(queue)
        return self.reset_in_service()
