"""The elevator's merging (19.1, 19.2)."""

MAX_SECTORS = 2560                          # no request grows beyond this


class Merging:
    def __init__(self, cfq, enabled, log):
        self.cfq, self.enabled, self.log = cfq, enabled, log
        self.last = None
        self.ends = {}                      # end -> requests, the one hashed last at the end

    def inserted(self, r):
        self.hash(r)
        if self.last is None:
            self.last = r

    def sent(self, r):
        self.unhash(r)
        if self.last is r:
            self.last = None

    def hash(self, r):
        r.hashed = r.end()
        self.ends.setdefault(r.hashed, []).append(r)

    def unhash(self, r):
        there = self.ends[r.hashed]
        there.remove(r)
        if not there:
            del self.ends[r.hashed]

    def try_merge(self, bio):
        """Is the arrival part of a queued request now?"""
        if not self.enabled:
            return False
        r, kind = self.find(bio)
        if r is None:
            return False
        if r.sectors + bio.sectors > MAX_SECTORS:
            self.refuse(r)
            return False
        if kind == "front":
            r.pos = bio.pos
        r.sectors += bio.sectors
        self.merged(r, bio, kind)
        if kind == "back":
            self.after_back(r)
        else:
            self.after_front(r)
        return True

    def refuse(self, r):
        r.no_merge = True
        if self.last is r:
            self.last = None

    def find(self, bio):
        """19.2"""
        if self.last and self.allowed(self.last, bio):
            if self.last.end() == bio.pos:
                return self.last, "back"
            if self.last.pos == bio.end():
                return self.last, "front"
        for r in reversed(self.ends.get(bio.pos, [])):
            if r.no_merge:
                continue
            if self.allowed(r, bio):
                return r, "back"
            break
        r = self.cfq.find_front(bio)
        if r and self.allowed(r, bio):
            return r, "front"
        return None, None

    def allowed(self, r, bio):
        return (not r.no_merge and r.direction == bio.direction
                and not (bio.sync and not r.sync) and self.cfq.may_merge_into(r, bio))

    def merged(self, into, r, kind):
        self.log("M", rq=r.name, into=into.name, kind=kind)
        into.parts += r.parts

    def after_back(self, r):
        self.unhash(r)
        behind = self.cfq.neighbour(r, behind=True)
        if behind and self.joinable(r, behind):
            self.absorb(r, behind)
        self.hash(r)
        self.last = r

    def after_front(self, r):
        before = self.cfq.neighbour(r, behind=False)
        if before and self.joinable(before, r):
            self.unhash(before)
            self.absorb(before, r)
            self.hash(before)
            self.last = before
        else:
            self.cfq.moved_to_front(r)
            self.last = r

    def joinable(self, y, x):
        return (y.end() == x.pos and y.direction == x.direction
                and not y.no_merge and not x.no_merge
                and y.sectors + x.sectors <= MAX_SECTORS)

    def absorb(self, y, x):
        if x.hashed in self.ends and x in self.ends[x.hashed]:
            self.unhash(x)
        y.sectors += x.sectors
        self.merged(y, x, "back")
        self.cfq.absorbed(y, x)
