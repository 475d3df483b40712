"""Stages: the steps from records to messages, and their view of a batch.

A stage is a value: its name, the kinds of rows that it takes and gives, the key by which it is
partitioned, and `advance`, which processes one batch of one partition. It knows neither where its
state is stored nor which runner runs it. Kinds that a stage does not take are forwarded unchanged:
`advance_stage` does that, for every runner.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

from penstock.catalog import Catalog, Relation
from penstock.errors import ChangeError
from penstock.flow.derivation import Derivation
from penstock.flow.exchange import Spread, StageInput, StageOutput
from penstock.flow.index import Index
from penstock.flow.index_source import IndexSource
from penstock.flow.kinds import Kind, Span
from penstock.flow.new_points import NewPoints
from penstock.flow.plan import Decision, ExecutionPlan
from penstock.joins import Scheme
from penstock.spaces import Edge


class Key(StrEnum):
    """The key by which a stage is partitioned."""

    ROW = "row"
    """Table and primary key."""
    GROUP = "group"
    """Edge and join value."""


class BatchView:
    """The tables and subscriptions of one batch, as stages see them; computed on first use."""

    def __init__(
        self,
        source: IndexSource,
        span: Span,
        spread: Spread,
        gear: Decision,
        *,
        silent: bool = False,
    ) -> None:
        """`gear` is the fastest that may be used. `silent`: the messages of the batch were emitted
        before, only the state changes."""
        self._source = source
        self.span = span
        self.spread = spread
        self.silent = silent
        self._gear = gear

    @cached_property
    def catalog(self) -> Catalog:
        # Relations exist from the offset of their record on and never change. So the catalog at
        # the end of the batch is valid for all its events.
        return self._source.catalog(self.span.end)

    @property
    def index(self) -> Index:
        return self._source.index_at(self.span)

    @property
    def edges(self) -> Mapping[str, Edge]:
        self._source.index_at(self.span)
        return self._source.edges

    @property
    def new(self) -> NewPoints:
        return self._source.new_points(self.span)

    @property
    def not_applied(self) -> Mapping[int, ChangeError]:
        return self._source.not_applied(self.span)

    @cached_property
    def plan(self) -> ExecutionPlan:
        return ExecutionPlan(self.catalog, self._gear)

    def scheme(self) -> Scheme:
        return self._source.scheme()

    def needs(self, relation: Relation) -> bool:
        return self._source.needs(relation)

    @cached_property
    def derivation(self) -> Derivation:
        """Translates rows of tables to relations with derived columns."""
        return Derivation(self._source, self.span, silent=self.silent)


class Stage(Protocol):
    """One step from records to messages. Stages are values: they hold no state of a run."""

    @property
    def name(self) -> str: ...

    @property
    def takes(self) -> frozenset[Kind]:
        """Other kinds are forwarded unchanged."""

    @property
    def gives(self) -> frozenset[Kind]: ...

    @property
    def keyed_by(self) -> Key | None:
        """None for a stateless stage, which runs where its input is read."""

    def open_store(self, entries: Any) -> Any:
        """The state of one partition for `advance`, over a map from bytes to bytes; its `flush`
        writes what has changed. None for stages that are not keyed."""

    def advance(self, given: StageInput, store: Any, view: BatchView) -> StageOutput: ...


def advance_stage(stage: Stage, given: StageInput, store: Any, view: BatchView) -> StageOutput:
    """Run one batch of one partition of a stage."""
    out = stage.advance(given, store, view)
    out.pass_on(given, [kind for kind in Kind if kind not in stage.takes])
    return out
