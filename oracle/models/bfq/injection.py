"""Whose requests are sent while the device is kept idle for another, and how many (13)."""

from objects import MS, SMALL


class Injection:
    # 13.1

    def inject(self, queue):
        """The queue that a request is taken from, or none."""
        owner = queue.owner
        own = owner.queue[False] if owner else None
        if own and self.may_inject(own) and own.next_rq.context is owner:
            self.saw("injection of own writes")
            return own
        if queue.waker and self.may_inject(queue.waker):
            self.saw("injection of a waker")
            return queue.waker
        if queue.woken and self.may_inject(queue.woken[0]):
            self.saw("injection of one that is woken")
            return queue.woken[0]
        if not self.idling_boosts(queue) and (queue.factor == 1 or self.raised_busy > 1
                                              or not queue.short_think):
            return self.scan(queue)
        return None

    def may_inject(self, queue):
        return (queue.busy and queue.next_rq is not None
                and self.charge(queue, queue.next_rq) <= queue.left())

    def scan(self, queue):
        limit = queue.inject_limit
        free = queue.factor == 1 or not queue.short_think
        if (limit == 0 and queue.base_time == 0 and queue.waiting
                and self.tick >= self.idling_start_tick + self.slice_idle):  # Q8
            limit = 1
        if self.in_driver >= limit:
            return None
        for other in self.active_list:
            if (not other.fifo or not (free or other.factor > 1)
                    or self.charge(other, other.next_rq) > other.left()):
                continue
            if self.nonrot and other.next_rq.length >= SMALL:
                limit = min(1, limit)
            else:
                limit = queue.inject_limit
            if self.in_driver < limit:
                self.injected = True
                self.saw("injection within the limit")
                return other
        return None

    # 13.2

    def check_waker(self, queue):
        last = self.last_completed_queue
        if (last is None or last is queue or queue.short_think
                or self.now - self.last_completion >= 4 * MS):
            return
        if (last is not queue.tentative_waker
                or self.now > queue.waker_since + 128 * self.slice_idle):
            queue.tentative_waker, queue.waker_detections = last, 1
            queue.waker_since = self.now
        else:
            queue.waker_detections += 1
        if queue.waker_detections == 3:
            self.set_waker(queue, last)
            queue.tentative_waker = None
            self.log(ev="waker", q=queue.name, waker=last.name)

    def set_waker(self, queue, waker):
        """The queue goes to the front of those that the waker has woken."""
        if queue.waker:
            queue.waker.woken.remove(queue)
        queue.waker = waker
        if waker:
            waker.woken.insert(0, queue)

    # 13.3

    def begin_measurement(self, queue):
        """Where it is due: the request that arrives for the queue is to be measured."""
        if queue is not self.in_service or self.tick < queue.inject_tick + self.ticks(10):
            return
        if self.in_driver == 0 or queue.base_time > 0 and self.injected:
            self.measure_start, self.measure_next = self.now, True
            if self.in_driver == 0:
                self.injected = False

    def update_inject(self, queue):
        time, old = self.now - self.measure_start, queue.inject_limit
        limit = old
        if queue.base_time > 0 and self.injected:
            threshold = queue.base_time * 3 // 2
            if time >= threshold and old > 0:
                limit = old - 1
                queue.inject_tick = self.tick
            elif time < threshold and old <= self.max_in_driver:
                limit = old + 1
        if queue.base_time == 0 and self.in_driver == 1 or time < queue.base_time:
            if queue.base_time == 0:
                limit = max(1, old)
            queue.base_time = time
        elif not self.injected and self.in_driver == 1:
            queue.base_time = time
        self.set_inject_limit(queue, limit)
        self.measured_rq, self.injected = None, False

    # 13.4

    def reset_inject(self, queue):
        queue.base_time = 0
        self.measured_rq = None
        self.set_inject_limit(queue, 0 if queue.short_think else 1)
        queue.inject_tick = self.tick

    def set_inject_limit(self, queue, limit):
        if limit != queue.inject_limit:
            self.log(ev="inject_limit", q=queue.name, v=limit)
        queue.inject_limit = limit
