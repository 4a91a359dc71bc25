"""Random scenarios, or those of a folder, in a model and in `paternoster-lab decide`.

Every line has to be the same in the same order, what the scheduler says of itself included; only
`exit`, which is the laboratory's own, is left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

SCENARIO, LOG = ".scenario.json", ".log.jsonl"


def compare(make, decide, of_linux=list):
    """`make` makes the scenario of a seed; `decide` says the lines of its log, and what it shows.

    What it shows is counted by name. `of_linux` says what of a log a recording has like ours. Exits
    with 1 where a log differs.
    """
    args = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(args.folder or scratch)
        if not args.folder:
            for seed in range(args.seed, args.seed + args.count):
                (folder / f"r{seed}{SCENARIO}").write_text(json.dumps(make(seed)))
        out = Path(scratch) / "out"
        command = [args.program, "decide", folder, "--out", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        sys.exit(judge(folder, out, decide, of_linux))


def judge(folder, out, decide, of_linux):
    """Prints what differs, and what all the scenarios together have shown; 1 if any differs."""
    seen, logs, decided, told = Counter(), 0, 0, 0
    scenarios = sorted(folder.glob("*" + SCENARIO))
    for path in scenarios:
        expected, shown = decide(json.loads(path.read_text()))
        seen.update(shown)
        log = path.name.removesuffix(SCENARIO) + LOG
        for found, comparable in ((out / log, list), (folder / log, of_linux)):
            if not found.exists():
                continue
            lines = [json.loads(line) for line in found.read_text().splitlines()]
            lines = [line for line in lines if line["ev"] != "exit"]
            difference = first_difference(decisions(lines), decisions(expected))
            decided += difference is not None
            difference = difference or first_difference(comparable(lines), comparable(expected))
            told += difference is not None
            logs += 1
            if difference:
                print(f"{found}: {difference}")
    for what, times in seen.items():
        print(f"{times:>9} {what}")
    print(f"{len(scenarios)} scenarios, {logs} logs; {decided} differ in a merge or a dispatch, "
          f"{told} in any line")
    return int(told > 0)


def decisions(lines):
    return [line for line in lines if line["ev"] in ("M", "D")]


def first_difference(lines, expected):
    for number, (line, wanted) in enumerate(zip(lines, expected), 1):
        if line != wanted:
            return f"line {number} is {line}, the model has {wanted}"
    if len(lines) != len(expected):
        return f"{len(lines)} lines, the model has {len(expected)}"
    return None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/paternoster-lab")
    parser.add_argument("--count", type=int, default=1000, help="random scenarios")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them")
    parser.add_argument("folder", nargs="?", help="scenarios to take instead, with logs or without")
    return parser.parse_args()
