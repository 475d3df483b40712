"""Whole workloads for the pipeline: tables, subscriptions as SQL, events as published.

=========  =====================================================================================
stateless  a stream of quotes; two ranges per subscription, so that a thousandth of them match
joins      the tables of Chandramouli and Yang (2008), Table 2: 100 join values, 16,000 and 5,100
           rows, rows that come while the oldest go
many-keys  the same with 10,000 join values of 100 rows each
=========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from penstock.lab.workloads.joins import R_TABLE, S_TABLE, SCALE, JoinWorkload

_encode = msgspec.json.encode
QUOTES = "CREATE STREAM quotes (symbol VARCHAR, price BIGINT, volume BIGINT)"
TOP_NUMBER = 100_000
RANGE_SHARE = 0.03
"""The share of each axis that a range of a stateless subscription covers."""


@dataclass
class StreamWorkload:
    """The initial rows of a home, and the events that follow."""

    tables: tuple[str, ...]
    subscriptions: list[str]
    rows: list[bytes]
    """Published before the measurement."""
    events: Iterator[bytes]
    """Infinite."""


def stream_workload(name: str, subscriptions: int, seed: int = 1) -> StreamWorkload:
    """KeyError if there is no such workload."""
    return _WORKLOADS[name](subscriptions, seed)


def _stateless(subscriptions: int, seed: int) -> StreamWorkload:
    random = np.random.default_rng(seed)
    width = round(TOP_NUMBER * RANGE_SHARE)
    lows = random.integers(0, TOP_NUMBER - width, (subscriptions, 2)).tolist()
    texts = [
        f"SELECT * FROM quotes WHERE price BETWEEN {p} AND {p + width} "
        f"AND volume BETWEEN {v} AND {v + width}"
        for p, v in lows
    ]
    return StreamWorkload((QUOTES,), texts, [], _quotes(random))


def _quotes(random: np.random.Generator) -> Iterator[bytes]:
    while True:
        for price, volume in random.integers(0, TOP_NUMBER, (10_000, 2)).tolist():
            row = {"symbol": f"S{price % 997}", "price": price, "volume": volume}
            yield _encode({"table": "quotes", "op": "insert", "row": row})


def join_workload(name: str, subscriptions: int, seed: int = 1) -> JoinWorkload:
    """The workload behind `joins` and `many-keys`."""
    if name == "joins":
        return JoinWorkload(subscriptions, seed=seed)
    values = 10_000
    rows = values * 50
    return JoinWorkload(subscriptions, rows, rows, join_values=values, seed=seed)


def _joins(subscriptions: int, seed: int) -> StreamWorkload:
    return _of_joins(join_workload("joins", subscriptions, seed))


def _many_keys(subscriptions: int, seed: int) -> StreamWorkload:
    return _of_joins(join_workload("many-keys", subscriptions, seed))


def _of_joins(workload: JoinWorkload) -> StreamWorkload:
    interests = workload.interests
    columns = (interests.a_low, interests.a_high, interests.c_low, interests.c_high)
    texts = [
        f"SELECT * FROM r JOIN s ON r.b = s.b WHERE a BETWEEN {_number(a)} AND {_number(b)} "
        f"AND c BETWEEN {_number(c)} AND {_number(d)}"
        for a, b, c, d in zip(*(column.tolist() for column in columns), strict=True)
    ]
    rows = [
        _row_event("insert", side, row)
        for group in workload.groups.values()
        for side in (0, 1)
        for row in group.sides[side].values()
    ]
    return StreamWorkload((R_TABLE, S_TABLE), texts, rows, _turnover(workload))


def _turnover(workload: JoinWorkload) -> Iterator[bytes]:
    while True:
        for side in (0, 1):
            for value, step in workload.turnover(side, 100):
                workload.groups[value].apply(step)
                is_new = step.new is not None
                yield _row_event("insert" if is_new else "delete", side, step.new or step.old)


def _row_event(op: str, side: int, row: object) -> bytes:
    values = list(row)  # type: ignore[call-overload]
    if op == "delete":
        return _encode({"table": "rs"[side], "op": op, "row": {"id": values[0]}})
    number = 1 if side == 0 else 2
    values[number] = msgspec.Raw(_number(values[number]).encode())
    names = ("id", "a", "b", "p") if side == 0 else ("id", "b", "c", "p")
    return _encode({"table": "rs"[side], "op": op, "row": dict(zip(names, values, strict=True))})


def _number(stored: int) -> str:
    return f"{stored // SCALE}.{stored % SCALE:03}"


_WORKLOADS = {"stateless": _stateless, "joins": _joins, "many-keys": _many_keys}
WORKLOADS = tuple(_WORKLOADS)
