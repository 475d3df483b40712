"""The flow as runners see it: an importable reference, and tasks.

Runners know no stage by name. They load the stages from a reference such as
`penstock.flow.stages:STAGES`, and run each *task*, a stage with the unkeyed stages after it, where
its input is.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.flow.stage import Stage

FLOW = "penstock.flow.stages:STAGES"
"""The flow in production."""


@cache
def tasks_of(flow: str) -> tuple[tuple[Stage, ...], ...]:
    """The tasks of a flow. The first reads records, each other one begins with a keyed stage."""
    module, _, name = flow.partition(":")
    stages: tuple[Stage, ...] = getattr(import_module(module), name)
    assert stages, "a flow has stages"
    assert stages[0].keyed_by is None, "the first stage runs where records are read"
    assert len({stage.name for stage in stages}) == len(stages), "stages are known by their names"
    tasks: list[list[Stage]] = []
    for stage in stages:
        if not tasks or stage.keyed_by is not None:
            tasks.append([])
        tasks[-1].append(stage)
    return tuple(map(tuple, tasks))
