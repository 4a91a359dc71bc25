"""When processes share a queue, and when they part again (18)."""

from copy import copy

from objects import IDLE, LONG_AGO

CLOSE = 8192  # sectors


class Cooperation:
    # 18.1

    def cooperator(self, queue, position, context):
        """The queue that the process is to use from now on, or none."""
        if queue.redirected_to:
            while queue.redirected_to:
                queue = queue.redirected_to
            return queue
        if self.nonrot_queueing:
            return None
        if (queue.sync and context.stable_merge and not queue.fresh
                and self.tick > queue.split_at + self.ticks(600)
                and self.tick > queue.creation + self.ticks(600)):
            return self.late_stable_merge(queue, context)
        if self.too_late(queue) or sum(self.busy) == 1:
            return None
        serving = self.in_service
        if (serving and serving is not queue
                and abs(position - self.slot_last_position) <= CLOSE
                and queue.parent is serving.parent and self.fit(queue, serving)):
            target = self.set_up(queue, serving)
            if target:
                self.saw("queue merge: with that in service")
                return target
        close = self.nearest(queue, position)
        if close and close is not queue and self.fit(queue, close):
            target = self.set_up(queue, close)
            if target:
                self.saw("queue merge: with one that waits")
            return target
        return None

    def late_stable_merge(self, queue, context):
        other = context.stable_merge
        procs = min(queue.procs, other.procs)
        self.drop_stable_reference(context)
        if self.idling_boosts(queue) or procs == 0:
            return None
        target = self.set_up(queue, other)
        if target:
            self.saw("queue merge: stable, late")
            context.stably_merged = True
            if target.owner:
                target.owner.stably_merged = True
        return target

    def too_late(self, queue):
        return queue.served_since_busy > 0 and self.tick > queue.first_served + self.hz // 10

    def fit(self, queue, other):
        return (not self.too_late(other) and queue.cls != IDLE and queue.cls == other.cls
                and not queue.seeky() and not other.seeky() and queue.sync and other.sync)

    # 18.2: the queues of a group by the position of their next request

    def leave_positions(self, queue):
        if queue.position:
            queue.group.positions.erase(queue.position)
            queue.position = None

    def update_position(self, queue):
        if self.nonrot_queueing:
            return
        self.leave_positions(queue)
        if not self.too_late(queue) and queue.cls != IDLE and queue.next_rq:
            queue.position = queue.group.positions.insert(queue, unique=True)

    def nearest(self, queue, position):
        tree = queue.group.positions
        found, last = tree.find(position)
        if found or last is None:
            return found and found.item
        start = last.item.next_rq.start
        if abs(start - position) <= CLOSE:
            return last.item
        other = tree.next(last) if start < position else tree.prev(last)
        if other and abs(other.item.next_rq.start - position) <= CLOSE:
            return other.item
        return None

    # 18.3

    def set_up(self, queue, target):
        """The queue that this one is to be merged into at last, or none."""
        if target.procs == 0:
            return None
        while target.redirected_to:
            if target.redirected_to is queue:
                return None
            target = target.redirected_to
        if queue.procs == 0 or target.procs == 0 or target.parent is not queue.parent:
            return None
        queue.redirected_to = target
        target.procs += queue.procs
        return target

    def redirect(self, context, queue, target):
        while queue is not target:
            following = queue.redirected_to
            self.redirect_one_step(context, queue)
            if following is not target:
                self.saw("queue merge of several steps")
            queue = following

    def redirect_one_step(self, context, queue):
        target = queue.redirected_to
        self.log(ev="merge_queues", q=queue.name, into=target.name)
        self.save(queue)
        self.save(target)
        target.io_bound = target.io_bound or queue.io_bound
        queue.io_bound = False
        if queue.waker and target.waker is None and queue.waker is not target:
            self.saw("queue merge hands over a waker")
            self.set_waker(target, queue.waker)
            target.tentative_waker = None
        if target.factor == 1 and queue.factor > 1:
            target.raise_span, target.raise_tick = queue.raise_span, queue.raise_tick
            target.interactive_start = queue.interactive_start
            self.set_factor(target, queue.factor)
            self.saw("queue merge hands over a raising")
            target.change_due = True
            if target.busy:
                self.raised_busy += 1
        if queue.factor > 1:
            self.set_factor(queue, 1)
            queue.change_due = True
            if queue.busy:
                self.raised_busy -= 1
        self.set_queue(context, True, target)
        target.shared = True
        target.owner = queue.owner = None
        if queue.group.last_created is queue:
            queue.group.last_created = target
        self.release(queue)

    # 18.4

    def stable_merge(self, context, queue):
        """The queue that the context is to use: the new one or another."""
        last = queue.group.last_created
        if (last is None or last.creation + self.ticks(600) < queue.creation
                or last.parent is not queue.parent
                or (last.cls, last.level) != (queue.cls, queue.level)):
            queue.group.last_created = queue
        elif last.creation + self.burst_interval >= queue.creation:
            if self.nonrot_queueing:
                return self.early_stable_merge(context, queue, last)
            last.stable_references += 1
            context.stable_merge = last
        return queue

    def early_stable_merge(self, context, queue, last):
        target = self.set_up(queue, last)
        if target is None:
            return queue
        self.saw("queue merge: stable, early")
        if target.owner:
            target.owner.stably_merged = True
        context.stably_merged = True
        queue.owner = context
        self.redirect(context, queue, target)
        return target

    # 18.5

    def save(self, queue):
        context = queue.owner
        if context is None:
            return
        context.saved_in_large_burst = queue.in_large_burst
        context.was_in_burst_list = queue in self.burst_list
        saved = {name: getattr(queue, name) for name in (
            "base_time", "inject_limit", "inject_tick", "short_think", "io_bound", "window_start",
            "idle_total", "factor", "interactive_start", "served_raised", "raise_tick",
            "raise_span")}
        saved["think"] = copy(queue.think)
        saved["new_weight"] = queue.orig_weight
        if queue.fresh and not queue.in_large_burst and self.low_latency:
            self.saw("raising saved that had not begun")
            saved.update(
                factor=self.interactive_factor, interactive_start=LONG_AGO,
                raise_span=self.interactive_span(), raise_tick=self.tick)
            saved["served_raised"] = context.saved["served_raised"] if context.saved else 0
        context.saved = saved

    def split(self, context, queue):
        """The queue that the context is to use, and whether it existed before."""
        waker = self.kept_waker(queue)
        if queue.in_large_burst:
            context.saved_in_large_burst = True
        self.log(ev="split_queue", q=queue.name)
        if queue.procs == 1 and queue.redirected_to is None:
            self.saw("split that leaves the last its queue")
            queue.shared = queue.split_due = False
            queue.name_after(context)
            return queue, True
        self.set_queue(context, True, None)
        self.drop_chain(queue)
        self.release(queue)
        queue = self.fresh_queue(context, True)
        queue.procs = 1
        self.set_queue(context, True, queue)
        if context.was_in_burst_list and self.large_burst or context.saved_in_large_burst:
            queue.in_large_burst = True
            self.saw("split in a large burst")
        elif context.was_in_burst_list:
            self.burst_list.append(queue)
            self.saw("split in a burst")
        queue.split_at = self.tick
        if waker:
            self.set_waker(queue, waker)
            self.saw("split that keeps a waker")
        return queue, False

    def kept_waker(self, queue):
        waker, at = queue.waker, queue.redirected_to
        in_chain = False
        while at:
            in_chain = in_chain or at is waker
            at = at.redirected_to
        if waker and in_chain:
            self.saw("split from a waker in its chain")
        if waker is None or waker.procs == int(in_chain):
            return None
        return waker

    def restore(self, queue, context, existed):
        saved = dict(context.saved)
        raising = {name: saved.pop(name) for name in (
            "factor", "served_raised", "interactive_start", "raise_tick", "raise_span")}
        saved["think"] = copy(saved["think"])
        for name, value in saved.items():
            setattr(queue, name, value)
        old_factor = queue.factor if self.low_latency else 1
        if self.low_latency:
            for name, value in raising.items():
                setattr(queue, name, value)
        over = queue.in_large_burst or self.tick > queue.raise_tick + queue.raise_span
        if queue.factor > 1 and over:
            self.saw("raising that is over at a split")
            if (self.soft_rt_kind(queue) and not queue.in_large_burst
                    and self.tick <= queue.interactive_start + self.interactive_span()):
                self.back_to_interactive(queue)
            else:
                queue.factor = 1
        self.log_raising(queue)
        queue.change_due = True
        if existed and queue.busy:
            self.raised_busy += (queue.factor > 1) - (old_factor > 1)
