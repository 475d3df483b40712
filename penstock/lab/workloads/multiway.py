"""Select-joins of two to four tables, as in section 6.3 of Chandramouli and Yang (2008).

S is in the middle and joins R, T and U by one column. Each join value has 10 rows of R, 70 of S, 70
of T and 30 of U. Subscriptions are a mix of R-S, R-S-T, R-S-T-U (each 5 parts of 17) and S-T-U (2
parts), with a range over each table; ranges over R and S are wide, over T and U narrow, and values
are normally distributed.

With `star`, S is a fact table instead: 25,000 rows, each of which joins exactly one of the 1,000
rows of each other table, by a column for each. New facts join existing rows, and new rows of the
other tables have new keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.catalog import Outside
from penstock.flow.changes import Change, Op
from penstock.flow.engine import Engine
from penstock.flow.events import encode_change
from penstock.joins.decomposition.statistics import Statistics
from penstock.messages import Message

TABLES = ("r", "s", "t", "u")
ROWS_PER_VALUE = {"r": 10, "s": 70, "t": 70, "u": 30}
STAR_ROWS = {"r": 1_000, "t": 1_000, "u": 1_000, "s": 25_000}
"""The facts come last: the rows they refer to exist."""
MIX = (("rs", 5), ("rst", 5), ("rstu", 5), ("stu", 2))
WIDTHS = {"r": 20_000, "s": 20_000, "t": 6_000, "u": 3_000}
PAYLOAD = "x" * 100
TOP_VALUE = 100_000


@dataclass
class MultiwayWorkload:
    """Tables in an engine, the subscriptions to them, and future inserts. A star can be made
    smaller by `share`; its facts have a payload if `heavy_facts`."""

    subscriptions: int
    star: bool = False
    join_values: int = 10
    seed: int = 1
    share: float = 1.0
    heavy_facts: bool = False

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._next_id = self._offset = 0
        self.engine = Engine()
        for table in TABLES:
            keys = "kr INTEGER, kt INTEGER, ku INTEGER" if self._is_fact(table) else "k INTEGER"
            self.engine.define(
                self._offset,
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, a INTEGER, p VARCHAR, {keys})",
            )
            self._offset += 1
        self._dimension_rows = dict.fromkeys(STAR_ROWS, 0)
        self.loaded = list(self._first_rows())
        for change in self.loaded:
            self.apply(change)
        self.engine.statistics = Statistics()  # loading the tables must not count
        for sql in self._queries():  # without initial content, which nobody reads here
            self.engine.enrol(self._offset, self.engine.bind(sql))
            self._offset += 1
        self.engine.events([])

    def _is_fact(self, table: str) -> bool:
        return self.star and table == "s"

    def _first_rows(self) -> Iterator[Change]:
        if self.star:
            for table, count in STAR_ROWS.items():
                for _ in range(max(1, round(count * self.share))):
                    yield self._star_insert(table)
            return
        for table, count in ROWS_PER_VALUE.items():
            for value in range(self.join_values):
                for _ in range(count):
                    yield self._insert(table, {"k": value})

    def apply(self, change: Change) -> list[Message]:
        """Apply one change; returns the messages of the server."""
        outcome = self.engine.events([(self._offset, encode_change(change))])
        assert not outcome.refused
        self._offset += 1
        return outcome.messages

    def replan_offset(self) -> int:
        self._offset += 1
        return self._offset - 1

    def inserts(self, count: int) -> list[Change]:
        """Future rows: of all tables alike; for a star, in proportion to its tables."""
        if self.star:
            weights = np.array(list(STAR_ROWS.values())) / sum(STAR_ROWS.values())
            drawn = self._random.choice(list(STAR_ROWS), count, p=weights).tolist()
            return [self._star_insert(table) for table in drawn]
        tables = self._random.choice(len(TABLES), count).tolist()
        values = self._random.choice(self.join_values, count).tolist()
        return [self._insert(TABLES[t], {"k": v}) for t, v in zip(tables, values, strict=True)]

    def _star_insert(self, table: str) -> Change:
        rows = self._dimension_rows
        if table != "s":
            rows[table] += 1
            return self._insert(table, {"k": rows[table] - 1})
        keys = {f"k{one}": int(self._random.integers(rows[one])) for one in rows if one != "s"}
        return self._insert(table, keys, PAYLOAD if self.heavy_facts else "")

    def _insert(self, table: str, keys: Mapping[str, int], payload: str = PAYLOAD) -> Change:
        self._next_id += 1
        number = round(float(np.clip(self._random.normal(50_000, 20_000), 0, TOP_VALUE)))
        row: dict[str, Outside] = {"id": self._next_id, "a": number, "p": payload, **keys}
        return Change(table, Op.INSERT, row)

    def _queries(self) -> Iterator[str]:
        total = sum(parts for _, parts in MIX)
        for tables, parts in MIX:
            for _ in range(round(self.subscriptions * parts / total)):
                others = [table for table in tables if table != "s"]
                joins = " ".join(f"JOIN {one} ON s.{self._key(one)} = {one}.k" for one in others)
                where = " AND ".join(self._range(table) for table in tables)
                yield f"SELECT * FROM s {joins} WHERE {where}"

    def _key(self, table: str) -> str:
        return f"k{table}" if self.star else "k"

    def _range(self, table: str) -> str:
        centre = self._random.normal(50_000, 20_000)
        width = abs(self._random.normal(WIDTHS[table], WIDTHS[table] / 4))
        return f"{table}.a BETWEEN {round(centre - width / 2)} AND {round(centre + width / 2)}"
