"""Merging as the elevator of blk-mq does it, for a scheduler that sorts its requests by sector.

An arrival tries the request of the last merge, then the queued one that ends where it starts, then
the one that starts where it ends. The request that is made of it else is tried as it is inserted.
"""

from run import LONGEST, Scheduler

SHOWN = [
    "back merge into the last merge's", "front merge into the last merge's",
    "back merge into another", "front merge into another",
    "back merge hidden by a newer one with that end", "other group or priority adjoins",
    "refused for the length, back", "refused for the length, front",
    "join with the one behind", "join with the one before",
    "join at insert", "join at insert with one more",
    "join refused for the length", "join of discards refused",
]


class MergingScheduler(Scheduler):
    """It calls `enter` and `leave`, and `join_at_insert` first of all.

    Asked of it: find_front(bio), the request that starts where the bio ends; before(rq) and
    behind(rq), its sorted neighbours. Told to it: moved_to_front(rq), it starts lower now;
    absorbed(into, rq), the request, which may never have been sorted, is part of the other.
    """

    def __init__(self, scenario, run, shown):
        super().__init__(scenario, run)
        self.merges = scenario["merges"]
        self.last_merge = None
        self.ends = {}  # the requests that end at a sector, the one hashed last at the end
        self.seen = dict.fromkeys(SHOWN + shown, 0)

    def saw(self, what):
        self.seen[what] += 1

    def may_merge(self, rq, bio):
        """Whether the scheduler, too, lets the bio become part of the request."""
        return rq.may_take(bio)

    def enter(self, rq):
        self.hash(rq)
        if self.last_merge is None:
            self.last_merge = rq

    def leave(self, rq):
        self.unhash(rq)
        if self.last_merge is rq:
            self.last_merge = None

    def hash(self, rq):
        rq.hashed = rq.end
        self.ends.setdefault(rq.end, []).append(rq)

    def unhash(self, rq):
        self.ends[rq.hashed].remove(rq)

    def rehash(self, rq):
        self.unhash(rq)
        self.hash(rq)

    def ending_at(self, sector):
        """The newest that may merge at all; it hides the older ones."""
        there = [rq for rq in self.ends.get(sector, []) if not rq.no_merge]
        return there[-1] if there else None

    def merge(self, bio):
        rq, kind = self.find(bio)
        if rq is None or not self.may_merge(rq, bio):
            return False
        if rq.length + bio.length > LONGEST:
            self.saw(f"refused for the length, {kind}")
            rq.no_merge = True
            if self.last_merge is rq:
                self.last_merge = None
            return False
        self.take(rq, bio, kind)
        if kind == "back":
            self.grown_at_back(rq)
        else:
            self.grown_at_front(rq)
        return True

    def find(self, bio):
        """The request that takes the bio, and at which end; its length is not looked at."""
        last = self.last_merge
        if last and self.may_merge(last, bio):
            if last.end == bio.start:
                self.saw("back merge into the last merge's")
                return last, "back"
            if last.start == bio.end:
                self.saw("front merge into the last merge's")
                return last, "front"
        rq = self.ending_at(bio.start)
        if rq and self.may_merge(rq, bio):
            self.saw("back merge into another")
            return rq, "back"
        if rq:
            self.saw_no_back_merge(rq, bio)
        rq = self.find_front(bio)
        if rq and self.may_merge(rq, bio):
            self.saw("front merge into another")
            return rq, "front"
        return None, None

    def saw_no_back_merge(self, rq, bio):
        if any(other.may_take(bio) for other in self.ends[bio.start]):
            self.saw("back merge hidden by a newer one with that end")
        if rq.op_code == bio.op_code:
            self.saw("other group or priority adjoins")

    def grown_at_back(self, rq):
        behind = self.behind(rq)
        if behind and self.joinable(rq, behind):
            self.saw("join with the one behind")
            self.join(rq, behind)
            return
        self.rehash(rq)
        self.last_merge = rq

    def grown_at_front(self, rq):
        before = self.before(rq)
        if before and self.joinable(before, rq):
            self.saw("join with the one before")
            self.join(before, rq)
            return
        self.moved_to_front(rq)
        self.last_merge = rq

    def join_at_insert(self, rq):
        """Whether the request, which is not sorted yet, has become part of those before it.

        The last merge's, which is tried first, takes only one that `may_merge` forbade it as a bio.
        """
        if not self.merges:
            return False
        if self.last_merge and self.joinable(self.last_merge, rq):
            self.saw("join at insert with the last merge's")
            self.join(self.last_merge, rq)
            return True
        what, joined = "join at insert", False
        before = self.ending_at(rq.start)
        while before and self.joinable(before, rq):
            self.saw(what)
            self.join(before, rq)
            what, joined = "join at insert with one more", True
            rq, before = before, self.ending_at(before.start)
        return joined

    def joinable(self, first, second):
        if first.end != second.start or second.no_merge or not first.may_take(second):
            return False
        if first.op == "D":
            self.saw("join of discards refused")
            return False
        if first.length + second.length > LONGEST:
            self.saw("join refused for the length")
            return False
        return True

    def join(self, into, rq):
        """Makes a request part of the one before it."""
        self.take(into, rq, "back")
        self.rehash(into)
        self.absorbed(into, rq)
        self.last_merge = into

    def take(self, into, rq, kind):
        into.take(rq)
        self.run.log(ev="M", rq=rq.name, into=into.name, kind=kind)
