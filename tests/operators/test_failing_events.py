"""Events of one batch of which some fail: the others are served."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock import Hub
from penstock.errors import ChangeError
from penstock.operators import BIGINT, Argument, operator
from penstock.registry import Registry
from penstock.storage import Home
from penstock.testing import LocalPipeline
from tests.operators.evaluating import Call

FAILING = 13


@operator("isLarge", [Argument("n", BIGINT)])
def is_large(n: int) -> bool:
    if n == FAILING:
        raise ValueError("unlucky")
    return n >= 10


OPERATOR = "CREATE OPERATOR isLarge AS 'tests.operators.test_failing_events:is_large'"


@pytest.mark.parametrize(
    "relation", ["CREATE STREAM t (n BIGINT)", "CREATE TABLE t (n BIGINT PRIMARY KEY)"]
)
def test_others_of_a_batch_in_a_hub(relation: str, calls: Counter[Call]) -> None:
    with Hub() as hub:
        hub.execute(relation)
        hub.execute(OPERATOR)
        subscription = hub.subscribe("SELECT n FROM t WHERE n > 0 AND isLarge(n)")
        batch = [{"table": "t", "op": "insert", "row": {"n": n}} for n in (5, 11, FAILING, 12)]
        with pytest.raises(ChangeError, match="operator isLarge raised an error"):
            hub.apply(batch)
        assert sorted(str(row["n"]) for row in subscription.content()) == ["11", "12"]
    assert set(calls.values()) == {1}, "nobody is asked twice about the same"


@pytest.mark.parametrize("gear", ["plain", "fast"])
@pytest.mark.parametrize(
    "relation", ["CREATE STREAM t (n BIGINT)", "CREATE TABLE t (n BIGINT PRIMARY KEY)"]
)
def test_others_of_a_batch_in_a_pipeline(
    relation: str,
    gear: str,
    tmp_path: Path,
    calls: Counter[Call],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_GEAR", gear)
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define(relation)
        registry.define(OPERATOR)
        number = registry.subscribe("SELECT n FROM t WHERE n > 0 AND isLarge(n)").id
    pipeline = LocalPipeline(home)
    pipeline.run()
    from penstock.flow.changes import Change, Op
    from penstock.flow.events import encode_change
    from penstock.storage import RecordKind

    bodies = [encode_change(Change("t", Op.INSERT, {"n": n})) for n in (5, 11, FAILING, 12)]
    home.log.append([(RecordKind.EVENT, body) for body in bodies])
    pipeline.run()
    (refused,) = home.quarantine.entries()
    assert "isLarge" in refused.primary
    with Hub(home.path) as hub:
        content = hub.subscription(number).content()
    assert sorted(str(row["n"]) for row in content) == ["11", "12"]
