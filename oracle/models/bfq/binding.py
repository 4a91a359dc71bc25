"""Which queue a request goes to, and when a queue comes and goes (6, 18.6, 18.7)."""

from objects import BE, CLASSES, IDLE, Context, Queue


def priority_of(text):
    """Class and level; none of its own is be/4."""
    if text == "idle":
        return IDLE, 7
    if text == "none":
        return BE, 4
    cls, level = text.split("/")
    return CLASSES[cls], int(level)


class Binding:
    def context_of(self, rq):
        """The context of the task that issues the request, set up by its first one."""
        if rq.task not in self.contexts:
            group, priority = self.groups[rq.group], priority_of(rq.priority)
            self.contexts[rq.task] = Context(rq.task, group, priority)
        return self.contexts[rq.task]

    # 6.1

    def bind(self, rq):
        rq.place = None
        context = rq.context = self.context_of(rq)
        queue, split, existed = context.queue[rq.sync], False, True
        if queue is None:
            queue = self.new_queue(context, rq.sync)
        elif queue.shared and queue.split_due and not context.stably_merged:
            split = True
            queue, existed = self.split(context, queue)
        queue.bound += 1
        context.in_flight += 1
        rq.queue = queue
        if queue.redirected_to is None and queue.procs == 1:
            queue.owner = context
            if split:
                self.restore(queue, context, existed)
        if queue.fresh and (self.burst_size > 0 or not sum(self.busy)):
            self.handle_burst(queue)

    def unbind(self, rq):
        """15.4"""
        rq.context.in_flight -= 1
        rq.queue.bound -= 1
        self.free_unused(rq.queue)

    # 6.3

    def new_queue(self, context, sync):
        if sync:
            queue = self.fresh_queue(context, True)
            queue.procs = 1
            queue = self.stable_merge(context, queue)
        else:
            slots = context.group.async_queues
            slot = IDLE if context.priority[0] == IDLE else context.priority
            if slot not in slots:
                slots[slot] = self.fresh_queue(context, False)
                slots[slot].procs = 1  # the group's
            queue = slots[slot]
            queue.procs += 1
        self.set_queue(context, sync, queue)
        return queue

    def fresh_queue(self, context, sync):
        queue = Queue(context, sync, self.now, self.tick)
        queue.max_budget = 2 * self.greatest_budget() // 3
        return queue

    # 18.6

    def set_queue(self, context, sync, queue):
        old = context.queue[sync]
        if old and old.owner is context:
            old.owner = None
        context.queue[sync] = queue
        if queue and context.stable_merge is queue:
            self.drop_stable_reference(context)

    def drop_stable_reference(self, context):
        queue, context.stable_merge = context.stable_merge, None
        if queue:
            queue.stable_references -= 1
            self.free_unused(queue)

    def drop_chain(self, queue):
        while queue.redirected_to:
            queue = queue.redirected_to
            queue.procs -= 1
            self.free_unused(queue)

    def free_unused(self, queue):
        """Whether the queue, which nothing keeps any more, has been freed."""
        if (queue.procs or queue.bound or queue.stable_references or queue.known
                or queue.counted_weight is not None or queue is self.in_service):
            return False
        if queue in self.burst_list:
            self.burst_list.remove(queue)
        self.set_waker(queue, None)
        for woken in queue.woken:
            woken.waker = None
        queue.woken = []
        if self.last_completed_queue is queue:
            self.last_completed_queue = None
        return True

    # 18.7

    def release(self, queue):
        """A process gives the queue up."""
        if queue.busy and not queue.fifo and queue is not self.in_service:
            self.remove_busy(queue, False)
        if queue.group.last_created is queue:
            queue.group.last_created = None
        queue.procs -= 1
        self.free_unused(queue)

    def exit(self, task):
        context = self.contexts.pop(task, None)
        if context is None:
            return
        self.drop_stable_reference(context)
        for sync in (True, False):
            queue = context.queue[sync]
            if queue is None:
                continue
            self.set_queue(context, sync, None)
            if queue is self.in_service:
                self.saw("exit of a process in service")
                self.leave_service(queue, "BUDGET_TIMEOUT")
            self.drop_chain(queue)
            self.release(queue)
