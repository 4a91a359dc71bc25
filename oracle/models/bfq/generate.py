"""Random scenarios in which BFQ has something to decide."""

import random

MS = 1_000_000
SECOND = 1000 * MS
DISK = 1 << 31  # sectors
IOPRIOS = [f"rt/{n}" for n in range(8)] + [f"be/{n}" for n in range(8)] + ["idle", "none"]
# Times, in ms, at which something begins or ends to hold, and others near them.
EDGES = [0, 1, 10, 11, 100, 101, 179, 180, 181, 300, 500, 501, 599, 600, 601, 1201, 2001, 2500]


def scenario(seed):
    """The scenario of a seed: its `theme` says what its tasks have in common."""
    rng = random.Random(seed)
    theme = rng.choice([name for name, (share, _) in THEMES.items() for _ in range(share)])
    groups = make_groups(rng, theme)
    paths = [group["path"] for group in groups] + ["/"] * rng.choice([1, 3])
    tasks = THEMES[theme][1](rng)
    alike = theme in ("interleaved", "twins", "burst", "players")
    style = rng.choice(["default"] * (8 if alike else 2) + ["mostly", "best effort", "any"])
    together = 0.9 if alike else 0.5
    one_group = rng.choice(paths) if rng.random() < together else None
    for number, task in enumerate(tasks, 1):
        task["id"] = number
        task["group"] = one_group or rng.choice(paths)
        task.setdefault("ioprio", choose_ioprio(rng, style))
    return {
        "name": f"r{seed}", "about": f"random, {theme}", "scheduler": "bfq",
        "tunables": make_tunables(rng, theme), "hz": rng.choice([100, 250, 1000, 1000]),
        "merges": rng.random() < 0.7, "device": make_device(rng, theme), "groups": groups,
        "tasks": [{key: task[key] for key in (
            "id", "group", "ioprio", "start_ns", "depth", "requests")} for task in tasks],
    }


def make_device(rng, theme):
    rotational = rng.random() < (0.9 if theme in ("interleaved", "players", "burst") else 0.5)
    depth = rng.choice([1, 1, 2, 3, 4, 8, 32, 64])
    if theme == "deepening" or theme == "twins" and rng.random() < 0.6:
        rotational, depth = False, rng.choice([8, 32])
    base_ns = rng.choice([20_000, 80_000, 150_000, 500_000, 2_000_000])
    if theme == "slow":
        base_ns = rng.choice([2_000_000, 5_000_000, 12_000_000])
    if theme == "drought":
        base_ns, depth = rng.choice([300_000_000, 700_000_000]), 64
    channels = 1 if rotational else rng.choice([1, min(depth, 2), min(depth, 8)])
    return {
        "rotational": rotational,
        "queue_depth": depth,
        "channels": channels,
        "base_ns": base_ns + rng.randrange(999),
        "per_sector_ns": rng.choice([0, 500, 3_000, 5_000]),
        "seek_base_ns": rng.choice([0, 500_000, 4_000_000]) if rotational else 0,
        "seek_ns_per_mi_sector": rng.choice([0, 1_000, 5_000]) if rotational else 0,
    }


def make_tunables(rng, theme):
    tunables = {}

    def maybe(chance, name, values):
        if rng.random() < chance:
            tunables[name] = rng.choice(values)

    maybe(0.4, "low_latency", [0, 0, 0, 1])
    maybe(0.2, "slice_idle", [0, 1, 2, 4, 8, 20])
    maybe(0.05, "slice_idle_us", [500, 2_500, 9_999])
    maybe(0.15, "max_budget", [0, 64, 256, 2_048, 16_384])
    maybe(0.15, "timeout_sync", [10, 40, 60, 125, 400])
    maybe(0.05, "strict_guarantees", [0, 1, 1])
    maybe(0.15, "fifo_expire_sync", [1, 5, 50])
    maybe(0.15, "fifo_expire_async", [1, 20, 100])
    maybe(0.1, "back_seek_max", [0, 64, 1_024, 1_000_000])
    maybe(0.1, "back_seek_penalty", [1, 4, 10])
    if theme in ("players", "applications", "burst"):
        tunables.pop("low_latency", None)
    items = list(tunables.items())
    rng.shuffle(items)
    return dict(items)


def make_groups(rng, theme):
    """A tree of at most six groups, at most three deep."""
    if theme != "groups" and rng.random() < 0.6:
        return []
    weights = rng.choice([[100], [100, 300, 1000], list(range(1, 1001))])
    made = []
    for letter in "abcdef"[:rng.randint(1, 6)]:
        parents = [""] + [g["path"] for g in made if g["path"].count("/") < 3]
        made.append({"path": f"{rng.choice(parents)}/{letter}", "weight": rng.choice(weights)})
    return made


def choose_ioprio(rng, style):
    if style == "default":
        return rng.choice(["be/4", "none"])
    if style == "mostly":
        return rng.choice(["be/4"] * 6 + IOPRIOS)
    if style == "best effort":
        return f"be/{rng.randrange(8)}"
    return rng.choice(IOPRIOS)


# --- tasks: when they start, and what they ask for --------------------------------------


def edge(rng):
    """A time, in ns."""
    return rng.choice(EDGES) * MS + rng.choice([0, 0, 1, rng.randrange(MS)])


def task(rng, requests, depth=None, start_ns=None):
    if depth is None:
        depth = rng.choice([1, 1, 1, 2, 4, 8, 16])
    if start_ns is None:
        start_ns = rng.choice([0, 0, edge(rng), rng.randrange(200 * MS)])
    return {"start_ns": start_ns, "depth": depth, "requests": requests}


def thinking(rng):
    """What a task does between its requests."""
    style = rng.choice(["none", "none", "none", "short", "long", "batches", "rests", "edge"])

    def think():
        if style == "short":
            return rng.randrange(3 * MS)
        if style == "long":
            return rng.randrange(3 * MS, 25 * MS)
        if style == "batches":
            return rng.choice([0] * 12 + [rng.randrange(10 * MS, 200 * MS)])
        if style == "rests":
            return rng.choice([0] * 20 + [edge(rng)])
        if style == "edge":
            return 8 * MS + rng.randrange(-1, 2)
        return 0
    return think


def places(rng, count, way=None):
    """Where the requests are, and how long each is."""
    way = way or rng.choice(["up", "up", "random", "random", "near", "mixed", "down", "shuffled",
                             "overlapping"])
    lengths = rng.choice([[8], [8], [8, 16, 64], [64], [256], [8, 256, 1024], [16, 2560]])
    at = base = rng.randrange(DISK // 2)
    made = []
    for _ in range(count):
        length = rng.choice(lengths)
        if way == "overlapping":
            at = base + 8 * rng.randrange(40)
        if way == "random" or (way == "mixed" and rng.random() < 0.3):
            at = rng.randrange(DISK)
        elif way == "near":
            at = max(0, at + rng.randrange(-40, 41) * length)
        elif way == "down":
            at = max(0, at - length)
        made.append((at, length))
        if way != "down":
            at += length
    if way == "shuffled":
        for first in range(0, count, 8):
            some = made[first:first + 8]
            rng.shuffle(some)
            made[first:first + 8] = some
    return made


def ordinary(rng, count=None, ops=None):
    """A task of any kind."""
    ops = ops or rng.choice(["R", "R", "R", "R", ["WS"], "W", "RW", ["R", "WS"],
                             ["R", "WS", "W", "D"], ["R"] * 30 + ["W", "F"]])
    think = thinking(rng)
    count = count or rng.randint(10, rng.choice([30, 100, 300]))
    requests = []
    for at, length in places(rng, count):
        op = rng.choice(ops)
        requests.append([think(), op, at, 0 if op == "F" else length])
    return task(rng, requests)


def hog(rng, count=150):
    """A task that always wants the device."""
    way = rng.choice(["up", "up", "random"])
    op = rng.choice(["R", "R", "R", "WS", "W"])
    made = task(rng, [[0, op, at, length] for at, length in places(rng, count, way)],
                rng.choice([1, 2, 4, 16]), rng.choice([0, 0, edge(rng)]))
    made["ioprio"] = rng.choice(["be/4", "be/5", "be/6", "none"])
    return made


# --- themes -----------------------------------------------------------------------------


def mixture(rng):
    return [ordinary(rng) for _ in range(rng.randint(1, 8))]


def in_groups(rng):
    """Many that always want something, so that weights decide."""
    return [hog(rng, 80) if rng.random() < 0.6 else ordinary(rng, rng.randint(10, 80))
            for _ in range(rng.randint(3, 12))]


def applications(rng):
    """Tasks that start, rest and start anew beside others that do not: interactive raising."""
    made = [hog(rng, rng.choice([100, 400])) for _ in range(rng.randint(1, 2))]
    for _ in range(rng.randint(1, 4)):
        op = rng.choice(["R", "R", "R", "WS", "W"])
        requests = []
        for at, length in places(rng, rng.randint(20, 150)):
            rest = rng.random() < 0.05
            requests.append([edge(rng) if rest else rng.choice([0, 0, 0, 500_000]), op, at,
                             length])
        made.append(task(rng, requests, start_ns=edge(rng)))
    if rng.random() < 0.2:  # much served while it is raised
        many = [[0, "R", 2560 * n, 2560] for n in range(80)]
        made.append(task(rng, many, rng.choice([1, 4]), 0))
    return made


def players(rng):
    """Tasks that ask for a little at regular times: soft real-time raising."""
    made = [hog(rng, rng.choice([100, 400])) for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(1, 3)):
        period = rng.choice([15, 20, 40, 100, 350, 2_100]) * MS
        batch = rng.choice([1, 1, 2, 3, 6])
        spread = rng.random() < 0.3
        requests = []
        if rng.random() < 0.4:  # too much to stay raised
            requests = [[0, "R", 2560 * n, 2560] for n in range(50)]
        for n, (at, _) in enumerate(places(rng, rng.randint(20, 80))):
            think = 0 if n % batch else period
            if spread and rng.random() < 0.1:
                think = rng.randrange(2 * period)
            requests.append([think, "R", at, rng.choice([8, 64])])
        made.append(task(rng, requests, rng.choice([1, 1, batch])))
        made[-1]["ioprio"] = rng.choice(["be/4", "none", "none"])
    return made


def burst(rng):
    """Many tasks that start close together."""
    gap = rng.choice([0, MS, 10 * MS, 60 * MS, 179 * MS, 190 * MS])
    start = rng.choice([0, edge(rng), 400 * MS])
    made = [hog(rng, rng.choice([150, 500]))] if rng.random() < 0.6 else []
    for n in range(rng.randint(6, 24)):
        short = rng.random() < 0.3
        think = thinking(rng)
        requests = [[think(), "R", at, length]
                    for at, length in places(rng, rng.randint(1, 4 if short else 40))]
        made.append(task(rng, requests, start_ns=start + n * gap + rng.choice([0, 0, MS])))
    if rng.random() < 0.4:  # some leave the burst after a long rest
        for resting in made[-3:]:
            requests = resting["requests"]
            requests[len(requests) // 3][0] = 10_500 * MS
    return made


def interleaved(rng):
    """Tasks that read every other piece of the same sectors, and that part for a while."""
    made = [hog(rng, 100)] if rng.random() < 0.5 else []
    for _ in range(rng.choice([1, 1, 2])):
        made += crew(rng, len(made) + 1)
    return made


def crew(rng, number):
    """Tasks numbered from `number` on, which may wait for one another."""
    count, size = rng.choice([2, 2, 2, 3, 4, 4, 8, 12]), rng.choice([8, 8, 16, 64, 256])
    base, pieces = rng.randrange(DISK // 2), rng.randint(20, 400 // count)
    parting = rng.choice([pieces, pieces // 4, pieces // 3, pieces // 3])
    apart = range(parting, parting + rng.randint(20, 40))
    stage = rng.choice([0, 0, rng.randint(1, parting)])  # first in pairs, then four by four
    depth, gap = rng.choice([1, 1, 2, 4]), rng.choice([0, 0, 0, MS, 20 * MS, 400 * MS])
    wait = rng.choice([0, 0, 0, 100_000, 3 * MS, 6 * MS, 40 * MS, 600 * MS])
    batch = rng.choice([1, 1, 3, 9])
    tasks = []
    same = rng.random() < 0.15  # they all read the same
    manner = rng.choice(["free", "free", "free", "free", "alternate", "led"])
    if manner == "alternate":
        count, depth = 2, 1
    if manner == "led":  # by one that waits for the first of them
        depth = 1
        turns = [[0, "R", rng.randrange(DISK), 8, f"{number + 1}.{n - 1}"] for n in range(pieces)]
        turns[0].pop()
        tasks.append(task(rng, turns, 1, 0))
    for k in range(count):
        requests = []
        for n in range(pieces if manner != "free" or rng.random() < 0.8 else pieces // 2):
            at = base + (n if same else n * count + k) * size
            if n in apart:
                at = rng.randrange(DISK)
            elif n < 2 * stage:
                share = 2 if n < stage else 4
                at = base + (k // share + 1) * 1_000_000 + (n * share + k % share) * size
            think = 0 if n % batch or not wait else rng.randrange(wait // 2, wait)
            if stage and 0 < n <= 2 * stage and n % stage == 0:  # where some come later
                think = 40 * MS + rng.choice([0, k * 100_000, rng.randrange(900 * MS)])
            request = [think, "R" if rng.random() < 0.95 else "WS", at, size]
            if manner == "alternate" and (n, k) != (0, 0):
                request.append(f"{number + 1 - k}.{n - 1 + k}")
            if manner == "led":
                request.append(f"{number}.{n}")
            requests.append(request)
        tasks.append(task(rng, requests, depth, k * gap))
        tasks[-1]["ioprio"] = rng.choice(["be/4"] * 9 + ["be/3"])
    return tasks


def twins(rng):
    """Tasks that are created shortly one after the other, which may be merged at once or later."""
    made = [ordinary(rng)] if rng.random() < 0.5 else []
    start = edge(rng)
    way = rng.choice(["random", "up", "near"])
    for _ in range(rng.randint(2, 5)):
        start += rng.choice([0, 1, 50, 150, 180, 181, 400]) * MS
        think = rng.choice([0, 0, MS, 4 * MS, 15 * MS])
        parting = rng.random() < 0.3
        requests = [[rng.randrange(think) if think else 0, rng.choice("RRRRRW"), at, length]
                    for at, length in places(rng, rng.randint(60, 150), way)]
        if parting:
            far = places(rng, 40, "random")
            requests[20:60] = [[0, "R", at, 8] for at, _ in far]
        made.append(task(rng, requests, rng.choice([1, 1, 2, 4]), start))
        made[-1]["ioprio"] = "be/4"
    return made


def chain(rng):
    """Tasks that wait for one another: wakers."""
    made = [ordinary(rng) for _ in range(rng.randint(0, 3))]
    first = len(made) + 1
    links, rounds = rng.choice([2, 2, 3]), rng.randint(20, 120)
    star = rng.random() < 0.4  # they all wait for the first
    for k in range(links):
        op = rng.choice(["R", "R", "WS"])
        think = rng.choice([0, 0, 100_000, 2 * MS, 6 * MS])
        depth = rng.choice([1, 1, 3])
        requests = []
        for n, (at, length) in enumerate(places(rng, rounds * depth)):
            request = [rng.randrange(think) if think else 0, op, at, length]
            if n % depth == 0:
                turn = n // depth
                if k > 0:
                    request.append(f"{first if star else first + k - 1}.{turn}")
                elif turn > 0:
                    request.append(f"{first + links - 1}.{turn - 1}")
            requests.append(request)
        made.append(task(rng, requests, depth, rng.choice([0, 300 * MS])))
    return made


def writers(rng):
    """Buffered writes beside reads, some of the same task."""
    made = [ordinary(rng, ops=["R"]) for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(1, 3)):
        think = thinking(rng)
        requests = [[think(), rng.choice("WWWWD" if rng.random() < 0.1 else "W"), at, length]
                    for at, length in places(rng, rng.randint(30, 250))]
        made.append(task(rng, requests, rng.choice([1, 8, 32, 64])))
    return made


def slow(rng):
    """Enough time for the peak rate to be learnt."""
    made = [hog(rng, rng.choice([300, 600])) for _ in range(rng.randint(1, 2))]
    return made + [ordinary(rng, 50) for _ in range(rng.randint(0, 2))]


def drought(rng):
    """Much is dispatched before anything completes."""
    made = []
    for _ in range(rng.randint(1, 2)):
        times = sorted(rng.randrange(1200 * MS) for _ in range(80))
        where = places(rng, 80, rng.choice(["up", "up", "random"]))
        requests = [[time, "R", at, length] for time, (at, length) in zip(times, where)]
        made.append(task(rng, requests, 64, 0))
    return made


def deepening(rng):
    """At first the device never has more than three requests, though others wait; then it has."""
    first = task(rng, [[0, "R", at, length] for at, length in places(rng, 80)], 3, 0)
    first["ioprio"] = "rt/4"
    return [first] + [hog(rng, 120) for _ in range(rng.randint(1, 3))]


THEMES = {  # with the share of each
    "mixture": (3, mixture), "groups": (2, in_groups), "applications": (2, applications),
    "players": (3, players), "burst": (3, burst), "interleaved": (6, interleaved),
    "twins": (3, twins), "chain": (2, chain), "writers": (2, writers), "slow": (2, slow),
    "drought": (1, drought), "deepening": (1, deepening),
}
