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

# What recordings and ours tell alike, but for the names of shared queues.
ALIKE = ("M", "D", "serve", "expire", "idle", "inject")
KIND = {"expire": "why", "wr": "coeff", "hw_tag": "to", "nonrot_with_queueing": "v"}
TOLD = [
    "M", "D", "serve", "expire TOO_IDLE", "expire BUDGET_TIMEOUT", "expire BUDGET_EXHAUSTED",
    "expire NO_MORE_REQUESTS", "expire PREEMPTED", "preempt", "fifo", "idle", "idle_timer",
    "inject", "inject_limit", "waker", "wr 30", "wr 3000", "wr 1", "large_burst", "merge_queues",
    "split_queue", "hw_tag 1", "hw_tag 0", "nonrot_with_queueing 1", "nonrot_with_queueing 0",
    "rate", "max_budget",
]


def decide(scenario):
    done = run.Run(scenario, model.Bfq)
    shown = dict.fromkeys(TOLD, 0) | done.scheduler.seen
    for line in done.lines:
        kind = line["ev"]
        if kind in KIND:
            kind += f" {line[KIND[kind]]}"
        if kind in shown:
            shown[kind] += 1
    return done.lines, shown


def of_linux(lines):
    return [{name: value for name, value in line.items() if name not in ("q", "for")}
            for line in lines if line["ev"] in ALIKE]


if __name__ == "__main__":
    comparing.compare(generate.scenario, decide, of_linux)
