"""How many sectors a queue may have served before another one is (9), and how it learns (16.4)."""


class Budgets:
    # 9.1

    def greatest_budget(self):
        return 16384 if self.budgets < 194 else self.max_budget

    def least_budget(self):
        return self.greatest_budget() // 32

    # 9.3

    def charge(self, queue, rq):
        if queue.sync or queue.factor > 1 or self.asymmetric(queue):
            return rq.length
        self.saw("async request that counts three times")
        return 3 * rq.length

    # 9.4

    def budget_for_activation(self, queue, in_time):
        """Whether the queue may preempt, as it goes on with the budget that it had."""
        if queue.resumable and in_time and queue.left() > 0:
            queue.budget = min(queue.left(), queue.max_budget)
            queue.service = 0
            self.saw("budget that goes on")
            return True
        queue.service = 0
        queue.budget = max(queue.max_budget, self.charge(queue, queue.next_rq))
        queue.resumable = False
        return False

    # 9.5

    def update_budget(self, queue):
        if queue.next_rq is None or queue is self.in_service:
            return
        budget = max(queue.max_budget, self.charge(queue, queue.next_rq), queue.service)
        if budget != queue.budget:
            queue.budget = budget
            self.activate_path(queue, False, False, False)

    # 16.3

    def charge_time(self, queue, ms):
        full = self.milliseconds(self.hz // 8)
        wanted = max(self.max_budget * min(ms, full) // full, queue.service)
        queue.budget = max(queue.budget, wanted)
        if wanted > queue.service:
            self.saw("charged for the time in service")
        self.served(queue, wanted - queue.service)

    # 16.4

    def adapt_budget(self, queue, why):
        least = self.least_budget()
        raised = queue.factor > 1
        budget = 2 * least if raised else queue.max_budget
        if queue.sync and not raised:
            if why == "PREEMPTED":
                return
            budget = self.learnt_budget(queue, why, budget, least)
        elif not queue.sync:
            budget = self.max_budget
        queue.max_budget = budget
        if self.budgets >= 194 and self.user_max_budget == 0:
            queue.max_budget = min(queue.max_budget, self.max_budget)
        if queue.next_rq:
            queue.budget = max(queue.max_budget, self.charge(queue, queue.next_rq))

    def learnt_budget(self, queue, why, budget, least):
        if why == "TOO_IDLE" and queue.dispatched == 0:
            return budget - 4 * least if budget > 5 * least else least
        if why in ("TOO_IDLE", "BUDGET_TIMEOUT"):
            return min(2 * budget, self.max_budget)
        if why == "BUDGET_EXHAUSTED":
            return min(4 * budget, self.max_budget)
        return max(queue.service, least)
