"""Candidates: the points that might match a row whose expensive columns are not computed yet.

For one table: the points, of all relations over it, that have conditions on operators. Their
conditions on declared columns are in one matcher, so that most rows are ruled out before anything
expensive is computed; conditions on expressions are tested for the few points it finds. The rest of
a point is a *branch*: predicates that must all be true (or false, under NOT).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from penstock.catalog import Relation, Row
from penstock.catalog.derived import Definition, ExtendedRelation
from penstock.kernels.fast_gear import may_load_kernels
from penstock.matching import DEFAULT_MATCHER, EventBatch, create
from penstock.matching.interface import Matcher
from penstock.matching.pairs import Mask
from penstock.messages import Point
from penstock.operators.groups import Predicate
from penstock.operators.lazy_columns import Literal, lazy_column
from penstock.packing import pack
from penstock.predicates.boxes import Box, contains

SCANNED_BRANCHES = 256
"""Up to this many branches, a scan costs less than a matcher for a few rows."""
SCANNED_ROWS = 16

_PointKey = tuple[int, tuple[int, int, int]]


class Branch(NamedTuple):
    """The conditions of a point."""

    subscription: int
    relation: ExtendedRelation
    declared: Box
    """Conditions on stored columns."""
    computed: Box
    """Conditions on expressions."""
    literals: tuple[Literal, ...]
    """Conditions on operators."""
    lazy: tuple[Definition, ...]
    """The operator columns that `literals` are about."""


class Candidates:
    """The branches of one table, by number."""

    def __init__(self, table: Relation) -> None:
        self.table = table
        self.branches: dict[int, Branch] = {}
        self._numbers: dict[_PointKey, int] = {}
        self._next = 0
        self.calls: dict[bytes, Predicate] = {}
        """The operator calls of all branches, by id."""
        self.columns: dict[Predicate, Counter[Definition]] = {}
        """By call, the columns that depend on it, with the number of branches that have each."""
        self._matcher: Matcher | None = None
        self.version = 0
        """Incremented with every branch that is added or removed."""

    def __len__(self) -> int:
        return len(self.branches)

    def add(self, relation: ExtendedRelation, point: Point) -> int:
        number = self._numbers[_key(point)] = self._next
        self._next += 1
        self.branches[number] = branch = _branch(relation, point)
        self.version += 1
        self._count(branch, 1)
        if self._matcher is not None:
            self._matcher.insert(number, [branch.declared])
        return number

    def remove(self, point: Point) -> int | None:
        number = self._numbers.pop(_key(point), None)
        if number is not None:
            branch = self.branches.pop(number)
            self.version += 1
            self._count(branch, -1)
            if self._matcher is not None:
                self._matcher.remove(number)
        return number

    def _count(self, branch: Branch, more: int) -> None:
        """Update which columns depend on which calls."""
        for definition in branch.lazy:
            for call in dict.fromkeys(lazy_column(definition).calls):
                columns = self.columns.setdefault(call, Counter())
                columns[definition] += more
                if not columns[definition]:
                    del columns[definition]
                if columns:
                    self.calls[call_id(call)] = call
                else:
                    del self.columns[call], self.calls[call_id(call)]

    def columns_of(self, points: Iterable[Point]) -> set[Definition]:
        """The columns that occur in branches of these points only."""
        numbers = [self._numbers[key] for key in map(_key, points) if key in self._numbers]
        mine = Counter(one for number in numbers for one in self.branches[number].lazy)
        calls = {one: lazy_column(one).calls for one in mine}
        return {one for one, count in mine.items() if count == self.columns[calls[one][0]][one]}

    def of_rows(self, rows: Sequence[Row]) -> list[list[int]]:
        """For each row, the branches whose conditions on declared columns it satisfies."""
        few_rows = len(rows) <= SCANNED_ROWS or not may_load_kernels()
        if few_rows and len(self) <= SCANNED_BRANCHES:
            return [
                [n for n, one in self.branches.items() if contains(one.declared, self.table, row)]
                for row in rows
            ]
        matcher = self._built_matcher()
        if len(rows) <= SCANNED_ROWS:
            return [matcher.match(row) for row in rows]
        batch = EventBatch.of_stored(self.table, rows, self.declared_columns)
        pairs = matcher.match_batch(batch)
        found: list[list[int]] = [[] for _ in rows]
        events, numbers = pairs.expand()
        for event, number in zip(events.tolist(), numbers.tolist(), strict=True):
            found[event].append(number)
        return found

    @property
    def declared_columns(self) -> set[int]:
        """The declared columns that some condition reads."""
        return {column for one in self.branches.values() for column, _ in one.declared}

    def any_in(self, batch: EventBatch) -> Mask:
        """Which rows of a batch some branch may select; only declared columns are read."""
        return self._built_matcher().any_match(batch)

    def _built_matcher(self) -> Matcher:
        if self._matcher is None:
            self._matcher = create(DEFAULT_MATCHER, self.table)
            self._matcher.insert_many((n, [one.declared]) for n, one in self.branches.items())
        return self._matcher


@lru_cache(maxsize=100_000)
def call_id(call: Predicate) -> bytes:
    """A stable id of a call, the same in every process."""
    return hashlib.blake2b(pack(call.plain()), digest_size=8).digest()


def _key(point: Point) -> _PointKey:
    return point.space, (point.id.subscription, point.id.branch, point.id.node)


def _branch(relation: ExtendedRelation, point: Point) -> Branch:
    box = point.base
    lazy, first = relation.lazy_columns, relation.first_derived
    literals: dict[Literal, None] = {}
    definitions = []
    for column, interval in box:
        if column in lazy:
            definition = relation.definitions[column - first]
            definitions.append(definition)
            literals |= dict.fromkeys(lazy_column(definition).literals(interval))
    return Branch(
        point.id.subscription,
        relation,
        tuple((c, i) for c, i in box if c < first),
        tuple((c, i) for c, i in box if c >= first and c not in lazy),
        tuple(literals),
        tuple(definitions),
    )


def computed_relations(branches: Iterable[Branch]) -> list[ExtendedRelation]:
    """The relations whose expressions are needed to decide which branches are candidates."""
    found = {one.relation.name: one.relation for one in branches if one.computed}
    return list(found.values())
