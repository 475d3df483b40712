"""The existing relations and operators, with the offsets of their declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from penstock.catalog.derived import base_name, extended_base_name, extended_named, is_extended
from penstock.catalog.payload_split import half_named, is_split, whole_name
from penstock.catalog.relations import Relation
from penstock.catalog.signatures import Signature
from penstock.catalog.unnested import is_unnested, unnested_named
from penstock.errors import CatalogError

MAX_RELATIONS = 10_000
MAX_OPERATORS = 1_000


class Catalog:
    """Names of tables and streams, in the order of the log.

    Relations are only ever added, each at the offset of its record. So the catalog of a later
    offset also answers for earlier ones: a name was known at `offset` if it was declared before.
    """

    def __init__(self) -> None:
        self._relations: dict[str, Relation] = {}
        self._since: dict[str, int] = {}
        self._operators: dict[str, Signature] = {}

    @property
    def operators(self) -> Mapping[str, Signature]:
        """By name in lower case."""
        return MappingProxyType(self._operators)

    def check_new(self, declared: Relation | Signature) -> None:
        """CatalogError if it cannot be added."""
        if isinstance(declared, Signature):
            self._check_new_operator(declared)
        else:
            self._check_new_relation(declared)

    def _check_new_operator(self, signature: Signature) -> None:
        if signature.name.lower() in self._operators:
            raise CatalogError(f"operator {signature.name} already exists")
        if len(self._operators) >= MAX_OPERATORS:
            raise CatalogError(f"a catalog holds at most {MAX_OPERATORS} operators")

    def _check_new_relation(self, relation: Relation) -> None:
        known = self._relations.get(relation.name.lower())
        if known is not None:
            raise CatalogError(f"{known.kind} {relation.name} already exists")
        if len(self._relations) >= MAX_RELATIONS:
            raise CatalogError(f"a catalog holds at most {MAX_RELATIONS} tables and streams")

    def add(self, relation: Relation | Signature, offset: int) -> None:
        self.check_new(relation)
        if isinstance(relation, Signature):
            self._operators[relation.name.lower()] = relation
            return
        self._relations[relation.name.lower()] = relation
        self._since[relation.name.lower()] = offset

    def get(self, name: str, offset: int | None = None) -> Relation | None:
        """The relation of that name, if it was declared before `offset` (now, if None)."""
        lowered = name.lower()
        relation = self._relations.get(lowered)
        if relation is None or (offset is not None and self._since[lowered] >= offset):
            return None
        return relation

    def since(self, name: str) -> int:
        """The offset of the record that declared a relation; KeyError if there is none."""
        return self._since[name.lower()]

    def __getitem__(self, name: str) -> Relation:
        """The relation of that name, declared or derived; KeyError if there is none."""
        if is_split(name):
            return half_named(name, self[whole_name(name)])
        if is_extended(name):
            return extended_named(name, self[extended_base_name(name)])
        if is_unnested(name):
            return unnested_named(name, self[base_name(name)])
        return self._relations[name.lower()]

    def __iter__(self) -> Iterator[Relation]:
        return iter(self._relations.values())

    def __len__(self) -> int:
        return len(self._relations)

    def names(self) -> list[str]:
        return [relation.name for relation in self]
