"""The execution plan: which gear serves which table, edge and space, and why.

The only place where that is decided. Both gears give the same bytes, so a decision affects the cost
of a batch and nothing else. Kernels are imported only by a plan that may choose them.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import is_extended
from penstock.catalog.payload_split import is_split
from penstock.catalog.unnested import is_unnested
from penstock.documents.unnesting import MANY_PATTERNS
from penstock.joins import Scheme, SpacePoints
from penstock.kernels.fast_gear import FAST_GEAR, may_load_kernels
from penstock.kernels.preparation import gear_setting, start_preparation
from penstock.spaces import Edge

if TYPE_CHECKING:
    from penstock.flow.index import Index
    from penstock.flow.packed.rows import PackedForms

_OF_PAYLOADS = "it joins rows to their payloads, by digests that no row holds"

FEW_ROWS = 16
"""Up to this many rows, scanning the points in Python is cheaper than preparing a kernel call."""


class Gear(StrEnum):
    PLAIN = "plain"
    FAST = "fast"


class Decision(NamedTuple):
    gear: Gear
    why: str = ""
    """The reason why not the fast gear."""

    @property
    def is_fast(self) -> bool:
        return self.gear is Gear.FAST


FAST = Decision(Gear.FAST)


def plain(why: str) -> Decision:
    return Decision(Gear.PLAIN, why)


UNTIL_COMPILED = plain("the kernels are not compiled on this machine yet")


def fastest_gear() -> Decision:
    """The default gear of runners: the fast one, once its kernels are compiled on this machine.

    PENSTOCK_GEAR=plain forces the plain one; with PENSTOCK_GEAR=fast, the first use of a kernel
    waits for its compilation.
    """
    if gear_setting() == Gear.PLAIN:
        return plain("PENSTOCK_GEAR says so")
    return FAST if may_load_kernels() else UNTIL_COMPILED


def prepare_fast_gear(gear: Decision, rows: int) -> None:
    """Start compiling kernels in another process if they are missing and there are enough rows."""
    if gear is UNTIL_COMPILED and rows > FEW_ROWS:
        start_preparation(FAST_GEAR)


class PlanLine(NamedTuple):
    """One decision, for display."""

    subject: str
    work: str
    decision: Decision


class ExecutionPlan:
    """Decisions for one version of the catalog and the index."""

    def __init__(self, catalog: Catalog, gear: Decision = FAST) -> None:
        """`gear` is the fastest that may be chosen."""
        self._catalog = catalog
        self._all_plain = None if gear.is_fast else gear

    @cached_property
    def forms(self) -> PackedForms:
        """The tables that the fast gear supports, with their layouts."""
        from penstock.flow.packed.rows import PackedForms, packed_forms

        return PackedForms({}, {}) if self._all_plain else packed_forms(self._catalog)

    def reading(self) -> Decision:
        """Decoding events: in batches by kernels, or one by one."""
        return self._all_plain or FAST

    def rows(self, table: str) -> Decision:
        """Resolving the changes of a table."""
        if self._all_plain:
            return self._all_plain
        if table in self.forms:
            return FAST
        if is_split(table):
            return plain(_OF_PAYLOADS)
        if is_unnested(table):
            return plain("its rows are taken out of documents")
        if is_extended(table):
            return plain("a column of it is computed for some rows only")
        return plain("its key is not read by kernels")

    def selections(self, table: str, rows: int) -> Decision:
        """Matching changed rows against the subscriptions over their table only."""
        if not self.rows(table).is_fast:
            return self.rows(table)
        return plain(f"{rows} rows are few") if rows <= FEW_ROWS else FAST

    def derived(self, table: str, rows: int) -> Decision:
        """Computing the derived columns of changed rows."""
        if not self.rows(table).is_fast:
            return self.rows(table)
        return plain(f"{rows} rows are few") if rows <= FEW_ROWS else FAST

    def documents(self, views: int) -> Decision:
        """Matching documents against the views of a table."""
        if self._all_plain:
            return self._all_plain
        return plain(f"{views} views are few") if views < MANY_PATTERNS else FAST

    def _document_lines(self, index: Index, table: Relation, rows: int) -> Iterator[PlanLine]:
        unnested = list(index.derived.unnested(table) or ())
        if unnested:
            yield PlanLine(table.name, "documents", self.documents(len(unnested)))
        for one in unnested:
            for relation in (one, *index.derived.extended(one)):
                if index.selections(relation) is not None:
                    decision = self.selections(relation.name, rows)
                    yield PlanLine(relation.shown_name, "selections", decision)

    def groups(self, edge: Edge, *, is_new: bool = False) -> Decision:
        """Running the steps of the groups of an edge."""
        if self._all_plain:
            return self._all_plain
        if is_new:
            return plain("its groups are not stored yet")
        for side in edge.sides:
            if not self.rows(side.table).is_fast:
                return self.rows(side.table)
        return FAST

    def space(self, points: SpacePoints, scheme: Scheme) -> Decision:
        """Emitting the messages of one space over an edge whose groups are in the fast gear."""
        if scheme.packed is None:
            return plain(f"{scheme.name} has no fast gear")
        why = scheme.packed.obstacle(points)
        return plain(why) if why else FAST

    def lines(self, index: Index, scheme: Scheme, rows: int = FEW_ROWS + 1) -> Iterator[PlanLine]:
        """All decisions, for a batch with `rows` changed rows of each table."""
        for relation in self._catalog:
            yield PlanLine(relation.name, "rows", self.rows(relation.name))
            if index.selections(relation) is not None:
                yield PlanLine(relation.name, "selections", self.selections(relation.name, rows))
            for extended in index.derived.extended(relation):
                shown = extended.shown_name
                yield PlanLine(shown, "derived columns", self.derived(extended.name, rows))
                if index.selections(extended) is not None:
                    yield PlanLine(shown, "selections", self.selections(extended.name, rows))
            yield from self._document_lines(index, relation, rows)
        for edge in index.edges:
            for relation in index.relations(edge):
                shown = f"{edge.name} from {relation.shown_name}"
                yield PlanLine(shown, "steps", self.rows(relation.name))
            groups = self.groups(edge)
            yield PlanLine(edge.name, "groups", groups)
            for points in index.on_edge(edge):
                decision = self.space(points, scheme) if groups.is_fast else groups
                yield PlanLine(f"{edge.name} to {points.space.table}", "messages", decision)
