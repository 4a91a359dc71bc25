#!/usr/bin/env python3
"""Runs random scenarios, or those of a folder, in the model and in `paternoster-lab decide`."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folders stay as they are
sys.path.append(str(Path(__file__).resolve().parents[1]))
import checks  # noqa: E402
import comparing  # noqa: E402
import generate  # noqa: E402
import run  # noqa: E402


def decide(scenario):
    done = run.Run(scenario, checks.Checked)
    kinds = [line["ev"] for line in done.lines]
    return done.lines, done.scheduler.seen | {"dispatches": kinds.count("D")}


if __name__ == "__main__":
    comparing.compare(generate.scenario, decide)
