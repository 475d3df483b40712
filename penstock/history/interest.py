"""How subscriptions constrain the columns of a table, and how selective their conditions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.catalog import Relation, Row
from penstock.matching.attribute_order import AttributeStatistics
from penstock.predicates.boxes import Box, contains
from penstock.predicates.intervals import Interval
from penstock.query import Query

MEASURED_PREDICATES = 200
"""The number of most common conditions per column whose selectivity is measured."""


@dataclass
class Interest:
    """The boxes of all subscriptions over one table, alone or in joins."""

    relation: Relation
    boxes: list[Box] = field(default_factory=list)

    def attributes(self) -> AttributeStatistics:
        return AttributeStatistics.of_boxes(len(self.relation.columns), self.boxes)

    def selectivities(self, sample: Sequence[Row]) -> list[float]:
        """By column, the share of sampled rows that satisfy its conditions, on average."""
        asked: list[Counter[Interval]] = [Counter() for _ in self.relation.columns]
        for box in self.boxes:
            for column, interval in box:
                asked[column][interval] += 1
        return [self._selectivity(i, counts, sample) for i, counts in enumerate(asked)]

    def _selectivity(self, column: int, asked: Counter[Interval], sample: Sequence[Row]) -> float:
        common = asked.most_common(MEASURED_PREDICATES)
        if not common or not sample:
            return 1.0
        shares = [self._share(((column, interval),), sample) for interval, _ in common]
        return float(np.average(shares, weights=[count for _, count in common]))

    def _share(self, box: Box, sample: Sequence[Row]) -> float:
        return sum(contains(box, self.relation, row) for row in sample) / len(sample)


def interests(queries: Iterable[Query]) -> dict[str, Interest]:
    """The boxes of queries, by table. Conditions on derived columns are left out: a table has
    none."""
    found: dict[str, Interest] = {}
    for query in queries:
        for branch in query.branches:
            for node, box in zip(query.nodes, branch, strict=True):
                table = node.relation.declared
                mine = tuple(one for one in box if one[0] < len(table.columns))
                found.setdefault(table.name, Interest(table)).boxes.append(mine)
    return found
