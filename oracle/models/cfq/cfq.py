#!/usr/bin/env python3
"""A model of the CFQ I/O scheduler: of v4.20, older kernels, and the `use_hierarchy` variant.

    cfq.py SCENARIO.json [-o LOG.jsonl] [--hierarchy MODE | --kernel KERNEL]
    cfq.py SCENARIO_DIR -o LOG_DIR [--hierarchy MODE | --kernel KERNEL]

Reads scenarios and writes decision logs. MODE is `leaf-weight` (Linux v4.20's own
hierarchy), `flat` (use_hierarchy 0) or `entities` (use_hierarchy 1). Without the
option a scenario's own key `hierarchy` decides; without that, `leaf-weight`. KERNEL is
`2.6.35-seed`, `2.6.36` or `2.6.37`; in its place a scenario has the key `kernel`.

The numbers in the comments (8.2, 28.3.3) are the sections of the description of CFQ.
"Reading 4" and the like are the numbered readings of README.md.
"""
import argparse
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True              # the folders stay as they are
sys.path.append(str(Path(__file__).resolve().parents[1]))
from kernels import KERNELS, V4_20  # noqa: E402
from laboratory import Run  # noqa: E402
from readings import default_readings, parse_readings  # noqa: E402
from scheduler import HIERARCHIES  # noqa: E402


def decide(scenario, readings=None, checked=False):
    """The lines of the log of a scenario."""
    if "kernel" in scenario and "hierarchy" in scenario:
        raise ValueError("`kernel` has no hierarchy: give one of the two")
    kernel = KERNELS[scenario["kernel"]] if "kernel" in scenario else V4_20
    mode = scenario.get("hierarchy", "leaf-weight")
    if scenario.get("scheduler", "cfq") != "cfq":
        raise ValueError("not a scenario for cfq")
    out = []
    Run(scenario, kernel, mode, out, readings or default_readings(), checked).run()
    return out


def decide_file(path, to, instead, readings, checked):
    with open(path, encoding="utf-8") as f:
        lines = decide(json.load(f) | instead, readings, checked)
    with (open(to, "w", encoding="utf-8") if to else sys.stdout) as f:
        f.write("\n".join(lines) + "\n")


def main():
    p = argparse.ArgumentParser(description="Decides scenarios as CFQ does.")
    p.add_argument("scenario", help="a scenario, or a folder of NAME.scenario.json")
    p.add_argument("-o", "--out", help="the log, or the folder of the logs")
    own = p.add_mutually_exclusive_group()
    own.add_argument("--hierarchy", choices=sorted(HIERARCHIES), help="in place of the file's")
    own.add_argument("--kernel", choices=sorted(KERNELS), help="in place of the file's")
    p.add_argument("--reading", action="append", default=[], metavar="NAME=VALUE",
                   help="read the description otherwise (README.md)")
    p.add_argument("--check", action="store_true", help="check what must hold at every event")
    args = p.parse_args()
    readings = parse_readings(args.reading)
    instead = {key: value for key, value in (("hierarchy", args.hierarchy), ("kernel", args.kernel))
               if value}
    if not os.path.isdir(args.scenario):
        decide_file(args.scenario, args.out, instead, readings, args.check)
        return
    if not args.out:
        p.error("a folder of scenarios needs -o")
    os.makedirs(args.out, exist_ok=True)
    for name in sorted(os.listdir(args.scenario)):
        if name.endswith(".scenario.json"):
            to = os.path.join(args.out, name.replace(".scenario.json", ".log.jsonl"))
            decide_file(os.path.join(args.scenario, name), to, instead, readings,
                        args.check)


if __name__ == "__main__":
    main()
