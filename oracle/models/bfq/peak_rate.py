"""How fast the device is, and so how much the greatest budget is (10)."""

from objects import MS, SECOND, U32, U64


class PeakRate:
    # 10.1

    def rate_sample(self, rq):
        if self.samples == 0:
            self.restart_rate(rq)
        elif self.now - self.last_dispatch > 100 * MS and self.in_driver == 0:
            self.close_rate(rq)
        else:
            self.samples += 1
            near = not self.request_seeky(self.last_position, rq)
            if near and (self.in_driver > 0 or self.now - self.last_completion < 2 * MS):
                self.near_samples += 1
            self.total_sectors += rq.length
            if self.samples % 32 == 0:
                self.greatest_length = rq.length
            else:
                self.greatest_length = max(self.greatest_length, rq.length)
            self.interval = self.now - self.first_dispatch
            if self.interval >= SECOND:
                self.close_rate(rq)
        self.last_position = rq.end
        if rq.queue is self.in_service:
            self.slot_last_position = rq.end
        self.last_dispatch = self.now

    def restart_rate(self, rq):
        self.first_dispatch = self.last_dispatch = self.now
        self.samples, self.near_samples = 1, 0
        self.total_sectors = self.greatest_length = rq.length

    # 10.2

    def close_rate(self, rq):
        if self.samples >= 32 and self.interval >= 300 * MS:
            self.learn_rate()
        if rq:
            self.restart_rate(rq)
        else:
            self.samples = 0

    def learn_rate(self):
        completed = (self.last_completion - self.first_dispatch) & U64  # Q11
        if completed > U64 // 2:
            self.saw("rate of 0 for want of a completion")
        self.interval = max(self.interval, completed)
        rate = ((self.total_sectors << 16) // (self.interval // 1000)) & U32
        few = self.near_samples < (3 * self.samples) >> 2
        if few and rate <= self.peak_rate or rate > 20 << 16:
            return
        weight = min(8, 9 * self.near_samples // self.samples * self.interval // SECOND)
        divisor = 10 - weight
        self.peak_rate = max(1, self.peak_rate * (divisor - 1) // divisor + rate // divisor)
        self.log(ev="rate", v=self.peak_rate)
        if self.user_max_budget == 0:
            self.set_max_budget(self.auto_budget())

    def auto_budget(self):
        return (self.peak_rate * 1000 * self.milliseconds(self.timeout)) >> 16

    def set_max_budget(self, budget):
        if budget != self.max_budget:
            self.log(ev="max_budget", v=budget)
        self.max_budget = budget

    # 10.3

    def check_late_completion(self):
        us = ((self.now - self.last_completion) // 1000) & U32
        if us > 2000 and (self.greatest_length << 16) // us < 64:
            self.saw("rate given up for a late completion")
            self.close_rate(None)
