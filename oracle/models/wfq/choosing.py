"""Which context is served next (sections 3 and 4)."""

TURN = 15  # times what an aged class's request costs, charged to higher classes before it


class Rules:
    """What holds at one moment: how long a class has to wait, what passes, and what it costs."""

    def __init__(self, now, age, passes, cost):
        self.now, self.age = now, age
        self.passes = passes  # whether no cap holds a context's next request
        self.cost = cost  # of a context's next request


def choose(group, rules):
    """The context whose head goes next, by the least key at each level; none where none passes."""
    for child in group.by_key():
        found = choose_own(child, rules) if child is group.own else choose(child, rules)
        if found:
            return found
    return None


def choose_own(own, rules):
    """The highest class that is due, else the highest; of those of which something passes."""
    firsts = [first(one, rules.passes) for one in own.classes]
    for number in (1, 2):
        if firsts[number] and is_due(own, number, rules, rules.cost(firsts[number])):
            return firsts[number]
    return next((context for context in firsts if context), None)


def first(one, passes):
    """The first context of a class that passes."""
    return next((context for context in one.by_key() if passes(context)), None)


def goes_first(context, rules):
    """Whether something of it waits and passes, and no other class of its group goes before it."""
    if not (context.is_active() and rules.passes(context)):
        return False
    return choose_own(context.own, rules).number == context.number


def aged(own, number, rules):
    return own.since[number] is not None and rules.now - own.since[number] >= rules.age


def is_due(own, number, rules, cost):
    """Whether higher classes have been charged enough for a request of that cost."""
    return aged(own, number, rules) and own.passed[number] >= TURN * cost


def count(context, charge, rules, dearest):
    """The context is served; comes before that changes who waits. `dearest` tells what the dearer
    of a class's next requests costs, a read and a write. Whether it was out of turn."""
    own, served = context.own, context.number
    out_of_turn = is_due(own, served, rules, charge)
    earning = [number for number in range(served + 1, 3) if aged(own, number, rules)
               and not is_due(own, number, rules, dearest(own.classes[number]))]
    own.passed[served] = max(0, own.passed[served] - TURN * charge)
    for number in earning:
        own.passed[number] += charge
    return out_of_turn
