"""Random scenarios in which wfq has something to decide, at a fixed depth and at fixed prices."""

import random

US, MS = 1_000, 1_000_000
DISK = 1 << 30  # sectors
CLASSES = ["be", "be", "be", "rt", "idle"]
MIXES = [["R"], ["R"], ["W"], ["WS"], ["R", "W"], ["R", "WS", "W"], ["WF", "R"], ["WF", "WS"],
         ["R", "W", "D", "Z"], ["R", "R", "W", "WS", "WF", "D", "Z", "F"]]
LENGTHS = [[8], [8], [8, 16, 24], [8, 256, 2048], [1, 7, 8, 1000, 2559, 2560], [2048]]
DEPTHS = {"small": [1, 2, 8, 40], "bursts": [2, 4, 8]}  # of a task
WEIGHTS = [[100], [100, 200, 400], [1, 1000], [50, 150, 333], list(range(1, 1001))]


def scenario(seed):
    """The scenario of a seed: in a `crowd` much waits, `slow` lasts seconds, `small` neither; of
    `classes` all wait in one group, in `round` times much happens at the same moment, and in
    `bursts` nothing for most of the time."""
    rng = random.Random(seed)
    kind = rng.choice(["crowd", "crowd", "crowd", "slow", "small", "classes", "round", "bursts"])
    groups = tree(rng)
    paths = [group["path"] for group in groups] + ["/"] * rng.choice([0, 1, 2] if groups else [1])
    if kind == "classes":
        paths = [rng.choice(paths)]
    places = at_random(rng)
    tasks = [task(rng, number + 1, kind, paths, places) for number in range(rng.randint(2, 12))]
    ends = {"small": 10 * MS, "slow": 5_000 * MS}.get(kind, 500 * MS)
    return {
        "name": f"r{seed}", "about": f"random, {kind}", "scheduler": "wfq",
        "tunables": tunables(rng, kind), "hz": 1000, "merges": rng.random() < 0.6,
        "device": device(rng, kind), "groups": groups, "tasks": tasks,
        "changes": changes(rng, groups, tasks, ends), "requeued": requeued(rng, tasks),
    }


def tunables(rng, kind):
    values = {"keep_slots": 0, "depth": rng.choice([1, 1, 2, 3, 4, 8, 20, 100]),
              "cost": rng.choice([1, 2, 3, 3, 3])}
    for name, chance, choices in (
            ("grace_us", 0.4, [1, 50, 1_000, 10_000, 100_000]),
            ("cost_op_bytes", 0.6, [512, 513, 4096, 65_536, 100_000, 4 << 20]),
            ("cost_write", 0.5, [6, 33, 50, 200, 999, 6400]),
            ("cost_fua", 0.5, [6, 50, 100, 250, 6400]),
            ("class_age", 0.7, [1, 2, 5, 20, 100, 3000]),
            ("run_us", 0.5, [10, 50, 200, 1_000, 10_000]),
            ("window_us", 0.3, [500, 1_000, 10_000])):
        if rng.random() < chance:
            values[name] = rng.choice(choices)
    if kind == "classes":
        values["class_age"] = rng.choice([1, 2, 5])
    if kind == "bursts":
        values["run_us"] = rng.choice([3_000, 10_000])
    if kind == "round":
        values["grace_us"] = rng.choice([200, 1_000, 5_000])
    return values


def device(rng, kind):
    base = {"slow": [3 * MS, 10 * MS], "small": [0, 1 * US, 50 * US]}
    base = base.get(kind, [20 * US, 100 * US, 500 * US])
    if kind == "round":
        return {"rotational": False, "queue_depth": 128, "channels": rng.choice([1, 2, 4]),
                "base_ns": rng.choice(base), "per_sector_ns": 0, "seek_base_ns": 0,
                "seek_ns_per_mi_sector": 0}
    return {
        "rotational": False,
        "queue_depth": rng.choice([1, 2, 4, 32, 128, 128]),
        "channels": rng.choice([1, 1, 2, 4, 16]),
        "base_ns": rng.choice(base) + rng.choice([0, rng.randrange(1000)]),
        "per_sector_ns": rng.choice([0, 0, 10, 500]),
        "seek_base_ns": rng.choice([0, 0, 0, 20 * US]),
        "seek_ns_per_mi_sector": rng.choice([0, 0, 500]),
    }


def tree(rng):
    """At most ten groups, at most four deep."""
    weights, made = rng.choice(WEIGHTS), []
    for name in "abcdefghij"[:rng.choice([0, 1, 2, 2, 3, 4, 6, 8, 10])]:
        above = rng.choice([""] + [g["path"] for g in made if g["path"].count("/") < 4])
        group = {"path": f"{above}/{name}"}
        if rng.random() < 0.8:
            group["weight"] = rng.choice(weights)
        if rng.random() < 0.5:
            group["leaf_weight"] = rng.choice(weights)
        made.append(group)
    return made


def at_random(rng):
    """Where requests begin; where there are few places, they adjoin each other more often."""
    at = rng.randrange(DISK)
    return range(at, at + rng.choice([400, 4_000, 40_000, DISK]), 8)


def priority(rng):
    word = rng.choice(CLASSES)
    return word if word == "idle" else f"{word}/{rng.randrange(8)}"


def task(rng, number, kind, paths, places):
    ops, lengths = rng.choice(MIXES), rng.choice(LENGTHS)
    way = rng.choice(["upward", "upward", "downward", "anywhere"])
    think = rng.choice([0, 0, 0, 1 * US, 200 * US, 5 * MS, 50 * MS])
    most = {"slow": 150, "small": 60, "bursts": 600}.get(kind, 200)
    place, made = rng.choice(places), []
    for _ in range(rng.randint(most // 4, most)):
        op, length = rng.choice(ops), rng.choice(lengths)
        if way == "anywhere" or rng.random() < 0.05:
            place = rng.choice(places)
        elif way == "downward":
            place = max(place - 2 * length, 0)
        pause = rng.randrange(think) if think and rng.random() < 0.5 else 0
        if kind == "round":
            pause -= pause % (100 * US)
        if kind == "bursts":
            pause += 90 * MS
        made.append([pause, op, place, 0 if op == "F" else length])
        place += length
    return {
        "id": number, "group": rng.choice(paths),
        "ioprio": priority(rng) if kind == "classes" else
        rng.choice(["be/4", "be/4", "none", priority(rng)]),
        "start_ns": rng.choice([0, 0, 0, 5, rng.randrange(20 * MS)]) if kind != "round" else 0,
        "depth": rng.choice(DEPTHS.get(kind, [1, 4, 16, 64, 200])),
        "requests": made,
    }


def changes(rng, groups, tasks, ends):
    """Some within the time that the run may take."""
    made = []
    for _ in range(rng.choice([0, 0, 0, 1, 3, 20])):
        change = {"at_ns": rng.randrange(ends)}
        what = rng.choice(["weight", "weight", "move", "priority"])
        if what == "weight" and groups:
            change["group"] = rng.choice([group["path"] for group in groups] + ["/"])
            for name in rng.choice([["weight"], ["leaf_weight"], ["weight", "leaf_weight"]]):
                change[name] = rng.choice(rng.choice(WEIGHTS))
        elif what == "move" and groups:
            change["task"] = rng.choice(tasks)["id"]
            change["group"] = rng.choice([group["path"] for group in groups] + ["/"])
        else:
            change["task"], change["ioprio"] = rng.choice(tasks)["id"], priority(rng)
        made.append(change)
    return made


def requeued(rng, tasks):
    chance = rng.choice([0, 0, 0.02, 0.2])
    names = [f"{one['id']}.{index}" for one in tasks for index in range(len(one["requests"]))]
    return {name: rng.choice([1, 1, 1, 2, 3]) for name in names if rng.random() < chance}
