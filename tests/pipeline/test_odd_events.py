"""Whatever publishers send, Hub and pipeline make the same of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock import Hub
from penstock.maintenance.verification import verify
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.flow import plain_lines as lines

COLUMNS = (
    'id INTEGER NOT NULL, "Big" BIGINT, d DOUBLE, n DECIMAL(6,2), wide DECIMAL(38,2), s VARCHAR, '
    "short VARCHAR(3), b BOOLEAN, day DATE, at TIMESTAMP, zoned TIMESTAMP WITH TIME ZONE"
)


def process_both(directory: Path, statements: list[str], events: list[bytes]) -> list[Home]:
    """A home that a Hub has processed, and one that the pipeline has."""
    homes = []
    for name in ("hub", "pipeline"):
        with Hub(directory / name) as hub:
            for statement in statements:
                hub.execute(statement)
        home = Home.open(directory / name)
        home.log.append([(RecordKind.EVENT, event) for event in events])
        homes.append(home)
    Hub(homes[0].path).close()
    assert LocalPipeline(homes[1], batch_rows=50).run() > 0
    return homes


def test_odd_events_end_in_the_same_quarantine(tmp_path: Path) -> None:
    statements = [
        f"CREATE STREAM quotes ({COLUMNS})",
        f'CREATE TABLE "Things" ({COLUMNS}, PRIMARY KEY (id))',
    ]
    by_hub, by_pipeline = process_both(tmp_path, statements, lines.ODD_LINES)
    quarantined = list(by_hub.quarantine.entries())
    assert 100 < len(quarantined) < len(lines.ODD_LINES)
    assert list(by_pipeline.quarantine.entries()) == quarantined


@contextmanager
def _silent(_what: str) -> Iterator[Callable[[int, int], None]]:
    yield lambda _done, _total: None


def debezium(op: str, table: str = "stocks", **sides: dict[str, object] | None) -> bytes:
    return json.dumps({"op": op, "source": {"table": table}, **sides}).encode()


ONE, OTHER = {"id": 1, "symbol": "A"}, {"id": 1, "symbol": "B"}
DELIVERED = [
    debezium("c", after=ONE),
    debezium("r", after={"id": 2, "symbol": "X"}),
    debezium("u", before=ONE, after=OTHER),
    b"null",
    b'{"ts_ms": 1700000000000}',
    debezium("c", after={"id": 3, "symbol": "C"}),
    debezium("d", before={"id": 3, "symbol": "C"}),
    b'{"schema": null, "payload": null}',
    b'{"status": "BEGIN", "id": "5", "ts_ms": 1}',
    debezium("c", table="ticks", after={"n": 1}),
    debezium("r", table="ticks", after={"n": 2}),
]
ERRORS = [
    debezium("u", after={"id": 99, "symbol": "?"}),
    debezium("c", after={"id": "x"}),
    debezium("d", before={"symbol": "A"}),
    debezium("t"),
    debezium("c", table="nowhere", after=ONE),
    debezium("d", table="ticks", before={"n": 1}),
    b'{"table": "stocks", "row": {"id": 1, "symbol": "A"}}',
    b'{"table": "stocks", "op": "delete", "row": {"id": 98}}',
]
REMOVED = [
    b'{"table": "stocks", "op": "remove", "row": {"id": 98}}',
    b'{"table": "stocks", "op": "upsert", "row": {"id": 97}}',
    b'{"table": "stocks", "op": "remove", "row": {"id": 97}}',
    b'{"table": "stocks", "op": "remove", "row": {"id": 97}}',
]


@pytest.mark.parametrize("key", ["BIGINT", "DOUBLE"], ids=["packed", "one by one"])
def test_debezium_delivers_at_least_once(tmp_path: Path, key: str) -> None:
    """What comes again changes nothing in the end, and only real errors go to the quarantine."""
    statements = [
        f"CREATE TABLE stocks (id {key} PRIMARY KEY, symbol VARCHAR)",
        "CREATE STREAM ticks (n BIGINT)",
    ]
    events = [*DELIVERED, *DELIVERED, *DELIVERED[5:], *REMOVED, *ERRORS]
    homes = process_both(tmp_path, statements, events)
    quarantines = [list(home.quarantine.entries()) for home in homes]
    assert quarantines[0] == quarantines[1]
    assert [entry.raw for entry in quarantines[0]] == ERRORS
    for home in homes:
        with Hub(home.path) as hub:
            content = hub.subscribe("SELECT id, symbol FROM stocks").content()
            assert sorted(content, key=str) == [OTHER, {"id": 2, "symbol": "X"}]
            assert hub.rows("ticks").count({"n": 1}) == 3, "a stream cannot tell"
    findings = [finding for home in homes for finding in verify(home, _silent).findings]
    assert findings == []
