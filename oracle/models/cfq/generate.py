#!/usr/bin/env python3
"""Makes random scenarios for CFQ in any of its modes, or for older kernels.

    generate.py OUT_DIR [--seed N] [--count N] [--hierarchy MODE|both] [--large]
    generate.py OUT_DIR [--seed N] [--count N] --kernel KERNEL|all [--large]

The same seed gives the same files. Scenario i of seed S is made from S and i alone, so that
one can be made again by itself: `--first I --count 1`. Each is written as
NAME.scenario.json with the key `hierarchy`; `both` writes each twice, NAME-flat and
NAME-entities, with the same requests; `--kernel all` each three times, NAME-2.6.36 and so on.
"""
import argparse
import json
import os
import random
import sys

sys.dont_write_bytecode = True              # the folder stays as it is
from kernels import KERNELS  # noqa: E402

MS = 1_000_000
DISK = 1 << 31                              # sectors
IOPRIOS = ["rt/%d" % n for n in range(8)] + ["be/%d" % n for n in range(8)] + ["idle", "none"]


# --- the device and the tunables ---------------------------------------------------------

def device(rnd):
    rotational = rnd.random() < 0.65
    depth = rnd.choice([1, 1, 2, 4, 8, 16, 31])
    return {
        "rotational": rotational,
        "queue_depth": depth,
        "channels": 1 if depth == 1 else rnd.choice([1, 1, 2, 4, 8]),
        "base_ns": rnd.choice([50_000, 100_000, 950_000, 1_000_000]),
        "per_sector_ns": rnd.choice([0, 500, 5_000]),
        "seek_base_ns": rnd.choice([0, 500_000, 3_000_000]) if rotational else 0,
        "seek_ns_per_mi_sector": rnd.choice([0, 1_000, 5_000]) if rotational else 0,
    }


def tunables(rnd, charge):
    """`charge` is what is charged: time, requests (IOPS), or either as it comes."""
    t = {}

    def maybe(chance, name, values):
        if rnd.random() < chance:
            t[name] = rnd.choice(values)

    if charge == "time":
        t["slice_idle"] = rnd.choice([1, 2, 8, 8, 20])
    elif charge == "iops":
        t["slice_idle"] = 0
    maybe(0.3, "group_idle", [0, 0, 2, 8])
    maybe(0.5, "slice_sync", [5, 10, 20, 50, 100])
    maybe(0.3, "slice_async", [5, 20, 40, 100])
    maybe(0.2, "slice_async_rq", [1, 2, 4])
    maybe(0.2, "low_latency", [0, 1])
    maybe(0.3, "target_latency", [50, 100, 300, 1000])
    maybe(0.2, "quantum", [1, 2, 8, 16])
    maybe(0.1, "fifo_expire_sync", [5, 30])
    maybe(0.1, "fifo_expire_async", [5, 50])
    maybe(0.1, "back_seek_max", [0, 64, 1_000_000])
    maybe(0.1, "back_seek_penalty", [1, 5])
    return t


# --- groups ------------------------------------------------------------------------------

def groups(rnd):
    """A tree of at most eight groups, at most three deep."""
    weights = rnd.choice([[500], [100, 500, 1000], list(range(10, 1001)),
                          [128, 484, 500, 612, 1000]])
    made = []
    for n in range(rnd.choice([0, 1, 2, 2, 3, 4, 5, 6, 8])):
        parents = [""] + [g["path"] for g in made if g["path"].count("/") < 3]
        path = "%s/%s" % (rnd.choice(parents), "abcdefgh"[n])
        made.append({"path": path, "weight": rnd.choice(weights),
                     "leaf_weight": rnd.choice(weights)})
    return made


# --- tasks -------------------------------------------------------------------------------

def positions(rnd, kind, n):
    """Where n requests are, and how long each is."""
    at = rnd.randrange(DISK // 8) * 8
    size = rnd.choice([8, 8, 16, 64, 256])
    for _ in range(n):
        if kind == "random" or (kind == "mixed" and rnd.random() < 0.3):
            at = rnd.randrange(DISK // 8) * 8
        elif kind == "near":
            at = max(0, at + rnd.randrange(-1200, 1200) * 8)
        yield at, size
        at += size


def thinking(rnd, slice_idle):
    """What a task does between its requests: nothing, a little, or it leaves and comes back."""
    style = rnd.choice(["none", "none", "none", "short", "long", "bursts", "edge"])
    idle = max(slice_idle, 1) * MS

    def think():
        if style == "none":
            return 0
        if style == "short":
            return rnd.randrange(idle)
        if style == "long":
            return rnd.randrange(idle, 4 * idle)
        if style == "bursts":
            return rnd.choice([0] * 12 + [rnd.randrange(20 * MS, 200 * MS)])
        return idle + rnd.randrange(-1, 2)
    return think


def task(rnd, number, paths, ioprio, requests, slice_idle, spread):
    kind = rnd.choice(["sequential", "sequential", "random", "near", "mixed"])
    op = rnd.choice(["R", "R", "R", "WS", "W", "any"])
    think = thinking(rnd, slice_idle)
    n = rnd.randrange(max(requests // 3, 1), requests + 1)
    made = []
    for at, size in positions(rnd, kind, n):
        one = rnd.choice(["R", "WS", "W"]) if op == "any" else op
        if rnd.random() < 0.002:
            made.append([think(), "F", at, 0])
        else:
            made.append([think(), one, at, size])
    return {
        "id": number,
        "group": rnd.choice(paths),
        "ioprio": ioprio,
        "start_ns": rnd.randrange(spread) if spread else 0,
        "depth": rnd.choice([1, 1, 1, 2, 4, 8, 16]),
        "requests": made,
    }


def choose_ioprio(rnd, style):
    if style == "equal":
        return "be/4"
    if style == "best effort":
        return "be/%d" % rnd.randrange(8)
    if style == "mostly":
        return rnd.choice(["be/4"] * 6 + IOPRIOS)
    return rnd.choice(IOPRIOS)


def tasks(rnd, paths, slice_idle, large):
    style = rnd.choice(["equal", "best effort", "best effort", "mostly", "any"])
    spread = rnd.choice([0, 0, 5 * MS, 100 * MS, 500 * MS])
    requests = 400 if large else rnd.choice([20, 60, 100])
    made = [task(rnd, n + 1, paths, choose_ioprio(rnd, style), requests, slice_idle, spread)
            for n in range(rnd.randrange(2, 17 if large else 10))]
    if rnd.random() < 0.2:                  # their queues merge
        for one, other in zip(made[::2], made[1::2]):
            interleave(rnd, one, other)
    return made


def interleave(rnd, one, other):
    """Two tasks that read every other piece of the same run of sectors."""
    at, size = rnd.randrange(DISK // 16) * 8, rnd.choice([8, 16, 64])
    for n, t in enumerate((one, other)):
        t["requests"] = [[think, "R", at + (2 * i + n) * size, size]
                         for i, (think, *_) in enumerate(t["requests"])]
    other["group"], other["ioprio"] = one["group"], one["ioprio"]


# --- a scenario --------------------------------------------------------------------------

def scenario(seed, i, large=False):
    rnd = random.Random("%d/%d" % (seed, i))
    charge = rnd.choice(["time", "time", "iops", "either"])
    t = tunables(rnd, charge)
    g = groups(rnd)
    paths = [one["path"] for one in g] + ["/"] * rnd.choice([0, 1, 2] if g else [1])
    d = device(rnd)
    slice_idle = t.get("slice_idle", 8 if d["rotational"] else 0)
    return {
        "name": "hierarchy-%d-%04d" % (seed, i),
        "about": "random tree and tasks; charged: " + charge,
        "scheduler": "cfq",
        "tunables": t,
        "hz": 1000,
        "merges": rnd.random() < 0.9,
        "device": d,
        "groups": g,
        "tasks": tasks(rnd, paths, slice_idle, large),
    }


# --- a scenario for older kernels ----------------------------------------------------------

def kernel_scenario(seed, i, large=False):
    """Groups side by side, ticks of 1, 4 and 10 ms, what the kernels do each in its own way."""
    rnd = random.Random("kernel %d/%d" % (seed, i))
    hz, g = rnd.choice([100, 250, 1000, 1000]), kernel_groups(rnd)
    t = kernel_tunables(rnd)
    d = dict(device(rnd), queue_depth=rnd.choice([1, 1, 2, 4, 8, 16, 32]))
    paths = [one["path"] for one in g] + ["/"] * rnd.choice([0, 1])
    made_tasks = tasks(rnd, paths, t.get("slice_idle", 8), large)
    if rnd.random() < 0.4:
        made_tasks += writers(rnd, paths, len(made_tasks))
    for one in made_tasks:
        if rnd.random() < 0.25:
            think_by_ticks(rnd, one, 1_000_000_000 // hz)
    return {
        "name": "kernel-%d-%04d" % (seed, i),
        "about": "random groups and tasks, HZ %d" % hz,
        "scheduler": "cfq",
        "tunables": t,
        "hz": hz,
        "merges": rnd.random() < 0.9,
        "device": d,
        "groups": g,
        "tasks": made_tasks,
    }


def kernel_groups(rnd):
    """One to six; some below another, which has to make no difference."""
    weights = rnd.choice([[500], [100, 200, 300, 400], [100, 500, 1000], list(range(100, 1001))])
    made = []
    for name in "abcdef"[:rnd.randrange(1, 7)]:
        above = rnd.choice(made)["path"] if made and rnd.random() < 0.2 else ""
        made.append({"path": above + "/" + name, "weight": rnd.choice(weights)})
    return made


def kernel_tunables(rnd):
    t = tunables(rnd, "either")
    for name, values in (("group_isolation", [0, 0, 1, None]), ("slice_idle", [0, 8, 8, 12, None]),
                         ("group_idle", [0, 8, 8, 12, None])):
        value = rnd.choice(values)
        if value is not None:
            t[name] = value
    return t


def writers(rnd, paths, taken):
    """Writers of several groups, whose queues are the device's."""
    made = []
    for n in range(rnd.randrange(2, 5)):
        at = rnd.choice([0, rnd.randrange(DISK // 8) * 8])
        ioprio = rnd.choice(["be/4", "be/4", "be/%d" % rnd.randrange(8)])
        made.append({"id": taken + n + 1, "group": rnd.choice(paths), "ioprio": ioprio,
                     "start_ns": rnd.choice([0, rnd.randrange(100 * MS)]),
                     "depth": rnd.choice([4, 16, 64]),
                     "requests": [[0, "W", at + 64 * k, 64] for k in range(rnd.randrange(20, 80))]})
    return made


def think_by_ticks(rnd, one, tick):
    """Think times around whole ticks, where a count of ticks changes."""
    most = rnd.choice([1, 2, 4])
    for request in one["requests"]:
        request[0] = max(0, rnd.randrange(most + 1) * tick + rnd.choice([-1, 0, 0, 1, tick // 2]))


def write(folder, made, suffix, **keys):
    made = dict(made, name=made["name"] + suffix, **keys)
    path = os.path.join(folder, made["name"] + ".scenario.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(made, f, separators=(",", ":"))


def main():
    p = argparse.ArgumentParser(description="Makes random scenarios for CFQ.")
    p.add_argument("out")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--count", type=int, default=1000)
    what = p.add_mutually_exclusive_group()
    what.add_argument("--hierarchy", default="both",
                      choices=["leaf-weight", "flat", "entities", "both"])
    what.add_argument("--kernel", choices=[*KERNELS, "all"])
    p.add_argument("--large", action="store_true", help="more tasks and requests")
    args = p.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for i in range(args.first, args.first + args.count):
        if args.kernel:
            made = kernel_scenario(args.seed, i, args.large)
            for kernel in KERNELS if args.kernel == "all" else [args.kernel]:
                write(args.out, made, "-" + kernel, kernel=kernel)
            continue
        made = scenario(args.seed, i, args.large)
        if args.hierarchy == "both":
            write(args.out, made, "-flat", hierarchy="flat")
            write(args.out, made, "-entities", hierarchy="entities")
        else:
            write(args.out, made, "", hierarchy=args.hierarchy)


if __name__ == "__main__":
    main()
