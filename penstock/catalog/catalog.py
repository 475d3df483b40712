"""The relations that exist, and since when."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.catalog.payload_split import half_named, is_split, table_of
from penstock.catalog.relations import Relation
from penstock.errors import CatalogError

MAX_RELATIONS = 10_000


class Catalog:
    """Names of tables and streams, in the order of the log.

    Relations are only ever added, each at the offset of its record. So the catalog of a later
    offset answers for every earlier one: a name was known at `offset` if it was declared before.
    """

    def __init__(self) -> None:
        self._relations: dict[str, Relation] = {}
        self._since: dict[str, int] = {}

    def check_new(self, relation: Relation) -> None:
        """CatalogError if the relation cannot be added."""
        known = self._relations.get(relation.name.lower())
        if known is not None:
            raise CatalogError(f"{known.kind} {relation.name} already exists")
        if len(self._relations) >= MAX_RELATIONS:
            raise CatalogError(f"a catalog holds at most {MAX_RELATIONS} tables and streams")

    def add(self, relation: Relation, offset: int) -> None:
        self.check_new(relation)
        self._relations[relation.name.lower()] = relation
        self._since[relation.name.lower()] = offset

    def get(self, name: str, offset: int | None = None) -> Relation | None:
        """The relation of that name, if it was declared before `offset` (now, if None)."""
        relation = self._relations.get(name.lower())
        if relation is None or (offset is not None and self._since[name.lower()] >= offset):
            return None
        return relation

    def since(self, name: str) -> int:
        """The offset of the record that declared a relation; KeyError if there is none."""
        return self._since[name.lower()]

    def __getitem__(self, name: str) -> Relation:
        """The relation of that name, or the half of one; KeyError if there is none."""
        if is_split(name):
            return half_named(name, self[table_of(name)])
        return self._relations[name.lower()]

    def __iter__(self) -> Iterator[Relation]:
        return iter(self._relations.values())

    def __len__(self) -> int:
        return len(self._relations)

    def names(self) -> list[str]:
        return [relation.name for relation in self]
