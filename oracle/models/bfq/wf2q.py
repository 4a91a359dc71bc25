"""B-WF2Q+ (4): which node is served next, and how it is charged."""

from objects import BE, IDLE, RT


def delta(service, weight):
    return (service << 22) // weight


def min_start(tree, at):
    """The least start in the subtree."""
    starts = [at.item.start]
    for child in (at.left, at.right):
        if child is not tree.nil:
            starts.append(min_start(tree, child))
    return min(starts)


class FairQueueing:
    """What a device does to its trees."""

    def tree_of(self, node):
        return node.schedule.trees[node.cls]

    # 4.3: trees and lists

    def put(self, node, tree):
        node.tree, node.place = tree, tree.insert(node)
        if node.is_queue and tree is self.tree_of(node).active:
            self.active_list.insert(0, node)

    def take_off(self, node):
        tree = self.tree_of(node)
        if node.tree is tree.idle:
            if tree.first_idle is node:
                after = tree.idle.next(node.place)
                tree.first_idle = after and after.item
            if tree.last_idle is node:
                before = tree.idle.prev(node.place)
                tree.last_idle = before and before.item
        elif node.is_queue:
            self.active_list.remove(node)
        node.tree.erase(node.place)
        node.tree = node.place = None

    def put_on_idle(self, node):
        tree = self.tree_of(node)
        if tree.first_idle is None or tree.first_idle.finish > node.finish:
            tree.first_idle = node
        if tree.last_idle is None or node.finish > tree.last_idle.finish:
            tree.last_idle = node
        self.put(node, tree.idle)

    # 4.4

    def lookup_first(self, tree, vtime):
        """Misses some that finish earlier (Q2)."""
        found, at, nil = None, tree.root, tree.nil
        while at is not nil:
            if at.item.start <= vtime:
                found = at.item
            if at.left is not nil and min_start(tree, at.left) <= vtime:
                at = at.left
                continue
            if found:
                break
            at = at.right
        self.note_missed(tree, vtime, found)
        return found

    def note_missed(self, tree, vtime, found):
        at = tree.first()
        while at and found and at.item.finish < found.finish:
            if at.item.start <= vtime:
                self.saw("look-up that misses the least finish")
                return
            at = tree.next(at)

    # 4.5

    def raise_vtime(self, tree, vtime):
        if vtime > tree.vtime:
            tree.vtime = vtime
            self.prune(tree)

    def prune(self, tree):
        last = tree.last_idle
        if tree.active.first() is None and last and last.finish <= tree.vtime:
            if last.finish < tree.vtime:
                self.saw("vtime lowered")
            tree.vtime = last.finish
        first = tree.first_idle
        if first and first.finish <= tree.vtime:
            self.forget(first)

    def forget(self, node):
        tree = self.tree_of(node)
        if node.tree:
            self.take_off(node)
        node.known = False
        tree.weight_sum -= node.weight
        if node.is_queue:
            self.free_unused(node)

    # 4.6

    def lookup(self, schedule, expiring):
        first = RT
        if self.tick > schedule.idle_class_last + self.hz // 5:
            if schedule.trees[IDLE].active.first():
                first = IDLE
                self.saw("look-up that begins with the idle class")
            schedule.idle_class_last = self.tick
        for tree in schedule.trees[first:]:
            if tree.active.first() is None:
                continue
            vtime = max(tree.vtime, min_start(tree.active, tree.active.root))
            if schedule.in_service is None or expiring:
                self.raise_vtime(tree, vtime)
            node = self.lookup_first(tree.active, vtime)
            if node:
                return node
        return None

    # 4.7

    def update_next(self, schedule, changed, expiring):
        """Whether the schedule above may change."""
        candidate, quick = schedule.next, False
        if changed and changed is not schedule.next:
            quick = True
            if candidate:
                tree = self.tree_of(changed)
                quick = (changed.cls == candidate.cls and changed.start <= tree.vtime
                         and candidate.finish > changed.finish)
            if quick:
                candidate = changed
        if not quick:
            candidate = self.lookup(schedule, expiring)
        may = False
        if candidate:
            lowered = False
            if schedule.group:
                lowered = schedule.group.budget > candidate.budget
                schedule.group.budget = candidate.budget
            may = schedule.next is None or lowered
        schedule.next = candidate
        return may

    # 4.8; no scenario changes a class

    def apply_weight(self, node):
        if not node.change_due:
            return
        tree = self.tree_of(node)
        tree.weight_sum -= node.weight
        if node.new_weight != node.orig_weight:
            node.new_weight = max(1, min(node.new_weight, 1000))
            node.orig_weight = node.new_weight
            if node.is_queue:
                node.level = max(0, 8 - node.orig_weight // 10)
        node.change_due = False
        weight = node.orig_weight * (node.factor if node.is_queue else 1)
        changes = node.is_queue and weight != node.weight
        if changes:
            self.counter_drop(node)
        node.weight = weight
        if changes and node.factor == 1:
            self.counter_add(node)
        tree.weight_sum += node.weight

    # 4.9

    def enqueue(self, node, backshifted):
        self.apply_weight(node)
        tree = self.tree_of(node)
        node.finish = node.start + delta(node.budget, node.weight)
        if backshifted and tree.vtime > node.finish:
            back = tree.vtime - node.finish
            if node.is_queue:
                back //= node.factor
            node.start += back
            node.finish += back
            self.saw("activation shifted back")
        self.put(node, tree.active)

    # 4.10

    def activate_or_requeue(self, node, resuming):
        if node is node.schedule.in_service or node.tree is self.tree_of(node).active:
            self.requeue(node)
        else:
            self.activate(node, resuming)

    def activate(self, node, resuming):
        tree = self.tree_of(node)
        backshifted = resuming and tree.vtime > node.finish
        floor = node.finish if backshifted else tree.vtime
        if node.tree is tree.idle:
            self.take_off(node)
            node.start = max(floor, node.finish)
        else:
            node.start = floor
            tree.weight_sum += node.weight
            node.known = True
        if not node.is_queue and not node.pending:
            node.pending = True
            self.groups_pending += 1
        self.enqueue(node, backshifted)

    def requeue(self, node):
        if node is node.schedule.in_service:
            node.finish = node.start + delta(node.service, node.weight)
            node.start = node.finish
            if node.tree:
                self.take_off(node)
        else:
            self.take_off(node)
        self.enqueue(node, False)

    def activate_path(self, queue, resuming, whole_path, expiring):
        for node in queue.path():
            self.activate_or_requeue(node, resuming)
            if not self.update_next(node.schedule, node, expiring) and not whole_path:
                break

    # 4.11

    def deactivate_one(self, node, to_idle):
        """Whether it was known."""
        if not node.known:
            return False
        tree = self.tree_of(node)
        serving = node is node.schedule.in_service
        node.finish = node.start + delta(node.service, node.weight)
        if serving:
            node.schedule.in_service = None
        else:
            node.service = 0
        if node.tree is tree.active or (node.tree is tree.idle and not serving):
            self.take_off(node)
        if to_idle and node.finish > tree.vtime:
            self.put_on_idle(node)
        else:
            self.forget(node)
        return True

    def deactivate_path(self, queue, to_idle, expiring):
        node = queue
        while node:
            schedule = node.schedule
            if not self.deactivate_one(node, to_idle):
                return
            if schedule.next is node:
                self.update_next(schedule, None, expiring)
            if schedule.next or schedule.in_service:
                break
            to_idle = True
            node = node.parent
        for above in node.parent.path() if node and node.parent else ():
            self.requeue(above)
            if not self.update_next(above.schedule, above, expiring) and not expiring:
                break

    # 4.12, 4.13

    def next_queue(self):
        if not sum(self.busy):
            return None
        schedule = self.root.children
        while True:
            node = schedule.next
            schedule.in_service = node
            if node.is_queue or self.active_count(node) == 1:
                self.take_off(node)
            if node.is_queue:
                break
            schedule = node.children
        for above in node.path():
            if not self.update_next(above.schedule, None, False):
                break
        return node

    def active_count(self, group):
        count = 0
        for tree in group.children.trees:
            at = tree.active.first()
            while at:
                count += 1
                at = tree.active.next(at)
        return count

    def may_preempt(self):
        return self.root.children.next is not self.root.children.in_service

    def reset_in_service(self):
        """Whether the queue that was in service has been freed."""
        queue = self.in_service
        queue.waiting = False
        self.timer = None
        self.in_service = None
        for node in queue.path():
            node.schedule.in_service = None
        return self.free_unused(queue)

    # 4.14

    def served(self, queue, service):
        if queue.served_since_busy == 0:
            queue.first_served = self.tick
        if queue.factor > 1:
            queue.served_raised += service
        queue.served_since_busy += service
        for node in queue.path():
            tree = self.tree_of(node)
            node.service += service
            tree.vtime += delta(service, tree.weight_sum)
            self.prune(tree)
