"""The interface through which runners give stages the tables and subscriptions."""

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
    """Provides tables and subscriptions: implemented by pipeline workers, the Hub and backtests."""

    @property
    def edges(self) -> Mapping[str, Edge]:
        """The edges of the index, by name."""

    def catalog(self, end: int) -> Catalog:
        """The tables and streams that records before `end` declare (and maybe later ones)."""

    def index_at(self, span: Span) -> Index:
        """The points that are active in a batch; valid until the next call for another batch."""

    def new_points(self, span: Span) -> NewPoints: ...

    def not_applied(self, span: Span) -> Mapping[int, ChangeError]:
        """The events of a batch that are not to be applied, and why."""

    def scheme(self) -> Scheme:
        """The scheme for the joins of a batch."""

    def operators(self) -> OperatorRuntime | None:
        """The operator runtime; None if this process evaluates no operators."""

    def needs(self, relation: Relation) -> bool:
        """Whether the rows of a table are stored. If subscriptions may come later, all are."""
