"""Which context is served next (sections 3 and 4)."""

TURN = 15  # requests of higher classes before one of an aged class


def choose(group, now, age, passes):
    """The context whose head goes next, by the least key at each level; none where none passes."""
    for child in group.by_key():
        if child is group.own:
            found = choose_own(child, now, age, passes)
        else:
            found = choose(child, now, age, passes)
        if found:
            return found
    return None


def choose_own(own, now, age, passes):
    for number in order_of_classes(own, now, age):
        for context in own.classes[number].by_key():
            if passes(context):
                return context
    return None


def goes_first(context, now, age):
    """Whether something of it waits, and no other class of its group goes before its own."""
    order = order_of_classes(context.own, now, age)
    waiting = [number for number in order if context.own.classes[number].active]
    return context.is_active() and waiting[0] == context.number


def order_of_classes(own, now, age):
    """An aged class whose turn it is comes first, the higher one of two; then rt, be, idle."""
    turns = [number for number in (1, 2) if aged(own, number, now, age)
             and own.count[number] >= TURN]
    return turns[:1] + [number for number in range(3) if number not in turns[:1]]


def aged(own, number, now, age):
    return own.since[number] is not None and now - own.since[number] >= age


def count(context, now, age):
    """The context is served; comes before that changes who waits. Whether it was out of turn."""
    own, served = context.own, context.number
    for number in (1, 2):
        if aged(own, number, now, age) and number > served:
            own.count[number] += 1
    out_of_turn = own.count[served] >= TURN
    own.count[served] = 0
    return out_of_turn
