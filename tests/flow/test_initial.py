"""What a new subscription starts with costs what its rows cost, not what all groups would."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from penstock import Hub
from penstock.joins import scheme_names

WHERE = "r.a BETWEEN 3 AND 4 AND s.a BETWEEN 3 AND 4"
JOIN = "SELECT r.id AS r, s.id AS s FROM r JOIN s USING (k)"


def filled(scheme: str, rows: int) -> Hub:
    hub = Hub(scheme=scheme, reoptimise_every=None)
    for table in ("r", "s"):
        hub.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)")
        many = [{"id": i, "k": i, "a": i} for i in range(rows)]
        hub.apply([{"table": table, "op": "insert", "row": row} for row in many])
    hub.subscribe(f"{JOIN} WHERE r.a = 0 AND s.a = 0")  # from now on there are groups
    hub.subscribe(f"{JOIN} WHERE {WHERE}")  # and the kernels are there
    return hub


def calls_to_subscribe(hub: Hub) -> int:
    calls = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        subscription = hub.subscribe(f"{JOIN} WHERE {WHERE}")
    finally:
        sys.setprofile(None)
    assert [(row["r"], row["s"]) for row in subscription.content()] == [(3, 3), (4, 4)]
    return calls


@pytest.mark.parametrize("scheme", scheme_names())
def test_a_subscription_over_many_groups(scheme: str) -> None:
    with filled(scheme, 200) as few, filled(scheme, 1_600) as many:
        assert calls_to_subscribe(many) < 1.5 * calls_to_subscribe(few)
