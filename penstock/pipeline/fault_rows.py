"""Records that stages found to be at fault, set aside by the process that runs the query."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from penstock.errors import PipelineError
from penstock.flow.exchange import StageInput
from penstock.flow.faults import SetAside
from penstock.flow.kinds import Kind
from penstock.flow.safely import FAST_GEAR
from penstock.packing import unpack
from penstock.storage import AnyHome

_LOGGER = logging.getLogger("penstock.pipeline")


class FaultsFoundError(PipelineError):
    """A batch is not published: records that made it fail have been set aside."""

    def __init__(self, found: Sequence[SetAside]) -> None:
        offsets = ", ".join(str(one.offset) for one in found)
        super().__init__(f"records are set aside: {offsets}")


def check_faults(given: StageInput, home: AnyHome) -> None:
    """Set aside the records that made a batch fail, and raise FaultsFoundError."""
    found = []
    for row in given.rows(Kind.FAULT):
        one = SetAside(row.offset, *unpack(row.body))
        if one.offset == FAST_GEAR:
            _LOGGER.warning("the fast gear failed, the plain one did not: %s", one.primary)
        else:
            _LOGGER.warning("set aside the record at offset %d: %s", one.offset, one.primary)
            found.append(one)
    if found:
        from penstock.registry import Registry

        with Registry(home) as registry:
            registry.set_aside(found)
        raise FaultsFoundError(found)
