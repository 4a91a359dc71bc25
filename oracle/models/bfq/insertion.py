"""What becomes of a request that arrives, and which of a queue's requests is next (7, 8)."""

from objects import DEFAULT_WEIGHT, FAR, IDLE, MS, SMALL, U32, U64


class Insertion:
    def insert(self, rq):
        self.bind(rq)
        if self.join_at_insert(rq):
            return
        self.enqueue_in_queue(rq)
        self.enter(rq)

    # 7.3

    def enqueue_in_queue(self, rq):
        queue, context = rq.queue, rq.context
        target = self.cooperator(queue, rq.start, context)
        if target:
            queue.bound -= 1
            target.bound += 1
            rq.queue = target
            if context.queue[True] is queue:
                self.redirect(context, queue, target)
            queue.fresh = False
            self.free_unused(queue)
            queue = target
        if queue.dispatched == 0 and not queue.busy:
            queue.think.add(self.now, 2 * self.slice_idle)
        self.update_short_think(queue)
        self.update_seek(queue, rq)
        self.add(rq)
        rq.fifo_time = self.now + self.fifo_expire[rq.sync]
        queue.fifo.append(rq)
        self.after_add(rq)

    # 7.4

    def update_short_think(self, queue):
        if (not queue.sync or queue.cls == IDLE or self.slice_idle == 0
                or self.tick <= queue.split_at + self.raise_min_idle):
            return
        short = not (queue.think.samples > 80 and queue.think.mean > self.slice_idle // 2)
        changed, queue.short_think = short != queue.short_think, short
        if (changed and queue.base_time == 0
                and (self.tick >= queue.inject_tick + self.ticks(100) or not short)):
            self.reset_inject(queue)

    def request_seeky(self, position, rq):
        far = position != 0 and abs(rq.start - position) > FAR
        return far and (not self.nonrot or rq.length < SMALL)

    def update_seek(self, queue, rq):
        seeky = self.request_seeky(queue.last_request_end, rq)
        queue.seek_history = (queue.seek_history << 1 | seeky) & U32
        if queue.factor > 1 and self.soft_rt_kind(queue) and queue.all_seeky():
            self.saw("soft real time ends for seeks")
            if self.tick > queue.interactive_start + self.interactive_span():
                self.end_raising(queue)
            else:
                self.back_to_interactive(queue)
                self.log_raising(queue)

    # 7.5

    def add(self, rq):
        queue = rq.queue
        old_factor, interactive = queue.factor, False
        self.queued += 1
        if queue.sync and rq.context.in_flight <= 1:
            self.check_waker(queue)
            if self.tick >= queue.inject_tick + self.ticks(1000):
                self.reset_inject(queue)
            self.begin_measurement(queue)
        if queue.sync:
            self.update_intensity(queue)
        rq.place = queue.sorted.insert(rq)
        old_next = queue.next_rq
        queue.next_rq = self.choose(old_next, rq, self.last_position)
        if queue.next_rq is not old_next:
            self.update_position(queue)
        if not queue.busy:
            interactive = self.idle_to_busy(queue, old_factor, rq)
        else:
            if (self.low_latency and old_factor == 1 and not rq.sync
                    and self.tick > queue.raise_tick + self.raise_async_gap):
                queue.raise_span = self.interactive_span()
                self.set_factor(queue, self.interactive_factor)
                self.saw("async queue raised")
                self.raised_busy += 1
                queue.change_due = True
            if queue.next_rq is not old_next:
                self.update_budget(queue)
        if self.low_latency and (old_factor == 1 or queue.factor == 1 or interactive):
            queue.raise_tick = self.tick

    def update_intensity(self, queue):
        window = (self.now - queue.window_start) & U64
        if not queue.sorted.first() and queue.dispatched == 0:
            queue.idle_total = (queue.idle_total + self.now - queue.think.last_end) & U64
        if queue.fresh:
            return
        queue.io_bound = (queue.idle_total * 5) & U64 <= window
        if window > 200 * MS:
            queue.window_start = self.now - window // 2
            queue.idle_total //= 2

    # 7.6

    def idle_to_busy(self, queue, old_factor, rq):
        """Whether the queue deserves interactive raising."""
        long_idle = queue.dispatched == 0 and self.tick > queue.slot_end + self.raise_min_idle
        in_time = self.now <= queue.think.last_end + 3 * self.slice_idle
        in_burst = queue.in_large_burst
        plain = queue.new_weight == DEFAULT_WEIGHT
        soft_rt = (not queue.all_seeky() and not in_burst and self.tick > queue.soft_rt_from
                   and queue.dispatched == 0 and plain)
        interactive = not in_burst and long_idle and plain
        private = queue.owner or rq.context.stably_merged
        should_raise = self.low_latency and (
            queue.factor > 1 or queue.sync and private and (interactive or soft_rt))
        preempt = self.budget_for_activation(queue, in_time)
        if (not queue.fresh and long_idle
                and self.tick > queue.slot_end + self.ticks(10_000)):
            if queue in self.burst_list:
                self.burst_list.remove(queue)
            if queue.in_large_burst:
                self.saw("queue leaves a large burst")
            queue.in_large_burst = False
        queue.fresh = False
        if self.low_latency and self.tick > queue.split_at + self.raise_min_idle:
            self.raise_on_arrival(queue, old_factor, should_raise, interactive, in_burst, soft_rt)
            if queue.factor != old_factor:
                queue.change_due = True
        queue.busy_since, queue.served_since_busy = self.tick, 0
        queue.soft_rt_check = False
        self.add_busy(queue)
        serving = self.in_service
        if (serving and (preempt and queue.factor >= serving.factor
                         or self.higher(queue, serving) or not self.better_to_idle(serving))
                and self.may_preempt()):
            self.log(ev="preempt", q=queue.name, over=serving.name)
            self.expire(serving, False, "PREEMPTED")
        return interactive

    def higher(self, queue, other):
        if queue.cls < other.cls:
            return True
        if queue.parent is other.parent:
            return queue.weight > other.weight
        return (queue.parent or queue).weight > (other.parent or other).weight

    # 7.7

    def after_add(self, rq):
        queue = rq.queue
        queue.last_request_end = rq.end
        if queue is not self.in_service or not queue.waiting:
            return
        small = len(queue.fifo) == 1 and rq.length < 32
        late = self.tick >= queue.slot_end
        if small and self.idling_boosts(queue) and not late:
            self.saw("small request that does not end the idling")
            return
        self.stop_waiting(queue)
        if late:
            self.expire(queue, False, "BUDGET_TIMEOUT")

    # 8.1

    def choose(self, one, other, position):
        if one is None or other is None or one is other:
            return one or other
        if one.sync != other.sync:
            return one if one.sync else other
        ways = [self.way(rq.start, position) for rq in (one, other)]
        if ways[0] is not None and ways[1] is not None:
            if ways[0] != ways[1]:
                return one if ways[0] < ways[1] else other
            return one if one.start >= other.start else other
        if ways[0] is None and ways[1] is None:
            return one if one.start <= other.start else other
        return other if ways[0] is None else one

    def way(self, start, position):
        """How far it is, backwards counting more; none if that is too far back."""
        if start >= position:
            return start - position
        if start + 2 * self.back_max >= position:
            return (position - start) * self.back_penalty
        return None

    # 8.2

    def next_after(self, queue, last):
        if not queue.fifo_checked:
            queue.fifo_checked = True
            head = queue.fifo[0]
            if head is not last and self.now >= head.fifo_time:
                self.log(ev="fifo", q=queue.name, rq=head.name)
                return head
        before, after = queue.sorted.prev(last.place), queue.sorted.next(last.place)
        if after is None:
            after = queue.sorted.first()
            if after.item is last:
                after = None
        return self.choose(after and after.item, before and before.item, last.start)

    # 8.3

    def remove(self, rq):
        queue = rq.queue
        if rq is queue.next_rq:
            queue.next_rq = self.next_after(queue, rq)
            self.update_budget(queue)
        queue.fifo.remove(rq)
        self.queued -= 1
        queue.sorted.erase(rq.place)
        self.leave(rq)
        if queue.fifo:
            self.update_position(queue)
            return
        queue.next_rq = None
        if queue.busy and queue is not self.in_service:
            self.remove_busy(queue, False)
            queue.budget = queue.service = 0
        self.leave_positions(queue)

    # The elevator's questions (7.1)

    def find_front(self, bio):
        if self.bio_queue is None:
            return None
        found, _ = self.bio_queue.sorted.find(bio.end)
        return found and found.item

    def before(self, rq):
        place = rq.queue.sorted.prev(rq.place)
        return place and place.item

    def behind(self, rq):
        place = rq.queue.sorted.next(rq.place)
        return place and place.item

    def moved_to_front(self, rq):
        queue = rq.queue
        before = self.before(rq)
        if before is None or rq.start >= before.start:
            return
        self.saw("front merge that passes the request before")
        queue.sorted.erase(rq.place)
        rq.place = queue.sorted.insert(rq)
        old_next = queue.next_rq
        queue.next_rq = self.choose(old_next, rq, self.last_position)
        if queue.next_rq is not old_next:
            self.update_budget(queue)
            self.update_position(queue)

    def absorbed(self, into, rq):
        queue = into.queue
        if rq.place:
            if rq.queue is queue and rq.fifo_time < into.fifo_time:
                queue.fifo.remove(into)
                queue.fifo.insert(queue.fifo.index(rq), into)
                into.fifo_time = rq.fifo_time
            if queue.next_rq is rq:
                queue.next_rq = into
            self.remove(rq)
        self.unbind(rq)
