#!/usr/bin/env python3
"""Runs random scenarios in the model and in `paternoster-lab decide`, and compares their logs.

    compare.py [--program PROGRAM] [--seed N] [--count N] [--first I] [--kernel KERNEL|all]

Each scenario is run in `flat` and in `entities`, or as the kernel decides it, or as each of the
three does. First the lines of merges and dispatches (M, D) are compared, then all lines in which
the scheduler says how it came to them, by the fields that both logs have. Exit status 0 if all
are equal.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True              # the folder stays as it is
from kernels import KERNELS  # noqa: E402

HERE = Path(__file__).resolve().parent
SCENARIO, LOG = ".scenario.json", ".log.jsonl"
# Arrivals, completions and exits are the laboratory's own lines, not the scheduler's.
OF_THE_RUN = ("Q", "C", "exit")


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        scenarios, model, ours = (Path(scratch) / name for name in ("scenarios", "model", "ours"))
        run(HERE / "generate.py", scenarios, "--seed", args.seed, "--first", args.first,
            "--count", args.count, *(["--kernel", args.kernel] if args.kernel else []))
        run(HERE / "cfq.py", scenarios, "-o", model)
        run(Path(args.program).resolve(), "decide", scenarios, "--out", ours)
        names = sorted(path.name.removesuffix(SCENARIO) for path in scenarios.glob("*" + SCENARIO))
        sys.exit(judge(names, model, ours))


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def judge(names, model, ours):
    """Prints what differs, and what was compared; 1 if any differs."""
    seen, decided, told = Counter(), 0, 0
    for name in names:
        logs = [read(folder / (name + LOG)) for folder in (model, ours)]
        seen.update(line["ev"] for line in logs[0])
        decisions = [[line for line in log if line["ev"] in ("M", "D")] for log in logs]
        reasons = [[line for line in log if line["ev"] not in OF_THE_RUN] for log in logs]
        difference = first_difference(*decisions)
        decided += difference is not None
        difference = difference or first_difference(*reasons)
        told += difference is not None
        if difference:
            print(f"{name}: {difference}")
    print(f"{len(names)} runs; {decided} differ in a merge or a dispatch, {told} in any line")
    print("compared: " + ", ".join(f"{count} {ev}" for ev, count in seen.most_common()
                                   if ev not in OF_THE_RUN))
    return int(told > 0)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def first_difference(expected, found):
    for number, (wanted, line) in enumerate(zip(expected, found), 1):
        both = wanted.keys() & line.keys()
        if any(wanted[key] != line[key] for key in both):
            return f"line {number} is {line}, the model has {wanted}"
    if len(expected) != len(found):
        return f"{len(found)} lines, the model has {len(expected)}"
    return None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="target/release/paternoster-lab")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first scenario of the seed")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--kernel", choices=[*KERNELS, "all"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
