"""The execution plan that a home's pipeline would use now."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.flow.kinds import Span
from penstock.flow.plan import ExecutionPlan, PlanLine, fastest_gear
from penstock.pipeline.worker_index import WorkerIndex
from penstock.registry import Registry
from penstock.storage import Home


def execution_plan(home: Home) -> Iterator[PlanLine]:
    """All decisions, for a batch with many changes and all subscriptions recorded so far."""
    with Registry(home) as registry:
        end = registry.applied
    worker = WorkerIndex(home)
    index = worker.index_at(Span(end, end, end, end, end))
    return ExecutionPlan(worker.catalog(end), fastest_gear()).lines(index, worker.scheme())
