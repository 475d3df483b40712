"""Schedules index snapshots: compiled in the process that plans batches, beside the query."""

from __future__ import annotations

import logging
import threading

from penstock.flow.faults import is_fault
from penstock.pipeline.snapshots import compile_snapshot, discard_damaged, newest
from penstock.registry import Registry
from penstock.storage import Home, os_errors, samples, usable_statistics

FEW_SUBSCRIPTIONS = 5_000
"""Up to this many subscriptions, each worker builds objects in half a second."""
MANY_SUBSCRIPTIONS = 50_000
"""From this many on, building objects in every worker takes longer than waiting for a snapshot."""


_LOGGER = logging.getLogger("penstock.pipeline")


class SnapshotScheduler:
    """Keeps most subscriptions over one table in a snapshot."""

    def __init__(self, home: Home, registry: Registry) -> None:
        self._home = home
        self._registry = registry
        self._covered_to = -1
        self._compiling: threading.Thread | None = None
        self._failure: Exception | None = None

    def ensure(self, active: int) -> None:
        """Call before a batch for the subscriptions before `active`, which must have been
        applied."""
        directory = self._home.snapshots
        if self._covered_to < 0:
            discard_damaged(directory)
        if self._failure is not None and is_fault(self._failure):
            return  # workers build objects for all of them, and find the one at fault
        if self._failure is not None:
            raise self._failure
        if self._compiling is not None and self._compiling.is_alive():
            return
        found = newest(directory, active, len(self._registry.suspended()))
        self._covered_to = 0 if found is None else found.active
        waiting = self._registry.recorded_count(self._covered_to, active)
        if waiting >= MANY_SUBSCRIPTIONS:
            self._compile_aside(active)
        elif waiting >= FEW_SUBSCRIPTIONS:
            self._compiling = threading.Thread(
                target=self._compile_aside, args=(active,), name="penstock-snapshot", daemon=True
            )
            self._compiling.start()

    def _compile(self, active: int) -> None:
        with os_errors("compile the subscriptions", self._home.snapshots):
            found = samples(usable_statistics(self._home.path))
            compile_snapshot(self._home.snapshots, self._registry, active, found)

    def _compile_aside(self, active: int) -> None:
        try:
            self._compile(active)
        except Exception as error:
            self._failure = error
            _LOGGER.warning("no snapshot of the subscriptions was made", exc_info=error)
