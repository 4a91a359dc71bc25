"""Which queue is served, how requests go to the device and come back (11, 14, 15)."""

from objects import IDLE


class Service:
    def has_work(self):
        return self.queued > 0

    # 14

    def dispatch(self):
        if self.strict and self.in_driver > 0:
            return None
        queue = self.select()
        if queue is None:
            return None
        rq = queue.next_rq
        self.served(queue, self.charge(queue, rq))
        if queue is self.in_service and self.measure_next:
            self.measure_next, self.measured_rq = False, rq
        queue.dispatched += 1
        self.rate_sample(rq)
        self.remove(rq)
        if queue is self.in_service:
            self.update_raising(queue)
            if sum(self.busy) > 1 and queue.cls == IDLE:
                self.expire(queue, False, "BUDGET_EXHAUSTED")
        else:
            self.log(ev="inject", q=queue.name, **{"for": self.in_service.name})
        self.in_driver += 1
        return rq

    # 11

    def select(self):
        queue = self.in_service
        if queue:
            empty = not queue.fifo
            if self.budget_expired(queue) and not (empty and self.better_to_idle(queue)):
                why = "BUDGET_TIMEOUT"
            else:
                chosen, why = self.keep(queue)
                if why is None:
                    return chosen
            self.expire(queue, False, why)
        while True:
            queue = self.next_queue()
            self.serve(queue)
            if queue is None:
                return None
            chosen, why = self.keep(queue)
            if why is None:
                return chosen
            self.expire(queue, False, why)

    def keep(self, queue):
        """The queue that a request is taken from, or none, while this one stays in service; or why
        it does not."""
        if queue.next_rq:
            if self.charge(queue, queue.next_rq) > queue.left():
                return None, "BUDGET_EXHAUSTED"
            if queue.waiting:
                self.stop_waiting(queue)
            return queue, None
        if queue.waiting or queue.dispatched != 0 and self.better_to_idle(queue):
            return self.inject(queue), None
        return None, "NO_MORE_REQUESTS"

    def budget_expired(self, queue):
        return ((not queue.waiting or queue.left() >= queue.budget // 3)
                and self.tick >= queue.slot_end)

    def serve(self, queue):
        self.in_service = queue
        self.slot_last_position = 0
        if queue is None:
            return
        queue.fifo_checked = False
        self.budgets = (self.budgets * 7 + 256) // 8
        if (self.tick > queue.raise_tick and queue.factor > 1 and self.soft_rt_kind(queue)
                and self.tick > queue.slot_end):
            if queue.slot_end > queue.raise_tick:
                queue.raise_tick += self.tick - queue.slot_end
            else:
                queue.raise_tick = self.tick
            self.saw("raising prolonged for the time out of service")
        longer = 1 if self.soft_rt_kind(queue) else queue.weight // queue.orig_weight
        self.budget_start = self.now
        queue.slot_end = self.tick + self.timeout * longer
        self.log(ev="serve", q=queue.name, budget=queue.budget, weight=queue.weight)

    # 15.1

    def complete(self, rq):
        queue = rq.queue
        if rq is self.measured_rq:
            self.update_inject(queue)
        self.detect_queueing()
        self.in_driver -= 1
        queue.dispatched -= 1
        if queue.dispatched == 0 and not queue.busy:
            queue.slot_end = self.tick
            self.drop_pending(queue)
        queue.think.last_end = self.now
        self.check_late_completion()
        self.last_completion = self.now
        self.last_completed_queue = None if queue.shared else queue
        if (queue.soft_rt_check and queue.dispatched == 0 and not queue.fifo
                and queue.factor != self.interactive_factor):
            queue.soft_rt_from = self.soft_rt_bound(queue)
        if queue is self.in_service:
            self.completed_in_service(queue)
        self.unbind(rq)

    def completed_in_service(self, queue):
        if not queue.fifo and self.better_to_idle(queue):
            if queue.dispatched == 0:
                self.arm(queue)
        elif self.budget_expired(queue):
            self.expire(queue, False, "BUDGET_TIMEOUT")
        elif not queue.fifo:
            self.expire(queue, False, "NO_MORE_REQUESTS")

    # 15.2

    def detect_queueing(self):
        self.max_in_driver = max(self.max_in_driver, self.in_driver)
        if self.hw_tag == 1 or self.in_driver + self.queued <= 3:
            return
        queue = self.in_service
        if (queue and queue.short_think and queue.dispatched + len(queue.fifo) < 3
                and self.in_driver < 3):
            return
        if self.hw_samples < 32:
            self.hw_samples += 1
            return
        before, self.hw_tag = self.hw_tag, int(self.max_in_driver > 3)
        if self.hw_tag != before:
            self.log(**{"ev": "hw_tag", "from": before, "to": self.hw_tag})
        self.max_in_driver = self.hw_samples = 0
        queueing = self.nonrot and self.hw_tag == 1
        if queueing != self.nonrot_queueing:
            self.log(ev="nonrot_with_queueing", v=int(queueing))
        self.nonrot_queueing = queueing
