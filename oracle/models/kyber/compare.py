#!/usr/bin/env python3
"""Runs random scenarios, or those of a folder, in the model and in `paternoster decide`.

Every line has to be the same in the same order, what Kyber says of itself included; only `exit`,
which is the laboratory's own, is left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True  # the folder stays as it is
import generate  # noqa: E402
import model  # noqa: E402

SCENARIO, LOG = ".scenario.json", ".log.jsonl"


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.folder or scratch)
        if not args.folder:
            for seed in range(args.seed, args.seed + args.count):
                text = json.dumps(generate.scenario(seed))
                (folder / f"r{seed}{SCENARIO}").write_text(text)
        out = Path(scratch) / "out"
        decide = [args.program, "decide", folder, "--out", out]
        subprocess.run(decide, check=True, stdout=subprocess.DEVNULL)
        sys.exit(judge(folder, out))


def judge(folder, out):
    """Prints what differs, and what all the scenarios together have shown; 1 if any differs."""
    seen, differ, count = Counter(), 0, 0
    for path in sorted(folder.glob("*" + SCENARIO)):
        name = path.name.removesuffix(SCENARIO)
        count += 1
        scenario = json.loads(path.read_text())
        expected = model.Run(scenario).lines
        logs = [out / (name + LOG)]
        linux = folder / (name + LOG)
        if linux.exists():
            logs.append(linux)
        for log in logs:
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            lines = [line for line in lines if line["ev"] != "exit"]
            if lines != expected:
                differ += 1
                print(f"{log}: {first_difference(lines, expected)}")
        kinds = {line["ev"] for line in expected}
        seen.update(kinds)
        seen.update(["lowered"] if lowers(expected) else [])
        seen["dispatches"] += sum(line["ev"] == "D" for line in expected)
    print(f"{count} scenarios, {differ} logs differ")
    print(f"with merges {seen['M']}, with percentiles {seen['latency']}, with changes of depth "
          f"{seen['depth']}, with lowered depths {seen['lowered']}; "
          f"{seen['dispatches']} dispatches")
    return int(differ > 0)


def lowers(lines):
    """Whether a depth falls."""
    depth = dict(model.TOKENS)
    for line in lines:
        if line["ev"] == "depth":
            if line["v"] < depth[line["dom"]]:
                return True
            depth[line["dom"]] = line["v"]
    return False


def first_difference(lines, expected):
    for number, (line, wanted) in enumerate(zip(lines, expected), 1):
        if line != wanted:
            return f"line {number} is {line}, the model has {wanted}"
    return f"{len(lines)} lines, the model has {len(expected)}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/paternoster")
    parser.add_argument("--count", type=int, default=1000, help="random scenarios")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them")
    parser.add_argument("folder", nargs="?", help="scenarios to take instead, with logs or without")
    return parser.parse_args()


if __name__ == "__main__":
    main()
