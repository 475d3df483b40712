"""The derived relations that subscriptions are over, by table."""

from __future__ import annotations

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import ExtendedRelation, is_extended
from penstock.catalog.payload_split import HalfRelation, Halves, columns_like, is_split
from penstock.catalog.unnested import UnnestedRelation, is_unnested
from penstock.flow.candidates import Candidates
from penstock.flow.unnested import UnnestedTable
from penstock.messages import Point


class DerivedIndex:
    """Relations stay once a point was over them, like spaces; candidates go with their points."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._extended: dict[str, dict[str, ExtendedRelation]] = {}
        self._unnested: dict[str, UnnestedTable] = {}
        self._halves: dict[str, dict[tuple[int, ...], Halves]] = {}
        self._candidates: dict[str, Candidates] = {}

    def __bool__(self) -> bool:
        """Whether there ever was a derived relation."""
        return bool(self._extended or self._unnested or self._halves)

    def note(self, name: str) -> None:
        """Register a relation if it is derived from a table."""
        if is_split(name):
            half = self._catalog[name]
            assert isinstance(half, HalfRelation)
            self._halves.setdefault(half.halves.whole.name, {})[half.halves.columns] = half.halves
            self.note(half.halves.whole.name)
        elif is_extended(name):
            relation = self._catalog[name]
            assert isinstance(relation, ExtendedRelation)
            self._extended.setdefault(relation.base.name, {})[name] = relation
            self.note(relation.base.name)
        elif is_unnested(name):
            unnested = self._catalog[name]
            assert isinstance(unnested, UnnestedRelation)
            self._unnested.setdefault(unnested.base.name, UnnestedTable()).add(unnested)

    def add(self, relation: Relation, point: Point) -> None:
        """Add a point that is an object, over any relation."""
        whole = columns_like(relation)
        if isinstance(whole, ExtendedRelation) and whole.lazy_columns:
            table = whole.base
            self._candidates.setdefault(table.name, Candidates(table)).add(whole, point)

    def remove(self, relation: Relation, point: Point) -> None:
        whole = columns_like(relation)
        if isinstance(whole, ExtendedRelation) and whole.lazy_columns:
            self._candidates[whole.base.name].remove(point)

    def extended(self, table: Relation) -> list[ExtendedRelation]:
        """The extended relations over a table that may have subscriptions."""
        return list(self._extended.get(table.name, {}).values())

    def always_extended(self, table: Relation) -> list[ExtendedRelation]:
        """The extended relations without operator columns."""
        return [one for one in self.extended(table) if not one.lazy_columns]

    def lazily_extended(self, table: Relation) -> list[ExtendedRelation]:
        """The extended relations with operator columns."""
        return [one for one in self.extended(table) if one.lazy_columns]

    def halves(self, relation: Relation) -> list[Halves]:
        """The halves of a table, or of a relation that extends one, that may have subscriptions."""
        return list(self._halves.get(relation.name, {}).values())

    def unnested(self, table: Relation) -> UnnestedTable | None:
        """The XMLTABLE relations of a table that may have subscriptions, if there are any."""
        return self._unnested.get(table.name)

    def candidates(self, table: Relation) -> Candidates | None:
        """The points over a table that have conditions on operators, if there are any."""
        return self._candidates.get(table.name) or None
