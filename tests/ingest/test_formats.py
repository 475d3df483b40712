"""The same values in every format: accepted as the same row, or refused, in all of them alike."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from penstock import Hub
from penstock.catalog import Catalog
from penstock.errors import ChangeError
from penstock.flow.changes import check
from penstock.flow.events import decode_event
from penstock.ingest.formats import read_file
from penstock.sql import parse_relation

SQL = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, n INTEGER, x DOUBLE, d DECIMAL(8, 2), b BOOLEAN,"
    " day DATE, at TIMESTAMP, z TIMESTAMP WITH TIME ZONE)"
)
RELATION = parse_relation(SQL)
CATALOG = Catalog()
CATALOG.add(RELATION, 0)

VALUES: list[tuple[str, object]] = [
    ("n", 951.0),
    ("n", "951.0"),
    ("n", "951"),
    ("n", 951.5),
    ("n", "951.5"),
    ("n", "1_000"),
    ("n", 1e10),
    ("x", 5),
    ("x", "5"),
    ("x", " 1e3 "),
    ("x", "five"),
    ("d", 1.5),
    ("d", "1.50"),
    ("d", "1.505"),
    ("b", "true"),
    ("b", "F"),
    ("b", "1"),
    ("b", "yes"),
    ("day", "2024-05-06"),
    ("day", "2024-05-06T00:00:00Z"),
    ("day", "2024-05-06T10:00:00"),
    ("at", "2024-05-06"),
    ("at", "2024-05-06T07:08:09Z"),
    ("at", "2024-05-06T09:08:09+02:00"),
    ("at", "2024-05-06T07:08:09.123456000"),
    ("at", "2024-05-06T07:08:09.123456789"),
    ("z", "2024-05-06T07:08:09"),
    ("z", "2024-05-06T09:08:09.5+02:00"),
    ("z", "2024-05-06T07:08:09.123456789Z"),
]


def written(directory: Path, column: str, value: object) -> dict[str, bytes]:
    """An event of each format that gives a column this value."""
    row = {"id": 1, column: value}
    plain = {"table": "t", "row": row}
    cloud = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
    encoded = base64.b64encode(json.dumps(plain).encode()).decode()
    text = io.StringIO()
    csv.writer(text).writerows([row.keys(), row.values()])
    (directory / "t.csv").write_text(text.getvalue())
    pyarrow.parquet.write_table(
        pa.table({"id": [1], column: pa.array([value])}), directory / "t.parquet"
    )
    lines = {
        "plain": plain,
        "Debezium": {"op": "c", "after": row, "source": {"table": "t"}},
        "CloudEvents": {**cloud, "data": plain},
        "CloudEvents in base64": {**cloud, "data_base64": encoded},
    }
    events = {name: json.dumps(line).encode() for name, line in lines.items()}
    for name in ("csv", "parquet"):
        (batch, *_) = read_file(directory / f"t.{name}", RELATION)
        (events[name],) = batch.events
    return events


@pytest.mark.parametrize(("column", "value"), VALUES)
def test_every_format_has_the_same_values(tmp_path: Path, column: str, value: object) -> None:
    found: dict[str, object] = {}
    for name, event in written(tmp_path, column, value).items():
        try:
            found[name] = RELATION.show_row(check(decode_event(event), CATALOG, 1).row)
        except ChangeError as error:
            found[name] = f"is not a {error.primary.rpartition('is not a ')[2]}"
    with Hub() as hub:
        hub.execute(SQL)
        try:
            hub.insert("t", {"id": 1, column: value})
            (found["Hub"],) = hub.rows("t")
        except ChangeError as error:
            found["Hub"] = f"is not a {error.primary.rpartition('is not a ')[2]}"
    assert len({repr(one) for one in found.values()}) == 1, found
