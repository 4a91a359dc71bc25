"""Random scenarios in which mq-deadline has something to decide."""

import random

GROUPS = [[], [], [{"path": "/a", "weight": 100}, {"path": "/b", "weight": 300}]]
PRIORITIES = [["be/4"], ["be/4", "none"], ["be/4", "be/4", "be/3"], ["rt/2", "be/4"],
              ["be/4", "idle"], ["rt/0", "rt/7", "be/0", "be/4", "none", "idle"]]
MIXES = [["R"], ["W"], ["WS"], ["D"], ["R", "W"], ["R", "R", "R", "W"], ["W", "WS"],
         ["R", "W", "D", "D"], ["R", "R", "W", "WS", "D", "F"]]
LENGTHS = [[8], [8], [8, 16, 24], [8, 8, 64, 256], [8, 256, 1024, 2552, 2560],
           [512, 512, 1024, 2048]]
MS = 1_000_000
DISK = 1 << 30  # sectors
TUNABLES = {
    "read_expire": [-7, 0, 1, 5, 60, 5_000_000_000],
    "write_expire": [-1, 0, 2, 20, 150, 5_000_000_000],
    "writes_starved": [-1000, -1, 0, 1, 3, 5],
    "front_merges": [-1, 0, 0, 0, 1, 5],
    "fifo_batch": [-3, 0, 1, 2, 6, 64],
    "prio_aging_expire": [-9, 0, 1, 20, 100, 700],
    "async_depth": [1, 8],
}


def scenario(seed):
    """The scenario of a seed: in a `crowd` much waits, `slow` lasts seconds, `small` neither."""
    rng = random.Random(seed)
    kind = rng.choice(["crowd", "crowd", "slow", "small"])
    groups, priorities = rng.choice(GROUPS), rng.choice(PRIORITIES)
    lengths, at = rng.choice(LENGTHS), rng.randrange(DISK)
    places = range(at, at + rng.choice([400, 4_000, 40_000, DISK]), lengths[0])
    changed = rng.choice([0, 0.2, 0.5])
    tasks = [task(rng, number + 1, kind, places, lengths) for number in range(rng.randint(1, 6))]
    for one in tasks:
        one["group"] = rng.choice([group["path"] for group in groups] + ["/"])
        one["ioprio"] = rng.choice(priorities)
    return {
        "name": f"r{seed}", "about": f"random, {kind}", "scheduler": "mq-deadline",
        "tunables": {name: rng.choice(values) for name, values in TUNABLES.items()
                     if rng.random() < changed},
        "hz": 1000, "merges": rng.random() < 0.8, "device": device(rng, kind),
        "groups": groups, "tasks": tasks,
    }


def device(rng, kind):
    depth = rng.choice([1, 1, 2, 4, 32, 128])
    base = {"crowd": [50_000, 500_000, 2 * MS], "slow": [9 * MS, 40 * MS, 100 * MS],
            "small": [0, 1_000, 50_000, 300_000]}
    return {
        "rotational": rng.random() < 0.5,
        "queue_depth": depth,
        "channels": rng.choice([1, 1, 2, 4, 16]),
        "base_ns": rng.choice(base[kind]) + rng.randrange(1000),
        "per_sector_ns": rng.choice([0, 10, 2_000]),
        "seek_base_ns": rng.choice([0, 0, 100_000, 3 * MS]),
        "seek_ns_per_mi_sector": rng.choice([0, 0, 500, 5_000]),
    }


def task(rng, number, kind, places, lengths):
    ops = rng.choice(MIXES)
    style = rng.choice(["upward", "downward", "anywhere", "mixed", "mixed"])
    think = rng.choice([0, 0, 1_000, 100_000, 2 * MS] + [500 * MS] * (kind == "slow"))
    most = {"crowd": 300, "slow": 150, "small": 80}[kind]
    place, made = rng.choice(places), []
    for _ in range(rng.randint(most // 3, most)):
        op, length = rng.choice(ops), rng.choice(lengths)
        way = rng.choice(["upward", "downward", "anywhere"]) if style == "mixed" else style
        if way == "anywhere" or rng.random() < 0.05:
            place = rng.choice(places)
        elif way == "downward":
            place = max(place - 2 * length, 0)
        pause = rng.randrange(think) if think and rng.random() < 0.5 else 0
        made.append([pause, op, place, 0 if op == "F" else length])
        place += length
    deep = [8, 40, 100, 300] if kind == "crowd" else [1, 2, 8, 40]
    return {"id": number, "start_ns": rng.choice([0, 0, 5, 10 * MS]),
            "depth": rng.choice(deep), "requests": made}
