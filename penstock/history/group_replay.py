"""The third step of a backtest: the history of every join group, one place after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from penstock.flow.memory import MemoryGroups
from penstock.flow.stages import JoinStage
from penstock.history.rows import HistoryKind, HistoryRow
from penstock.history.spec import WorkerSpec
from penstock.joins import StepsByEdge, make_scheme
from penstock.messages import each_message
from penstock.pipeline.shuffle_codec import unpack_step

STEPS_AT_ONCE = 4_096
"""Schemes are asked about so many steps of a group at a time, and so many are in memory."""


def replay_groups(rows: Iterable[HistoryRow], prepared: WorkerSpec) -> Iterator[HistoryRow]:
    """What follows from the steps of some places, which come sorted; other rows pass."""
    for _, history in groupby(rows, attrgetter("place")):
        yield from _live_through(history, prepared)


def _live_through(history: Iterator[HistoryRow], prepared: WorkerSpec) -> Iterator[HistoryRow]:
    """The steps of one place: seeds come first, because no step is before the start."""
    stage = JoinStage(MemoryGroups(), prepared.index, make_scheme())
    seeded = False
    run: StepsByEdge = {}
    count = 0
    for row in history:
        if row.kind == HistoryKind.SEED:
            edge, value, step = unpack_step(row.body, prepared.edges)
            stage.seed(edge, {value: [step]})
            seeded = True
        elif row.kind == HistoryKind.STEP:
            if seeded:
                yield from _first_contents(stage, prepared)
                seeded = False
            edge, value, step = unpack_step(row.body, prepared.edges)
            run.setdefault(edge, {}).setdefault(value, []).append(step)
            count += 1
            if count % STEPS_AT_ONCE == 0:
                yield from _told(stage, run, prepared)
                run = {}
        else:
            yield row
    if seeded:
        yield from _first_contents(stage, prepared)
    yield from _told(stage, run, prepared)


def _first_contents(stage: JoinStage, prepared: WorkerSpec) -> Iterator[HistoryRow]:
    for points in prepared.semijoins:
        yield from prepared.deliveries(stage.initial(prepared.question.start, points))


def _told(stage: JoinStage, run: StepsByEdge, prepared: WorkerSpec) -> Iterator[HistoryRow]:
    return prepared.deliveries(each_message(stage.run(run)))
