"""Which queues have their weight raised for a while (17), and bursts, which have not (17.6)."""

from objects import LONG_AGO, SECOND


class Raising:
    def soft_rt_kind(self, queue):
        return queue.raise_span == self.soft_rt_span

    # 17.2

    def interactive_span(self):
        span = self.reference // self.peak_rate
        return max(self.ticks(3000), min(span, self.ticks(25_000)))

    # 17.3

    def raise_on_arrival(self, queue, old_factor, should_raise, interactive, in_burst, soft_rt):
        if old_factor == 1 and should_raise:
            if interactive:
                queue.served_raised = 0
                queue.raise_span = self.interactive_span()
                self.set_factor(queue, self.interactive_factor)
            else:
                queue.interactive_start = LONG_AGO
                queue.raise_span = self.soft_rt_span
                self.set_factor(queue, 100 * self.interactive_factor)
            queue.budget = min(queue.budget, 2 * self.least_budget())
        elif old_factor > 1:
            if interactive:
                queue.raise_span = self.interactive_span()
                self.set_factor(queue, self.interactive_factor)
            elif in_burst:
                self.set_factor(queue, 1)
            elif soft_rt:
                if not self.soft_rt_kind(queue):
                    queue.interactive_start = queue.raise_tick
                    queue.raise_span = self.soft_rt_span
                    self.set_factor(queue, 100 * self.interactive_factor)
                queue.raise_tick = self.tick

    def soft_rt_bound(self, queue):
        paid = queue.busy_since + self.hz * queue.served_since_busy // self.soft_rt_max_rate
        return max(queue.soft_rt_from, paid,
                   self.tick + self.slice_idle * self.hz // SECOND + 4)

    # 17.4

    def update_raising(self, queue):
        if queue.factor > 1:
            if queue.in_large_burst:
                self.saw("raising ends for a large burst")
                self.end_raising(queue)
            elif self.tick > queue.raise_tick + queue.raise_span:
                over = self.tick > queue.interactive_start + self.interactive_span()
                if not self.soft_rt_kind(queue) or over:
                    self.end_raising(queue)
                else:
                    self.back_to_interactive(queue)
                    self.log_raising(queue)
            if (queue.factor > 1 and not self.soft_rt_kind(queue)
                    and queue.served_raised > 120_000):
                self.saw("raising ends for what was served")
                self.end_raising(queue)
        if (queue.weight > queue.orig_weight) != (queue.factor > 1):
            self.apply_weight(queue)

    # 17.5

    def end_raising(self, queue):
        if not self.soft_rt_kind(queue):
            queue.soft_rt_from = self.tick
        if queue.busy:
            self.raised_busy -= 1
        queue.raise_span, queue.raise_tick = 0, self.tick
        self.set_factor(queue, 1)
        queue.change_due = True

    def back_to_interactive(self, queue):
        self.saw("raising back to interactive")
        queue.raise_span = self.interactive_span()
        queue.raise_tick = queue.interactive_start
        queue.factor = self.interactive_factor
        queue.change_due = True

    def set_factor(self, queue, factor):
        changed, queue.factor = factor != queue.factor, factor
        if changed:
            self.log_raising(queue)

    def log_raising(self, queue):
        span = self.milliseconds(queue.raise_span)
        self.log(ev="wr", q=queue.name, coeff=queue.factor, ms=span)

    # 17.6

    def handle_burst(self, queue):
        if (queue in self.burst_list or queue.in_large_burst
                or self.tick <= queue.split_at + self.ticks(10)):
            return
        if (self.tick > self.burst_tick + self.burst_interval
                or queue.parent is not self.burst_parent):
            self.large_burst = False
            idle = not sum(self.busy)
            self.burst_list = [queue] if idle else []
            self.burst_size = 1 if idle else 0
            self.burst_parent = queue.parent
        elif self.large_burst:
            queue.in_large_burst = True
            self.saw("queue joins a large burst")
        else:
            self.burst_size += 1
            self.burst_list.append(queue)
            if self.burst_size == 8:
                self.large_burst = True
                self.log(ev="large_burst", v=1)
                for member in self.burst_list:
                    member.in_large_burst = True
                self.burst_list = []
        self.burst_tick = self.tick
