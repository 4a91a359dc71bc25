"""Which queues are busy, and whether all that compete are alike (5)."""


class Symmetry:
    # 5.1

    def add_busy(self, queue):
        self.activate_path(queue, queue.resumable, False, False)
        queue.resumable = False
        queue.busy = True
        self.busy[queue.cls] += 1
        if queue.dispatched == 0 and queue.factor == 1:
            self.counter_add(queue)
        if queue.factor > 1:
            self.raised_busy += 1
        if queue.waker:
            queue.waker.woken.remove(queue)
            queue.waker.woken.insert(0, queue)

    def remove_busy(self, queue, expiring):
        queue.busy = False
        self.busy[queue.cls] -= 1
        if queue.factor > 1:
            self.raised_busy -= 1
        self.deactivate_path(queue, True, expiring)
        if queue.dispatched == 0:
            self.drop_pending(queue)

    # 5.2

    def counter_add(self, queue):
        if queue.counted_weight is None:
            queue.counted_weight = queue.weight
            self.weights[queue.weight] += 1

    def counter_drop(self, queue):
        if queue.counted_weight is None:
            return
        self.weights[queue.counted_weight] -= 1
        if self.weights[queue.counted_weight] == 0:
            del self.weights[queue.counted_weight]
        queue.counted_weight = None
        self.free_unused(queue)

    def drop_pending(self, queue):
        for group in queue.parent.path() if queue.parent else ():
            if group.children.next or group.children.in_service:
                break
            if group.pending:
                group.pending = False
                self.groups_pending -= 1
        self.counter_drop(queue)

    # 5.3

    def asymmetric(self, queue):
        smallest = (queue.counted_weight is not None
                    and queue.counted_weight == min(self.weights))
        return (not smallest and len(self.weights) > 1
                or sum(count != 0 for count in self.busy) > 1
                or self.groups_pending > 0)
