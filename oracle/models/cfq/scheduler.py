"""The scheduler: its state, and what comes from outside: requests, completions, exits."""
from by_vdisktime import Entities, Flat
from clock import Clock
from cooperating import Cooperating
from dispatching import Dispatching
from hierarchy import DEFAULT_WEIGHT, LeafWeight, SideBySide
from idling import Idling
from objects import ASYNC, IDLE, SYNC, Context, Group, Queue
from preempting import Preempting
from slices import Slices
from red_black_tree import RedBlackTree
from tunables import Tunables

U32 = (1 << 32) - 1
PAGE = 4096
ROOT_WEIGHT = 1000

HIERARCHIES = {"leaf-weight": LeafWeight, "flat": Flat, "entities": Entities}


class Cfq(Slices, Dispatching, Idling, Preempting, Cooperating):
    def __init__(self, scenario, kernel, mode, log, timer, readings):
        self.kernel, self.clock = kernel, Clock(scenario["hz"], kernel.ticks)
        self.now = self.clock.read(0)
        self.group_delay_iops = scenario["hz"] // 5
        self.rotational = scenario["device"]["rotational"]
        self.tun = Tunables(scenario["tunables"], self.rotational, self.clock, kernel)
        self.log, self.timer, self.read = log, timer, readings
        self.busy = self.busy_sync = 0
        self.rq_queued = self.in_driver = 0
        self.sent = {True: 0, False: 0}     # in flight, by the kind of the queue
        self.active = self.active_ctx = None
        self.head_pos = 0
        self.hw_tag, self.depth_seen, self.depth_samples = -1, 0, 0
        self.last_delayed_sync = self.now - self.clock.second
        self.indexes = [RedBlackTree(lambda q: q.next.pos) for _ in range(8)]
        self.configured = {g["path"]: g for g in scenario["groups"]}
        self.root = Group("/", None, ROOT_WEIGHT, ROOT_WEIGHT, self.now)
        self.groups = {"/": self.root}
        self.async_queues = {}              # of the device, in kernels that have one set
        self.needs_idling = False           # asked only by some kernels (27)
        self.h = (SideBySide if kernel.side_by_side else HIERARCHIES[mode])(self)

    # --- groups are made when first needed (22.4) ---

    def group(self, path):
        if path not in self.groups:
            parent = self.group(path.rsplit("/", 1)[0] or "/")
            c = self.configured[path]
            self.groups[path] = Group(path, parent, c.get("weight", DEFAULT_WEIGHT),
                                      c.get("leaf_weight", DEFAULT_WEIGHT), self.now)
        return self.groups[path]

    # --- making a request (5) ---

    def create(self, r):
        r.group = self.group(r.task.group)
        if r.task.ctx is None:
            r.task.ctx = Context(r.task, self.now)
        r.ctx = r.task.ctx
        r.start_time = self.now
        r.queue = self.queue_for(r)
        r.group = r.queue.group
        r.queue.alloc += 1
        r.queue.refs += 1

    def queue_for(self, r):
        slot = SYNC if r.sync else ASYNC
        while True:
            q = r.ctx.queue[slot]
            if q is None:
                q = r.ctx.queue[slot] = self.obtain(r, slot)
            elif q.shared and q.to_split and not self.keep_as_last_user(q, r):
                r.ctx.queue[SYNC] = None
                self.log("split_queue", q=q.name)
                self.drop_chain(q)
                self.drop(q)
                continue
            if q.merge_into:
                q = self.follow_merge(q, r)
            return q

    def keep_as_last_user(self, q, r):
        if q.process_refs() != 1:
            return False
        self.log("split_queue", q=q.name)
        q.shared = q.to_split = False
        q.name = "%dS" % r.task.id
        return True

    def follow_merge(self, q, r):
        target = q.merge_into
        self.log("merge_queues", q=q.name, into=target.name)
        r.ctx.queue[SYNC] = target
        target.shared = True
        self.drop(q)
        return target

    def obtain(self, r, slot):
        """5.4"""
        g, task = r.group, r.task
        if slot == SYNC:
            q = Queue(True, g, task)
        else:
            which = (task.cls, task.level)
            g, made = ((self.root, self.async_queues) if self.kernel.async_in_root
                       else (g, g.async_queues))
            q = made.get(which)
            if q is None:
                q = made[which] = Queue(False, g, task)
                q.refs += 1                 # the group's own, or the device's
        q.refs += 1
        return q

    def drop(self, q):
        """22.1"""
        q.refs -= 1
        if q.refs == 0 and q is self.active:
            self.expire(q, False, "queue_gone")

    def drop_chain(self, q):
        x = q.merge_into
        while x:
            after = x.merge_into
            self.drop(x)
            x = after

    # --- inserting (6) ---

    def insert(self, r):
        q = r.queue
        wait = self.tun.fifo_expire_sync if r.sync else self.tun.fifo_expire_async
        r.fifo_deadline = self.now + wait
        q.fifo.append(r)
        q.queued += 1
        r.node = q.sorted.insert(r)
        if not q.listed:
            self.list(q)
        self.offer_as_next(q, r)
        self.rq_queued += 1
        self.update_think_times(q, r)
        self.update_seekiness(q, r)
        self.update_idle_window(q, r)
        q.last_end_pos = r.end()
        if q is self.active:
            self.insert_into_active(q, r)
        elif self.should_preempt(q, r):
            self.preempt(q)

    def offer_as_next(self, q, r):
        old = q.next
        q.next = self.better(old, r, self.head_pos)
        if q.next is not old:
            self.index(q)

    def insert_into_active(self, q, r):
        if not q.awaiting:
            return
        if r.sectors * 512 > PAGE or self.busy > 1:
            self.timer.cancel()
            q.awaiting = False
        else:
            q.forced = True

    # --- which of two requests (7) ---

    def better(self, a, b, start):
        if a is None or a is b:
            return b
        if b is None:
            return a
        if a.sync != b.sync:
            return a if a.sync else b
        cost_a, cost_b = self.cost(a, start), self.cost(b, start)
        if cost_a is not None and cost_b is not None:
            if cost_a != cost_b:
                return a if cost_a < cost_b else b
            return b if b.pos > a.pos else a
        if cost_a is None and cost_b is None:
            return b if b.pos < a.pos else a
        return b if cost_a is None else a

    def cost(self, r, start):
        """None: behind."""
        if r.pos >= start:
            return r.pos - start
        if r.pos + (self.tun.back_seek_max * 2 & U32) >= start:
            return (start - r.pos) * self.tun.back_seek_penalty
        return None

    def follower(self, q, r):
        after, before = q.sorted.next(r.node), q.sorted.prev(r.node)
        if after is None:
            after = q.sorted.first()
        n = after.item if after.item is not r else None
        return self.better(n, before.item if before else None, r.pos)

    # --- listed queues (8.1) ---

    def list(self, q):
        q.listed = True
        self.busy += 1
        self.busy_sync += q.sync
        self.h.place(q, front=False)
        self.index(q)

    def unlist(self, q):
        q.listed = False
        q.tree.remove(q)
        q.tree = None
        self.unindex(q)
        self.h.queue_left(q.group)
        self.busy -= 1
        self.busy_sync -= q.sync

    # --- completion (14) ---

    def complete(self, r):
        q = r.queue
        self.estimate_depth()
        self.in_driver -= 1
        q.in_flight -= 1
        r.group.in_flight -= 1
        self.sent[q.sync] -= 1
        if r.sync:
            r.ctx.think.last_end = self.now
            tree = q.tree if q.listed else q.group.tree(q.cls, q.type())
            tree.think.last_end = self.now
            if r.start_time + self.tun.fifo_expire_sync <= self.now:
                self.last_delayed_sync = self.now
        q.group.think.last_end = self.now
        if q is self.active:
            self.complete_of_active(q, r)
        self.free(r)

    def complete_of_active(self, q, r):
        empty = q.empty()
        if q.fresh:
            self.begin_slice(q)
        if self.wait_busy(q):
            q.slice_end = self.now + (self.tun.slice_idle or self.tun.group_idle)
            q.busy_wait = True
            self.log("wait_busy", q=q.name)
        if self.slice_over(q):
            self.expire(q, True, "slice_used")
        elif q.cls == IDLE:
            self.expire(q, True, "idle_class")
        elif r.sync and empty and self.close_cooperator(q) is None:
            self.arm_at_need(q, r)

    def free(self, r):
        r.queue.alloc -= 1
        self.drop(r.queue)

    # --- merged requests (19.3) ---

    def may_merge_into(self, r, bio):
        """19.1's last condition."""
        ctx = bio.task.ctx
        return ctx is not None and ctx.queue[SYNC if bio.sync else ASYNC] is r.queue

    def find_front(self, bio):
        """The request of the bio's queue that starts where the bio ends."""
        ctx = bio.task.ctx
        q = ctx.queue[SYNC if bio.sync else ASYNC] if ctx else None
        if q is None:
            return None
        hit, _ = q.sorted.find(bio.end())
        return hit.item if hit else None

    def neighbour(self, r, behind):
        node = r.queue.sorted.next(r.node) if behind else r.queue.sorted.prev(r.node)
        return node.item if node else None

    def moved_to_front(self, r):
        q = r.queue
        q.sorted.erase(r.node)
        r.node = q.sorted.insert(r)
        self.offer_as_next(q, r)

    def absorbed(self, y, x):
        """x, behind y, is part of y now."""
        q = y.queue
        if x.fifo_deadline < y.fifo_deadline:
            q.fifo.remove(y)
            q.fifo.insert(q.fifo.index(x), y)
            y.fifo_deadline = x.fifo_deadline
        if q.next is x:
            q.next = y
        self.take_off(q, x)
        y.start_time = min(y.start_time, x.start_time)
        self.free(x)

    # --- the end of a task (22.2) ---

    def exit(self, task):
        if task.ctx is None:
            return
        task.ctx.alive = False
        for slot in (ASYNC, SYNC):
            q = task.ctx.queue[slot]
            if q is None:
                continue
            if q is self.active:
                self.expire(q, False, "exit")
            self.drop_chain(q)
            self.drop(q)
