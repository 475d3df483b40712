"""What stages are told of tables and subscriptions, by whoever runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.catalog import Catalog, Relation
from penstock.errors import ChangeError
from penstock.flow.index import Index
from penstock.flow.kinds import Span
from penstock.flow.new_points import NewPoints
from penstock.flow.operator_values import OperatorRuntime
from penstock.joins import Scheme
from penstock.spaces import Edge


class IndexSource(Protocol):
    """Who knows the tables and subscriptions: a worker of the pipeline, a Hub, a backtest."""

    @property
    def edges(self) -> Mapping[str, Edge]:
        """The edges of the index, by name."""

    def catalog(self, end: int) -> Catalog:
        """The tables and streams that records before `end` declare (and maybe later ones)."""

    def index_at(self, span: Span) -> Index:
        """The points that are active in a batch. It stays so until it is asked for another one."""

    def new_points(self, span: Span) -> NewPoints: ...

    def not_applied(self, span: Span) -> Mapping[int, ChangeError]:
        """The events of a batch that are not to be applied, and why."""

    def scheme(self) -> Scheme:
        """For the joins of a batch."""

    def operators(self) -> OperatorRuntime | None:
        """Who evaluates operators; None, if nobody here does."""

    def needs(self, relation: Relation) -> bool:
        """Whether the rows of a table are kept. Where subscriptions may come later, all are."""
