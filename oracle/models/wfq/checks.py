"""What has to hold in the tree at every dispatch (section 5 and the properties of section 12)."""

import model


class Checked(model.Wfq):
    """The same, which stops where something does not hold."""

    def set_up_groups(self, scenario, clock):
        super().set_up_groups(scenario, clock)
        groups = self.groups.values()
        self.parents = [*groups] + [one for group in groups for one in group.own.classes]
        # Whether always the least start is served: nobody is passed over and nobody goes before.
        self.is_plain = not (self.reserved or self.writes_at_most < self.depth
                             or any(group.limits.caps for group in groups))
        self.has_grace = clock.grace > 0
        self.has_runs = self.runs.run_us > 0  # which go before the least

    def dispatch(self):
        before = [parent.v for parent in self.parents]
        rq = super().dispatch()
        if self.is_plain and self.waiting and self.run.in_device < self.depth:
            assert rq, "something waits, and there is room"
        for parent, v in zip(self.parents, before):
            assert parent.v >= v, "v never falls"
            for child in parent.active:
                self.check_child(parent, child)
        return rq

    def check_child(self, parent, child):
        assert child.has_work() and child.key[0] == child.start
        if self.is_plain and not self.has_runs:
            assert child.start <= parent.v + child.greatest, "one is ahead by an advance at most"
        if self.is_plain and not self.has_grace:
            assert child.start >= parent.v, "one enters at v, and the least is served"
