"""How culprits travel from the stage that found them to the sink, and what that does with them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from penstock.errors import PipelineError
from penstock.flow.faults import SetAside
from penstock.packing import pack, unpack
from penstock.pipeline.rows import RowKind, StageInput, StageOutput
from penstock.storage import AnyHome

FAST_PATH = -1
"""In place of an offset: no record is to blame, the plain path succeeded."""

_LOGGER = logging.getLogger("penstock.pipeline")


class FaultsFoundError(PipelineError):
    """A batch is not published: the records that it failed of are set aside now."""

    def __init__(self, found: Sequence[SetAside]) -> None:
        offsets = ", ".join(str(one.offset) for one in found)
        super().__init__(f"records are set aside: {offsets}")


def add_fault(out: StageOutput, one: SetAside) -> None:
    body = pack((one.primary, one.detail, one.suspect))
    out.add(out.buckets.first, RowKind.FAULT, one.offset, body)


def check_faults(inbox: StageInput, home: AnyHome) -> None:
    """Set aside what a batch failed of, and raise FaultsFoundError."""
    found = []
    for row in inbox.rows(RowKind.FAULT):
        one = SetAside(row.offset, *unpack(row.body))
        if one.offset == FAST_PATH:
            _LOGGER.warning("a fast path failed, the plain one did without it: %s", one.primary)
        else:
            _LOGGER.warning("set aside the record at offset %d: %s", one.offset, one.primary)
            found.append(one)
    if found:
        from penstock.registry import Registry

        with Registry(home) as registry:
            registry.set_aside(found)
        raise FaultsFoundError(found)
