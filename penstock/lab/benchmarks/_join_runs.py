"""The runs of join schemes that the benchmark times: changes, and their order."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import TypeAlias

from penstock.joins import GroupStep, GroupSteps, Scheme
from penstock.joins.accounting import message_bytes
from penstock.lab.workloads.joins import JoinWorkload
from penstock.messages import Message, each_message
from penstock.spaces import JoinValue

MANY_CHANGES = 100


@dataclass
class Run:
    """The time and output of a scheme for some changes."""

    changes: int
    cpu_seconds: float
    messages: int
    points: int
    bytes: int

    @property
    def microseconds(self) -> float:
        return self.cpu_seconds / self.changes * 1e6

    @property
    def per_second(self) -> float:
        return self.changes / max(self.cpu_seconds, 1e-9)


Steps: TypeAlias = list[tuple[JoinValue, GroupStep]]
"""Each with the join value of its group."""


def turnover(workload: JoinWorkload, side: int, count: int) -> Steps:
    """Rows are inserted while the oldest of the same join value are deleted, so that tables keep
    their size."""
    alive = {value: list(group.sides[side].items()) for value, group in workload.groups.items()}
    gone = dict.fromkeys(alive, 0)
    steps: Steps = []
    for value, step in workload.inserts(side, count // 2):
        assert step.new is not None
        steps.append((value, step))
        rows = alive[value]
        rows.append((step.key, step.new))
        key, row = rows[gone[value]]
        gone[value] += 1
        steps.append((value, GroupStep(step.offset, 2, side, key, row, None)))
    return steps


def alternating(workload: JoinWorkload, count: int) -> Steps:
    """A change in R, a change in S, and so on: each finds the other side changed."""
    pairs = zip(turnover(workload, 0, count // 2), turnover(workload, 1, count // 2), strict=True)
    return [step for pair in pairs for step in pair]


def by_group(steps: Steps) -> GroupSteps:
    """A batch in the order of a pipeline: group by group, in order within each."""
    groups: GroupSteps = {}
    for value, step in steps:
        groups.setdefault(value, []).append(step)
    return groups


def timed(workload: JoinWorkload, scheme: Scheme, steps: Steps) -> Run:
    """CPU time for one batch: messages are built and kept; their bytes are counted afterwards."""
    spaces = workload.spaces
    gc.collect()
    gc.freeze()
    began = time.process_time()
    batch: list[Message] = []
    for value, group_steps in by_group(steps).items():
        batch += each_message(scheme.run(workload.groups[value], group_steps, spaces))
    seconds = time.process_time() - began
    gc.unfreeze()
    return _run(len(steps), seconds, batch)


def _run(changes: int, seconds: float, batch: list[Message]) -> Run:
    points = sum(len(m.upsert) + len(m.remove) for m in batch)
    return Run(changes, seconds, len(batch), points, sum(map(message_bytes, batch)))


def best_of(workload: JoinWorkload, scheme: Scheme, batches: Iterator[Steps]) -> Run:
    """The fastest of several batches: other load on the machine only slows them down.

    Batches of few changes differ by their changes, so all of them count together.
    """
    runs = [timed(workload, scheme, steps) for steps in batches]
    if runs[0].changes >= MANY_CHANGES:
        return min(runs, key=lambda run: run.microseconds)
    sums = (sum(part) for part in zip(*(astuple(run) for run in runs), strict=True))
    return Run(*sums)
