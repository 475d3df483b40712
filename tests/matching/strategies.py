"""Random relations, boxes and rows, made so that values often meet constants."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Relation,
    Row,
    Stored,
    StringType,
    TimestampType,
    ValueType,
)
from penstock.predicates.boxes import Box, box
from penstock.predicates.intervals import (
    ABOVE_NULL,
    BOTTOM,
    IS_NULL,
    NOT_NULL,
    TOP,
    Interval,
    above,
    below,
    normalise,
    point,
    prefix,
)

_BIG = 10**30
_VALUES: dict[str, list[Stored]] = {
    "integer": [-(2**63), -7, -1, 0, 1, 2, 3, 5, 2**63 - 1],
    "double": [float("-inf"), -1.5, -0.0, 0.0, 5e-324, 1.5, 2.0, float("inf"), float("nan")],
    "decimal": [-999, -1, 0, 1, 2, 999],
    "long decimal": [-_BIG, -1, 0, 1, _BIG - 1, _BIG],
    "string": ["", "a", "ab", "abc", "b", "\U0010ffff", "é"],
    "boolean": [False, True],
    "date": [-1, 0, 1, 20_000],
    "timestamp": [-1, 0, 1, 1_700_000_000_000_000],
}
_TYPES: dict[str, ValueType] = {
    "integer": IntegerType(),
    "double": DoubleType(),
    "decimal": DecimalType(9, 2),
    "long decimal": DecimalType(38, 2),
    "string": StringType(),
    "boolean": BooleanType(),
    "date": DateType(),
    "timestamp": TimestampType(),
}


@dataclass(frozen=True)
class World:
    """A relation, and strategies for boxes and rows of it."""

    relation: Relation
    kinds: tuple[str, ...]

    def rows(self) -> st.SearchStrategy[Row]:
        return st.tuples(*(st.sampled_from([None, *_VALUES[kind]]) for kind in self.kinds))

    def boxes(self) -> st.SearchStrategy[Box]:
        columns = st.integers(0, len(self.kinds) - 1)
        chosen = st.lists(columns, unique=True, max_size=3)
        return chosen.flatmap(
            lambda cs: st.tuples(*(self._interval(c) for c in cs)).map(
                lambda intervals: box(dict(zip(cs, intervals, strict=True)))
            )
        )

    def unions(self) -> st.SearchStrategy[list[Box]]:
        return st.lists(self.boxes(), max_size=3)

    def _interval(self, column: int) -> st.SearchStrategy[Interval]:
        value_type = self.relation.columns[column].type
        keys = [value_type.key(value) for value in _VALUES[self.kinds[column]]]
        cuts = [BOTTOM, ABOVE_NULL, TOP, *map(below, keys), *map(above, keys)]
        anything = st.tuples(st.sampled_from(cuts), st.sampled_from(cuts)).map(
            lambda ends: Interval(*ends)
        )
        options = [anything, st.sampled_from(keys).map(point), st.sampled_from([IS_NULL, NOT_NULL])]
        if isinstance(value_type, StringType):
            options.append(st.sampled_from(["", "a", "ab", "\U0010ffff"]).map(prefix))
        return st.one_of(options).map(lambda interval: normalise(interval, value_type))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    kinds = draw(st.lists(st.sampled_from(sorted(_TYPES)), min_size=1, max_size=4))
    columns = tuple(Column(f"c{i}", _TYPES[kind]) for i, kind in enumerate(kinds))
    return World(Relation("things", columns, (), True), tuple(kinds))
