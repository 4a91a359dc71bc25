#!/usr/bin/env python3
"""Small scenarios with what section 12 says of them, worked out by hand before anything was asked.

    examples.py [--program PROGRAM]

Without --program the model is asked, else a `paternoster`. The number in a name is the
scenario's in section 12. Reads of 4 KiB cost 1 op, and each takes 100 µs on one server, unless
said. Exit status 0 if all come out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path

sys.dont_write_bytecode = True  # the folders stay as they are
sys.path.append(str(Path(__file__).resolve().parents[1]))
import compare  # noqa: E402
from limits import CAPS, RESERVATIONS  # noqa: E402

UNNUMBERED = ["more_is_reserved_than_there_is", "runs_are_as_long_as_the_device_takes_for_them",
              "sweep_upwards"]
LIMITS = [*CAPS, *RESERVATIONS]
US, MS = 1_000, 1_000_000
TAKES = 100 * US
FIXED = {"cost": 3}
MIB = 2048  # sectors


def group(path, weight=100, leaf_weight=100):
    return {"path": path, "weight": weight, "leaf_weight": leaf_weight}


def task(number, path, count, depth=32, op="R", length=8, ioprio="be/4", start=0):
    """A task of `count` requests, far from each other and from those of other tasks."""
    requests = [[0, op, number * 100_000_000 + index * 8192, length] for index in range(count)]
    return {"id": number, "group": path, "ioprio": ioprio, "start_ns": start, "depth": depth,
            "requests": requests}


def scenario(groups, tasks, depth=1, channels=1, **more):
    tunables = {"depth": depth, "keep_slots": 0, "cost": 1} | more.pop("tunables", {})
    device = {"rotational": False, "queue_depth": 128, "channels": channels, "base_ns": TAKES,
              "per_sector_ns": 0, "seek_base_ns": 0, "seek_ns_per_mi_sector": 0}
    return {
        "name": "one", "about": "worked out by hand", "scheduler": "wfq", "tunables": tunables,
        "hz": 1000, "merges": False, "device": device | more.pop("device", {}),
        "groups": groups, "tasks": tasks,
    } | more


class Log:
    """The lines of a run."""

    def __init__(self, lines):
        self.lines = lines

    def of(self, kind):
        return [line for line in self.lines if line["ev"] == kind]

    def order(self):
        """The tasks of all dispatches."""
        return [int(line["rq"].split(".")[0]) for line in self.of("D")]

    def charge(self, rq):
        return [line["charge"] for line in self.of("fair_dispatch") if line["rq"] == rq]


def near(found, wanted, off, what):
    assert abs(found - wanted) <= off, f"{what}: {found}, wanted {wanted} ± {off}"


def parts(order, wanted, off):
    """Each task's part of the dispatches, in percent."""
    counts = Counter(order)
    for number, part in wanted.items():
        near(100 * counts[number] / len(order), part, off, f"task {number}")


# --- order and entry -----------------------------------------------------------------------

def s1_weights_1_2(ask):
    log = ask(scenario([group("/a", 100), group("/b", 200)],
                       [task(1, "/a", 50), task(2, "/b", 100)]))
    assert log.order()[:12] == [1, 2, 2] * 4, log.order()[:12]


def s2_weights_1_2_4_are_exact(ask):
    groups = [group("/a", 100), group("/b", 200), group("/c", 400)]
    counts = ("/a", 1100), ("/b", 2200), ("/c", 4400)
    order = ask(scenario(groups, [task(n + 1, path, count) for n, (path, count) in
                                  enumerate(counts)])).order()
    for number, wanted in ((1, 1000), (2, 2000), (3, 4000)):
        near(order[:7000].count(number), wanted, 1, f"task {number}")


def s3_no_debt_of_one_who_was_alone(ask):
    log = ask(scenario([group("/a"), group("/b")],
                       [task(1, "/a", 10_100), task(2, "/b", 50, start=10_000 * TAKES + 1)]))
    order = log.order()
    assert order[:10_001] == [1] * 10_001
    assert order[10_001:10_021] == [2, 1] * 10, order[10_001:10_021]


def s4_one_who_was_away_enters_at_v(ask):
    second = task(2, "/b", 40)
    for request in second["requests"][20:]:
        request[0] = 500 * TAKES  # away while v goes on by 5
    second["depth"] = 20
    order = ask(scenario([group("/a"), group("/b")], [task(1, "/a", 700), second])).order()
    runs = [len(list(same)) for number, same in groupby(order[:650]) if number == 2]
    assert set(runs) == {1}, f"never two in a row: {runs}"


def s5_grace_gives_ten_requests(ask):
    """At 50.2 ms A's start is 5.03; v was 4.92 at 49.2 ms, where the parent noted it (each 300 µs,
    the first multiple of 100 that is a quarter of 1 ms or more). So B goes first at 4.92 … 5.02."""
    log = ask(scenario([group("/a"), group("/b")],
                       [task(1, "/a", 600), task(2, "/b", 50, start=502 * TAKES)],
                       tunables={"grace_us": 1000}))
    order = log.order()
    assert order[:503] == [1] * 503
    assert order[503:520] == [2] * 11 + [1, 2] * 3, order[503:520]


def s6_leaving_gains_nothing(ask):
    """B, of weight 10, is ahead by 10 requests of A each time that it runs empty."""
    order = ask(scenario([group("/a", 100), group("/b", 10)],
                         [task(1, "/a", 550), task(2, "/b", 50, depth=1)])).order()
    places = [place for place, number in enumerate(order[:500]) if number == 2]
    # The first time 9 of A come between, at 0.01 … 0.09, since one at 0 went before; then 10.
    assert places == [1, *range(11, 500, 11)], places


def s7_one_completion_one_dispatch(ask):
    log = ask(scenario([group("/a")], [task(1, "/a", 40)], depth=4, channels=3))
    counts = [(line["ev"], line["t"]) for line in log.lines if line["ev"] in "CD"]
    assert [kind for kind, _ in counts[:4]] == ["D"] * 4
    assert [kind for kind, _ in counts[4:76]] == ["C", "D"] * 36, counts


# --- prices --------------------------------------------------------------------------------

def s8_a_mib_costs_52_reads_of_4_kib(ask):
    log = ask(scenario([group("/a"), group("/b")],
                       [task(1, "/a", 1000), task(2, "/b", 20, length=MIB)], tunables=FIXED))
    assert log.charge("1.0") == [1_310_720] and log.charge("2.0") == [68_157_440]
    gaps_are(log.order(), 2, 52)


def gaps_are(order, number, wanted):
    """So many others are between two of the task; one fewer at first, since one went before."""
    places = [place for place, found in enumerate(order) if found == number]
    gaps = [after - before - 1 for before, after in zip(places[:10], places[1:10])]
    assert gaps == [wanted - 1] + [wanted] * 8, gaps


def s14_two_contexts_of_a_group(ask):
    log = ask(scenario([group("/a")],
                       [task(1, "/a", 1000), task(2, "/a", 20, length=MIB)], tunables=FIXED))
    gaps_are(log.order(), 2, 52)


def s23_fua_at_twice_the_price(ask):
    log = ask(scenario([group("/a"), group("/b")],
                       [task(1, "/a", 300, op="WF"), task(2, "/b", 600, op="WS")],
                       tunables={"cost_fua": 200}))
    parts(log.order()[:600], {1: 100 / 3, 2: 200 / 3}, 0.2)


# --- the tree ------------------------------------------------------------------------------

TREE = [group("/p", 300), group("/p/a", 100), group("/p/b", 200), group("/q", 100),
        group("/q/c", 100), group("/d", 200)]


def nested(ask, wanted):
    paths = {1: "/p/a", 2: "/p/b", 3: "/q/c", 4: "/d"}
    tasks = [task(number, paths[number], int(31 * part)) for number, part in wanted.items()]
    parts(ask(scenario(TREE, tasks)).order()[:3000], wanted, 0.1)


def s9_nested(ask):
    nested(ask, {1: 100 / 6, 2: 200 / 6, 3: 100 / 6, 4: 200 / 6})


def s9_nested_without_a(ask):
    nested(ask, {2: 50, 3: 100 / 6, 4: 200 / 6})


def s9_nested_without_p(ask):
    nested(ask, {3: 100 / 3, 4: 200 / 3})


def s10_leaf_weight(ask):
    log = ask(scenario([group("/g", 100, 50), group("/g/h", 150)],
                       [task(1, "/g", 300), task(2, "/g/h", 800)]))
    parts(log.order()[:800], {1: 25, 2: 75}, 0.2)


def s11_weight_holds_from_the_next_dispatch(ask):
    log = ask(scenario([group("/a"), group("/b")], [task(1, "/a", 500), task(2, "/b", 500)],
                       changes=[{"at_ns": 100 * TAKES + 1, "group": "/a", "weight": 300}]))
    order = log.order()
    parts(order[:100], {1: 50, 2: 50}, 1)
    parts(order[101:501], {1: 75, 2: 25}, 0.5)
    names = [line["rq"] for line in log.of("D")]
    for number in (1, 2):
        own = [int(name.split(".")[1]) for name in names if name.startswith(f"{number}.")]
        assert own == list(range(500)), "nothing lost or reordered"


def s12_start_stays_when_the_weight_changes(ask):
    """A's first request costs 120 op, 0.4 at weight 300; each of B's costs 2, 0.02 at 100."""
    heavy = task(1, "/a", 2, length=8 * 119)
    log = ask(scenario([group("/a", 300), group("/b", 100)],
                       [heavy, task(2, "/b", 60)],
                       tunables=FIXED | {"cost_op_bytes": 4096},
                       changes=[{"at_ns": 1, "group": "/a", "weight": 100}]))
    places = [place for place, number in enumerate(log.order()) if number == 1]
    assert log.charge("1.0") == [120 << 20] and log.charge("2.0") == [2 << 20]
    # 20 of B's start below 0.4; the one at 0.4 goes behind A, whose key is older.
    assert places == [0, 21], places


def s13_many_connections_gain_nothing(ask):
    many = [task(number + 10, "/a", 2, depth=1) for number in range(1000)]
    few = [task(number + 1, "/b", 500, depth=16) for number in range(4)]
    order = ask(scenario([group("/a"), group("/b")], many + few, depth=16, channels=16)).order()
    of_many = sum(number >= 10 for number in order[1000:3000])
    near(of_many / 20, 50, 0.1, "part of the thousand")


def s15_levels(ask):
    log = ask(scenario([group("/a")], [task(1, "/a", 900, ioprio="be/0"),
                                       task(2, "/a", 200, ioprio="be/7")]))
    parts(log.order()[:900], {1: 800 / 9, 2: 100 / 9}, 0.2)


def s15_class_that_waits(ask):
    """be waits from its arrival, at 0, behind rt: after 50 ms it gets one of 16."""
    log = ask(scenario([group("/a")], [task(1, "/a", 1500, ioprio="rt/4"),
                                       task(2, "/a", 50, ioprio="be/4")],
                       tunables={"class_age": 50}))
    order = log.order()
    # The count begins with the dispatch at 50 ms, which is the 501st.
    places = [place for place, number in enumerate(order[:1200]) if number == 2]
    assert places == list(range(500 + 15, 1200, 16)), places


# --- caps and reservations ----------------------------------------------------------------

# 16 requests at once, each of 800 µs: 20,000 a second.
FAST = {"channels": 16, "depth": 16}
THREE = {1: "/a", 2: "/b", 3: "/c"}


def rates(log, since, until):
    """Of each task, dispatches a second."""
    found = Counter()
    for line in log.of("D"):
        if since <= line["t"] < until:
            found[int(line["rq"].split(".")[0])] += 10 ** 9 / (until - since)
    return found


def of_three(ask, groups, wanted):
    """Three with enough to do for 0.6 s, of which the last 0.5 count; to a request at least."""
    counts = {number: rate * 13 // 20 + 100 for number, rate in wanted.items()}
    one = scenario(groups, [task(number, path, int(counts[number]))
                            for number, path in THREE.items()], **FAST)
    one["device"]["base_ns"] = 800 * US
    found = rates(ask(one), 100 * MS, 600 * MS)
    for number, rate in wanted.items():
        near(found[number], rate, max(rate / 200, 2), f"task {number}")


def s16_cap_of_one_of_three(ask):
    groups = [group("/a") | {"riops": 2000}, group("/b"), group("/c")]
    of_three(ask, groups, {1: 2000, 2: 9000, 3: 9000})


def s17_cap_alone(ask):
    """11 at once, whose times are 0, 10, … 100 ms; then one each 10 ms, by the timer."""
    log = ask(scenario([group("/a") | {"riops": 100}], [task(1, "/a", 40, depth=40)], depth=40,
                       channels=40))
    times = [line["t"] for line in log.of("D")]
    assert times == [0] * 11 + [10 * MS * n for n in range(1, 30)], times


def s18_cap_of_a_parent(ask):
    groups = [group("/p") | {"rbps": 10_000_000}, group("/p/a"), group("/p/b")]
    two = [task(1, "/p/a", 2500), task(2, "/p/b", 1250)]
    log = ask(scenario(groups, two, **FAST))
    both = rates(log, 300 * MS, 800 * MS)
    near(both[1] * 4096, 5_000_000, 10_000, "one of two")
    near(both[2] * 4096, 5_000_000, 10_000, "the other")
    log = ask(scenario(groups, two[:1], **FAST))
    near(rates(log, 300 * MS, 800 * MS)[1] * 4096, 10_000_000, 10_000, "alone")


def s19_reservation_against_weights(ask):
    groups = [group("/a", 10) | {"min_iops": 5000}, group("/b", 1000), group("/c", 1000)]
    of_three(ask, groups, {1: 5000, 2: 7500, 3: 7500})
    of_three(ask, [group("/a", 10)] + groups[1:], {1: 100, 2: 9950, 3: 9950})


def s20_reservation_is_a_floor_and_no_extra(ask):
    groups = [group("/a", 1000) | {"min_iops": 5000}, group("/b", 1000), group("/c", 1000)]
    of_three(ask, groups, {1: 20_000 / 3, 2: 20_000 / 3, 3: 20_000 / 3})


def more_is_reserved_than_there_is(ask):
    """A twentieth of 20,000 is for the two others, by their weights."""
    groups = [group("/a") | {"min_iops": 10 ** 9}, group("/b", 100), group("/c", 300)]
    of_three(ask, groups, {1: 19_000, 2: 250, 3: 750})


# --- requests ------------------------------------------------------------------------------

def s22_requeued(ask):
    log = ask(scenario([group("/a")], [task(1, "/a", 5)], requeued={"1.1": 2}))
    names = [line["rq"] for line in log.of("D")]
    assert names == ["1.0", "1.1", "1.1", "1.1", "1.2", "1.3", "1.4"], names
    assert log.charge("1.1") == [1 << 20, 0, 0]


def s24_merges_stay_in_a_group(ask):
    """2.0 adjoins a request of another group; 3.0 one of another connection of that group."""
    tasks = [task(1, "/a", 2), task(2, "/b", 1), task(3, "/a", 1)]
    end = tasks[0]["requests"][1][2] + 8
    for one in tasks[1:]:
        one["requests"][0][2] = end
    log = ask(scenario([group("/a"), group("/b")], tasks, merges=True, tunables=FIXED))
    merges = [(line["rq"], line["into"], line["kind"]) for line in log.of("M")]
    assert merges == [("3.0", "1.1", "back")], merges
    assert log.charge("1.1") == [(1 << 20) + (1 << 19)], "an op, and 8 KiB of 16 for an op"


def runs_are_as_long_as_the_device_takes_for_them(ask):
    """The first window closes behind 64 requests, four times the depth at which it began. From then
    on the device is known to do ten and a half in 1050 µs."""
    log = ask(scenario([group("/a"), group("/b")], [task(1, "/a", 500), task(2, "/b", 500)],
                       tunables={"run_us": 1050}))
    order = log.order()
    assert order[:60] == [1, 2] * 30, order[:60]
    lengths = [len(list(same)) for _, same in groupby(order[80:900])]
    assert set(lengths[1:-1]) == {10}, lengths
    assert abs(order[:900].count(1) - 450) <= 10, "a run is all that one may be ahead by"


def sweep_upwards(ask):
    """With moving parts: upwards from the start of the last, then from the least again."""
    one = task(1, "/", 6)
    places = [500, 200, 900, 200, 100, 800]
    for index, place in enumerate(places):
        one["requests"][index][0], one["requests"][index][2] = index, place
    one["requests"][5][0] = 2 * TAKES + 1
    log = ask(scenario([], [one], device={"rotational": True}))
    served = [places[int(line["rq"].split(".")[1])] for line in log.of("D")]
    assert served == [500, 900, 100, 200, 200, 800], served


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="a `paternoster`, which is asked to decide them")
    program = parser.parse_args().program

    def ask(one):
        return Log(decided_by(program, one) if program else compare.decide(one)[0])

    examples = [(name, run) for name, run in globals().items()
                if name[0] == "s" and name[1:2].isdigit() or name in UNNUMBERED]
    wrong = 0
    for name, run in examples:
        try:
            run(ask)
        except AssertionError as fault:
            wrong += 1
            print(f"{name}: {fault}")
        except NotAsked as why:
            print(f"{name}: not asked, since {why}")
    print(f"{len(examples)} examples, {wrong} do not come out as worked out by hand")
    sys.exit(int(wrong > 0))


class NotAsked(Exception):
    """What no scenario can ask a `paternoster` for."""


def decided_by(program, one):
    if any(name in one_group for one_group in one["groups"] for name in LIMITS):
        raise NotAsked("FORMAT.md has no caps and reservations")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "one.scenario.json").write_text(json.dumps(one))
        subprocess.run([program, "decide", folder, "--out", folder], check=True,
                       capture_output=True)
        lines = (Path(folder) / "one.log.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main()
