"""Random scenarios in which Kyber has something to decide."""

import random

GROUPS = [[], [{"path": "/a", "weight": 100}, {"path": "/b", "weight": 300}]]
PRIORITIES = ["be/4", "be/4", "none", "be/0", "rt/2", "idle"]
MIXES = [["R"], ["W"], ["WS"], ["D"], ["R", "W"], ["R", "WS", "W"], ["W", "WS"],
         ["R", "W", "D", "D"], ["R", "R", "W", "WS", "D", "F"]]
PLACE = 1 << 30


def scenario(seed):
    """The scenario of a seed: in a `crowd` depths change, `slow` lasts seconds, `small` neither."""
    rng = random.Random(seed)
    kind = rng.choice(["crowd", "crowd", "crowd", "slow", "small"])
    device = {
        "rotational": rng.random() < 0.2,
        "queue_depth": rng.choice([1, 4, 32, 128, 128, 256, 512]),
        "channels": rng.choice([1, 2, 4, 16]),
        "base_ns": rng.choice([0, 1_000, 50_000, 300_000]) + rng.randrange(1000),
        "per_sector_ns": rng.choice([0, 10, 2_000]),
        "seek_base_ns": rng.choice([0, 0, 100_000]),
        "seek_ns_per_mi_sector": rng.choice([0, 0, 500]),
    }
    if kind == "crowd":
        device["queue_depth"] = rng.choice([64, 128, 256, 512])
        device["channels"] = rng.choice([1, 2, 4, 8])
        device["base_ns"] = rng.choice([50_000, 150_000, 300_000]) + rng.randrange(1000)
    if kind == "slow":
        device["base_ns"] = rng.choice([3_000_000, 9_000_000, 20_000_000])
    target = [0, 3, 200_000, 1_000_000, 3_000_000, 30_000_000, 300_000_000]
    tunables = {}
    for name in ("read_lat_nsec", "write_lat_nsec"):
        if rng.random() < 0.7:
            tunables[name] = rng.choice(target)
    if kind == "crowd" and rng.random() < 0.7:
        # One domain is well within its target while the other misses it.
        targets = [300_000_000, rng.choice([3, 200_000, 1_000_000, 3_000_000])]
        rng.shuffle(targets)
        tunables = dict(zip(("read_lat_nsec", "write_lat_nsec"), targets))
    groups = rng.choice(GROUPS)
    requests = {"crowd": 2000, "slow": 500, "small": 200}[kind]
    count = rng.randint(2 if kind == "crowd" else 1, 4)
    tasks = [task(rng, number + 1, groups, kind, requests) for number in range(count)]
    return {
        "name": f"r{seed}", "about": f"random, {kind}", "scheduler": "kyber",
        "tunables": tunables, "hz": 1000, "merges": rng.random() < 0.7, "device": device,
        "groups": groups, "tasks": tasks,
    }


def task(rng, number, groups, kind, requests):
    ops = rng.choice(MIXES)
    think = rng.choice([0, 0, 1_000, 100_000, 2_000_000])
    if kind == "slow" and rng.random() < 0.3:
        think = 50_000_000
    sequential = rng.random() < 0.5
    lengths = rng.choice([[8], [8, 8, 16, 64], [8, 256, 1024, 2560]])
    at = rng.randrange(PLACE)
    made = []
    for _ in range(rng.randint(requests // 3, requests)):
        op, length = rng.choice(ops), rng.choice(lengths)
        if op == "F":
            length = 0
        if not sequential or rng.random() < 0.05:
            at = rng.randrange(PLACE)
        elif rng.random() < 0.2:
            at = max(at - 2 * length, 0)
        pause = rng.randrange(think) if think and rng.random() < 0.5 else 0
        made.append([pause, op, at, length])
        at += length
    deep = [40, 100, 300, 600] if kind == "crowd" else [1, 2, 8, 40]
    return {
        "id": number, "group": rng.choice([g["path"] for g in groups] + ["/"]),
        "ioprio": rng.choice(PRIORITIES), "start_ns": rng.choice([0, 0, 5, 10_000_000]),
        "depth": rng.choice(deep), "requests": made,
    }
