#!/usr/bin/env python3
"""Runs random scenarios, or those of a folder, in the model and in `paternoster-lab decide`."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folders stay as they are
sys.path.append(str(Path(__file__).resolve().parents[1]))
import comparing  # noqa: E402
import generate  # noqa: E402
import model  # noqa: E402
import run  # noqa: E402


def decide(scenario):
    lines = run.Run(scenario, model.Kyber).lines
    kinds = {line["ev"] for line in lines}
    return lines, {
        "scenarios with merges": "M" in kinds,
        "scenarios with percentiles": "latency" in kinds,
        "scenarios with changes of depth": "depth" in kinds,
        "scenarios with lowered depths": lowers(lines),
        "dispatches": sum(line["ev"] == "D" for line in lines),
    }


def lowers(lines):
    """Whether a depth falls."""
    depth = dict(model.TOKENS)
    for line in lines:
        if line["ev"] == "depth":
            if line["v"] < depth[line["dom"]]:
                return True
            depth[line["dom"]] = line["v"]
    return False


if __name__ == "__main__":
    comparing.compare(generate.scenario, decide)
