"""Running the flow in process, unpartitioned, on objects: the runner of the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.flow.exchange import StageInput
from penstock.flow.stage import BatchView, Stage, advance_stage


def run_locally(
    stages: Iterable[Stage], given: StageInput, stores: Mapping[str, Any], view: BatchView
) -> StageInput:
    """Run one batch through all stages; returns the output of the last one.

    `stores` holds the state of keyed stages by name.
    """
    for stage in stages:
        out = advance_stage(stage, given, stores.get(stage.name), view)
        given = out.inputs(given.span)[given.bucket]
    return given
