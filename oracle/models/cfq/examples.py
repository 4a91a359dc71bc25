#!/usr/bin/env python3
"""Runs the examples of kernels.json, and says where they do not come out as worked out by hand.

    examples.py [--program PROGRAM]

Each is a scenario with lines that its log has to have, in their order, by the fields that they
name, and with kinds of lines that it must not have. Without --program the model is asked.
Exit status 0 if all come out.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True              # the folder stays as it is
import cfq  # noqa: E402

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="a `paternoster`, which is asked to decide them")
    args = parser.parse_args()
    wrong, count = 0, 0
    for example in json.loads((HERE / "kernels.json").read_text()):
        name = example["scenario"]["name"]
        if args.program and "op" in example:
            print(f"{name}: not asked, since FORMAT.md has no op {example['op']}")
            continue
        for kernel in example["kernels"]:
            scenario = dict(example["scenario"], kernel=kernel)
            log = decided_by(args.program, scenario) if args.program else cfq.decide(scenario)
            fault = first_fault(example, [json.loads(line) for line in log])
            count += 1
            wrong += fault is not None
            if fault:
                print(f"{name}, {kernel}: {fault}")
    print(f"{count} runs, {wrong} do not come out as worked out by hand")
    sys.exit(int(wrong > 0))


def decided_by(program, scenario):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "one.scenario.json").write_text(json.dumps(scenario))
        subprocess.run([program, "decide", folder, "--out", folder], check=True,
                       stdout=subprocess.DEVNULL)
        return (Path(folder) / "one.log.jsonl").read_text().splitlines()


def first_fault(example, log):
    for line in log:
        if line["ev"] in example["never"]:
            return f"there is {line}"
    left = iter(log)
    for wanted in example["lines"]:
        if not any(wanted.items() <= line.items() for line in left):
            same = [line for line in log if (line["t"], line["ev"]) == (wanted["t"], wanted["ev"])]
            return f"no {wanted} in its place; at that time: {same}"
    return None


if __name__ == "__main__":
    main()
