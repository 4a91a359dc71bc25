"""The `use_hierarchy` variant: queues by vdisktime, and its two modes (28.3)."""
from hierarchy import DEFAULT_WEIGHT, VF_SHIFT, WHOLE, GroupsByWeight, Hierarchy, scale
from objects import BE, IDLE, NOIDLE, SYNC, Queue


class QueuesByVdisktime:
    """28.3.1 to 28.3.4, for queues."""

    def take_queue(self, tree):
        return tree.take_first()

    def jump(self, q):
        """28.3.3; none in IOPS mode (reading 3)."""
        if self.cfq.iops_mode() and self.cfq.read["iops-jump"] == "none":
            return 0
        return scale(self.cfq.offset_of_one(q), DEFAULT_WEIGHT)

    def place(self, q, front):
        """28.3.3 in the frame of 8.2"""
        tree = q.group.tree(q.cls, q.type())
        q.vtime = self.new_vtime(q, tree, front)
        stays = self.stays(q, tree)
        if not (stays and self.cfq.read["uncharged"] == "untouched"):
            q.placed = self.placing_time(q, tree, front)
        if stays:
            return
        if self.put_on_tree(q, tree, q.vtime) and not front:
            self.queue_joined(q.group)

    def new_vtime(self, q, tree, front):
        if q.cls == IDLE:
            return tree.last_key() if tree.count else tree.min_vtime
        if front:
            return (tree.first_key() if tree.count else tree.min_vtime) - 1
        if q.tree is not tree:
            return tree.min_vtime + self.jump(q)
        return q.vtime                      # an expiry: unchanged but for the charge

    def stays(self, q, tree):
        """8.2's shortcut: where the key does not change, neither does the place (4, 5)."""
        if q.cls == IDLE and self.cfq.read["idle-class"] == "last":
            return False
        if self.cfq.read["uncharged"] == "behind":
            return False
        return q.tree is tree and q.vtime == q.key

    def placing_time(self, q, tree, front):
        """Reading 2: a front insertion is placed before the first, as its key is in 8.2."""
        how = self.cfq.read["front-placed"]
        if front and how == "kept":
            return q.placed
        if front and how == "first":
            return (tree.first().placed if tree.count else self.cfq.now) - self.cfq.clock.second
        return self.cfq.now

    def charge_queue(self, q, amount):
        """28.3.4: it moves on its tree when it is placed, right after."""
        q.vtime += scale(amount, q.weight())


class Flat(QueuesByVdisktime, GroupsByWeight):
    """use_hierarchy 0: the root and all groups side by side, as in 2.6.37."""

    def mark(self, tree):
        """Reading 1: as in `entities`."""
        how = self.cfq.read["flat-type"]
        if how == "placed":
            return tree.first().placed
        return tree.first_key() - (tree.min_vtime if how == "key" else 0)

    def group_delay(self):
        """Reading 10: as in v4.20, so it depends on what is charged."""
        if self.cfq.read["flat-delay"] == "2.6.37":
            return self.cfq.clock.second // 5
        return self.cfq.group_delay()

    def group_span(self, g):
        """Reading 7: as in 2.6.37."""
        if self.cfq.read["flat-span"] == "divided":
            return super().group_span(g)
        total = sum(x.weight for x in self.tree.entities)
        return self.cfq.tun.target_latency * max(WHOLE * g.weight // total, 1) >> VF_SHIFT


class Entities(QueuesByVdisktime, Hierarchy):
    """use_hierarchy 1: a group is an entity on its parent's tree, beside the parent's queues."""

    def __init__(self, cfq):
        super().__init__(cfq)
        self.serving = None

    def mark(self, tree):
        """28.3.6: the entity that was placed longest ago."""
        return tree.first().placed

    def serving_type(self):
        return self.serving.workload.type

    def lone(self, q):
        """28.3.8"""
        return q.group.count_all() == 1

    def average_count(self, g, cls):
        """Reading 8: entities, as for the span."""
        if self.cfq.read["average"] == "entities":
            return g.count_class(cls)
        queues = [e for t in g.trees[cls] for e in t.entities if isinstance(e, Queue)]
        return len(queues)

    # 28.3.5: where groups stand

    def home(self, g):
        """Reading 26: where no queue has an idle window, groups are among those without."""
        windowless = self.cfq.read["group-tree"] == "windowless" and self.cfq.tun.slice_idle == 0
        return g.parent.trees[BE][NOIDLE if windowless else SYNC]

    def queue_joined(self, g):
        g.n_queues += 1
        for x in g.path_up():
            x.n_below += 1
            if x.parent and not x.on_tree:
                self.join(x)

    def join(self, g):
        tree = self.home(g)
        g.vtime = tree.last_key() + self.cfq.group_delay() if tree.count else tree.min_vtime
        self.put(g)

    def put(self, g):
        self.home(g).insert(g.vtime, g)
        g.on_tree, g.placed = True, self.cfq.now

    def pull(self, g):
        self.home(g).remove(g)
        g.on_tree = False

    def queue_left(self, g):
        g.n_queues -= 1
        for x in g.path_up():
            x.n_below -= 1
            if x.n_below == 0 and x.parent:
                self.pull(x)
            if self.emptied(x):
                x.saved_span = 0

    def emptied(self, g):
        """Reading 9: nothing is left in it, neither queue nor group. Of the root too."""
        if self.cfq.read["emptied"] == "queues":
            return g.n_queues == 0
        return g.n_below == 0

    # 28.3.4

    def charge(self, g, q, amount):
        self.charge_queue(q, amount)
        for x in g.path_up():
            if x.parent:
                self.charge_group(x, amount)
            self.save(x, x.workload)

    def charge_group(self, g, amount):
        """It is put anew, as in 10.2, so this is a placing too (reading 13)."""
        placed = g.placed
        self.pull(g)
        g.vtime += scale(amount, g.weight)
        self.put(g)
        if self.cfq.read["group-placed"] == "joined":
            g.placed = placed

    # 28.3.6

    def choose(self):
        g = self.cfq.root
        while True:
            w = g.workload
            self.restore(g, w)
            self.choose_workload(g, w)
            if self.cfq.rq_queued == 0:
                return None
            entity = g.tree(w.cls, w.type).take_first()
            if isinstance(entity, Queue):
                self.serving = g
                return entity
            g = entity

    def forget_span(self, g):
        """Reading 11: of the preempting queue's own group only."""
        g.saved_span = 0
        if self.cfq.read["preempted-span"] == "path":
            for x in g.path_up():
                x.saved_span = 0

    # 28.3.7

    def group_span(self, g):
        frac = WHOLE
        for x in reversed(list(g.path_up())):
            if x.parent:
                frac = frac * x.weight // self.weight_on_trees(x.parent)
        return self.cfq.tun.target_latency * max(frac, 1) >> VF_SHIFT

    def weight_on_trees(self, g):
        return sum(e.weight() if isinstance(e, Queue) else e.weight
                   for tree in g.all_trees() for e in tree.entities)
