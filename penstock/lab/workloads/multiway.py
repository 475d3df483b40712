"""Select-joins of two to four tables, as in section 6.3 of Chandramouli and Yang (2008).

S stands in the middle and joins R, T and U by one column. Of one join value there are 10 rows of R,
70 of S, 70 of T and 30 of U. Subscriptions are a mix of R-S, R-S-T, R-S-T-U (each 5 parts of 17)
and S-T-U (2 parts), with a range over each table; ranges over R and S are wide, over T and U
narrow, and values lie as normal distributions have them. With `star`, S is a fact table instead:
each of its rows joins one row of each of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.flow.changes import Change, Op
from penstock.flow.engine import Engine
from penstock.flow.events import encode_change
from penstock.joins.decomposition.statistics import Statistics
from penstock.messages import Message

TABLES = ("r", "s", "t", "u")
ROWS_PER_VALUE = {"r": 10, "s": 70, "t": 70, "u": 30}
STAR_ROWS_PER_VALUE = {"r": 1, "s": 25, "t": 1, "u": 1}
MIX = (("rs", 5), ("rst", 5), ("rstu", 5), ("stu", 2))
WIDTHS = {"r": 20_000, "s": 20_000, "t": 6_000, "u": 3_000}
PAYLOAD = "x" * 100
TOP_VALUE = 100_000


@dataclass
class MultiwayWorkload:
    """Tables in an engine, the subscriptions to them, and inserts to come."""

    subscriptions: int
    star: bool = False
    join_values: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._next_id = self._offset = 0
        self.engine = Engine()
        for table in TABLES:
            self.engine.define(
                self._offset,
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER, p VARCHAR)",
            )
            self._offset += 1
        for table, count in self._rows_per_value().items():
            for value in range(self.join_values):
                for _ in range(count):
                    self.apply(self._insert(table, value))
        self.engine.statistics = Statistics()  # the tables are loaded: what comes is another matter
        for sql in self._queries():
            self.engine.subscribe(self._offset, self.engine.bind(sql))
            self._offset += 1

    def _rows_per_value(self) -> dict[str, int]:
        return STAR_ROWS_PER_VALUE if self.star else ROWS_PER_VALUE

    def apply(self, change: Change) -> list[Message]:
        """Carry out one change; what it makes the server send."""
        outcome = self.engine.events([(self._offset, encode_change(change))])
        assert not outcome.refused
        self._offset += 1
        return outcome.messages

    def replan_offset(self) -> int:
        self._offset += 1
        return self._offset - 1

    def inserts(self, count: int) -> list[Change]:
        """Rows to come, of all tables alike."""
        tables = self._random.choice(len(TABLES), count).tolist()
        values = self._random.choice(self.join_values, count).tolist()
        return [self._insert(TABLES[t], v) for t, v in zip(tables, values, strict=True)]

    def _insert(self, table: str, value: int) -> Change:
        self._next_id += 1
        number = round(float(np.clip(self._random.normal(50_000, 20_000), 0, TOP_VALUE)))
        return Change(
            table, Op.INSERT, {"id": self._next_id, "k": value, "a": number, "p": PAYLOAD}
        )

    def _queries(self) -> Iterator[str]:
        total = sum(parts for _, parts in MIX)
        for tables, parts in MIX:
            for _ in range(round(self.subscriptions * parts / total)):
                others = [table for table in tables if table != "s"]
                joins = " ".join(f"JOIN {table} ON s.k = {table}.k" for table in others)
                where = " AND ".join(self._range(table) for table in tables)
                yield f"SELECT * FROM s {joins} WHERE {where}"

    def _range(self, table: str) -> str:
        centre = self._random.normal(50_000, 20_000)
        width = abs(self._random.normal(WIDTHS[table], WIDTHS[table] / 4))
        return f"{table}.a BETWEEN {round(centre - width / 2)} AND {round(centre + width / 2)}"
