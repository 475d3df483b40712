"""Shared code of the experiments on joins: one run of a scheme over inserts, and its output."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields

from penstock.joins import Group, GroupStep, make_scheme
from penstock.joins.accounting import description_bytes, message_bytes
from penstock.lab.workloads.joins import R_SPACE, JoinWorkload
from penstock.spaces import JoinValue

PAPER_SIZES = (100_000, 300_000, 500_000)
"""The numbers of subscriptions in Tables 3 and 4."""


@dataclass
class Sent:
    """The output of one scheme for a number of events."""

    events: int
    points: int = 0
    description_bytes: int = 0
    descriptions: int = 0
    """Messages that carry the inserted row, each with a description."""
    messages: int = 0
    deliveries: int = 0
    bytes: int = 0
    cpu_seconds: float = 0.0


def total(runs: list[Sent]) -> Sent:
    """The combined output of several runs."""
    names = [field.name for field in fields(Sent)]
    return Sent(**{name: sum(getattr(run, name) for run in runs) for name in names})


def copied(groups: dict[tuple[int | str, ...], Group]) -> dict[tuple[int | str, ...], Group]:
    return {v: Group((dict(g.sides[0]), dict(g.sides[1]))) for v, g in groups.items()}


def send(workload: JoinWorkload, name: str, steps: list[tuple[JoinValue, GroupStep]]) -> Sent:
    """Run a scheme over inserts into R, from the same state every time, and count."""
    scheme, groups, spaces = make_scheme(name), copied(workload.groups), workload.spaces
    sent = Sent(len(steps))
    for value, step in steps:
        group = groups[value]
        began = time.process_time()
        messages = list(scheme.messages(group, step, spaces))
        sent.cpu_seconds += time.process_time() - began
        group.apply(step)
        for message in messages:
            if message.space == R_SPACE.id and message.partner is None:
                sent.points += len(message.upsert)
                sent.description_bytes += description_bytes(message)
                sent.descriptions += 1
            sent.messages += 1
            sent.deliveries += max(1, len(message.recipients))
            sent.bytes += message_bytes(message)
    return sent
