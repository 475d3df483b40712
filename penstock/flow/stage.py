"""Stages: the steps from records to messages, and what they are given.

A stage is a value: its name, the kinds of rows that it takes and gives, the key by which it is
partitioned, and `advance`, which brings one partition through one batch. It knows neither where its
state is kept nor who runs it. Kinds that a stage does not take pass it by: `advance_stage` sees to
that, for every runner.
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
    """What the partitions of a stage are made by."""

    ROW = "row"
    """Table and primary key."""
    GROUP = "group"
    """Edge and join value."""


class BatchView:
    """What stages can ask about the tables and subscriptions of one batch; found when asked for."""

    def __init__(
        self,
        source: IndexSource,
        span: Span,
        spread: Spread,
        gear: Decision,
        *,
        silent: bool = False,
    ) -> None:
        """`gear`: the fastest that may be used. `silent`: the messages of the batch were emitted
        before, only the state changes."""
        self._source = source
        self.span = span
        self.spread = spread
        self.silent = silent
        self._gear = gear

    @cached_property
    def catalog(self) -> Catalog:
        # Relations are known from the offset of their record on, and are never changed. So one
        # catalog, of the end of the batch, serves all events.
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
        """What rows of tables are to relations with derived columns."""
        return Derivation(self._source, self.span, silent=self.silent)


class Stage(Protocol):
    """One step from records to messages. Stages are values: they hold no state of a run."""

    @property
    def name(self) -> str: ...

    @property
    def takes(self) -> frozenset[Kind]:
        """Other kinds pass on by rule."""

    @property
    def gives(self) -> frozenset[Kind]: ...

    @property
    def keyed_by(self) -> Key | None:
        """None: it has no state and runs where its input is read."""

    def open_store(self, entries: Any) -> Any:
        """The state of one partition as `advance` sees it, over a map from bytes to bytes; it has
        a `flush`, which writes what has changed. None for stages that are not keyed."""

    def advance(self, given: StageInput, store: Any, view: BatchView) -> StageOutput: ...


def advance_stage(stage: Stage, given: StageInput, store: Any, view: BatchView) -> StageOutput:
    """Bring one partition of a stage through one batch."""
    out = stage.advance(given, store, view)
    out.pass_on(given, [kind for kind in Kind if kind not in stage.takes])
    return out
