"""Publishing files: every line and every row becomes an event, good or bad."""

from __future__ import annotations

import io
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import Catalog, Relation, Row
from penstock.errors import BacklogError, ChangeError, EventError, HomeError
from penstock.flow.changes import Op, check
from penstock.flow.events import decode_event
from penstock.ingest import row_writer
from penstock.ingest.formats import json_lines, read_file
from penstock.ingest.formats.json_lines import read_lines
from penstock.ingest.input_files import InputBatch
from penstock.ingest.publication import Published, publish
from penstock.sql import parse_relation
from penstock.storage import BatchHeader, MemoryHome

EVERYTHING = parse_relation(
    "CREATE TABLE everything (id BIGINT PRIMARY KEY, x DOUBLE, d DECIMAL(20, 4), s VARCHAR,"
    " b BOOLEAN, day DATE, t TIMESTAMP, z TIMESTAMP WITH TIME ZONE)"
)


def events(batches: object) -> list[bytes]:
    assert not isinstance(batches, list)
    return [event for batch in batches for event in batch.events]  # type: ignore[attr-defined]


def stored(event: bytes, relation: Relation = EVERYTHING) -> Row:
    catalog = Catalog()
    catalog.add(relation, 0)
    return check(decode_event(event), catalog, 1).row


def refusal(event: bytes) -> str:
    with pytest.raises(ChangeError) as caught:
        stored(event)
    return str(caught.value)


# Lines


def test_lines_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \t\nnot json\xff\n{"b": 2}')
    assert events(read_file(path)) == [b'{"a": 1}', b"not json\xff", b'{"b": 2}']


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").touch()
    assert events(read_file(tmp_path / "x.ndjson")) == []


@given(st.lists(st.binary(max_size=30)), st.integers(1, 40))
def test_any_lines_in_any_pieces(lines: list[bytes], piece: int) -> None:
    lines = [line.replace(b"\n", b"").replace(b"\r", b"") for line in lines]
    content = b"\n".join(lines).removeprefix(b"\xef\xbb\xbf")

    class Pieces(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return self.read(piece)

    wanted = [line for line in content.split(b"\n") if line.strip()]
    batches = list(read_lines(Pieces(content), "pieces"))
    assert events(iter(batches)) == wanted
    if batches:
        assert batches[-1].done_bytes == len(content)


def test_a_pipe_is_read_as_it_is_filled() -> None:
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as source:
        batches = read_lines(source, "standard input")
        os.write(write_end, b"one\ntwo\nthr")
        assert next(batches).events == [b"one", b"two"]
        os.write(write_end, b"ee\n")
        assert next(batches) == InputBatch([b"three"], 14, None, range(3, 4))
        os.close(write_end)
        assert list(batches) == []


@pytest.mark.parametrize("chunk_bytes", [40, 80])
def test_a_line_that_is_too_long_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chunk_bytes: int
) -> None:
    monkeypatch.setattr(json_lines, "MAX_RECORD_BYTES", 100)
    monkeypatch.setattr(json_lines, "CHUNK_BYTES", chunk_bytes)
    path, home = tmp_path / "x.jsonl", MemoryHome()
    for rest in (b"", b"\n", b"\nmore\n"):
        path.write_bytes(b"one\n" * 20 + b"x" * 121 + rest)
        home, published = MemoryHome(), Published()
        with pytest.raises(EventError, match=r"line 21 of x\.jsonl is longer than 100"):
            publish(home, read_file(path), published)
        assert published == Published(20, 0, 20)
        assert home.log.end == 20


def test_publishing_reports_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "CHUNK_BYTES", 1000)
    path, home = tmp_path / "x.jsonl", MemoryHome()
    path.write_bytes(b"".join(b'{"n": %d}\n' % i for i in range(1000)))
    seen: list[InputBatch] = []
    assert publish(home, read_file(path), progress=seen.append) == Published(1000, 0, 1000)
    assert home.log.end == 1000
    assert [record.body for record in home.log.read(998)] == [b'{"n": 998}', b'{"n": 999}']
    assert len(seen) > 5
    assert seen[-1].done_bytes == seen[-1].total_bytes == path.stat().st_size


def test_files_that_cannot_be_published(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match="cannot read the file"):
        list(read_file(tmp_path / "nowhere.jsonl"))
    with pytest.raises(HomeError, match="cannot read the file"):
        list(read_file(tmp_path / "nowhere.csv", EVERYTHING))
    with pytest.raises(EventError, match="no name that says"):
        read_file(tmp_path / "x.xlsx")
    with pytest.raises(EventError, match="which table"):
        read_file(tmp_path / "x.csv")


# CSV


def csv_events(tmp_path: Path, content: str | bytes, op: Op = Op.INSERT) -> list[bytes]:
    path = tmp_path / "x.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return events(read_file(path, EVERYTHING, op))


def test_csv_is_read_by_the_types_of_the_columns(tmp_path: Path) -> None:
    found = csv_events(
        tmp_path,
        "id,x,d,s,b,day,t,z\n"
        '1,1.5,12.3456,"a ""quoted"",\nname",true,2024-02-29,2024-02-29 12:00,2024-02-29 12:00Z\n'
        "-2,,,,F,,,\n"
        '3,nan,-0.5,"",1,,,\n',
    )
    day = (date(2024, 2, 29) - date(1970, 1, 1)).days
    noon = (day * 86400 + 43200) * 1_000_000
    assert stored(found[0]) == (1, 1.5, 123456, 'a "quoted",\nname', True, day, noon, noon)
    assert stored(found[1]) == (-2, None, None, None, False, None, None, None)
    assert str(stored(found[2])[1]) == "nan"
    assert stored(found[2])[2:5] == (-5000, "", True), "a quoted empty field is a text"


def test_columns_in_another_order_and_case_and_number(tmp_path: Path) -> None:
    (found,) = csv_events(tmp_path, "S,ID\nabc,7\n", Op.UPDATE)
    change = decode_event(found)
    assert (change.op, dict(change.row)) == (Op.UPDATE, {"S": "abc", "ID": 7})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"one,,", "'one' is not a BIGINT"),
        (b"1__000,,", "'1__000' is not a BIGINT"),
        (b"9" * 30 + b",,", "is not a BIGINT"),
        (b"9" * 5000 + b",,", "is not a BIGINT"),
        (b"1,1e999,", "'1e999' is not a DOUBLE"),
        (b"1,1,5,5", "4 found"),
        (b"1", "1 found"),
        (b'1,,\xff"\\', "not valid UTF-8"),
        (b",,", "must not be NULL"),
    ],
)
def test_a_bad_row_is_still_an_event(tmp_path: Path, line: bytes, reason: str) -> None:
    found = csv_events(tmp_path, b"id,x,s\n1,2,ok\n" + line + b"\n3,4,ok\n")
    assert len(found) == 3
    reasons = [refusal(event) for event in found if b"ok" not in event]
    assert len(reasons) == 1
    assert reason in reasons[0]


def test_csv_files_that_cannot_be_meant(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="has a column 'symbol', table everything has not"):
        csv_events(tmp_path, "id,symbol\n1,a\n")
    with pytest.raises(EventError, match="the column 'ID' twice"):
        csv_events(tmp_path, "ID,id\n1,1\n")
    with pytest.raises(EventError, match="cannot be read"):
        csv_events(tmp_path, "")
    assert csv_events(tmp_path, "id,x\n") == []


def test_a_large_csv_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    count = 3 * row_writer.ROWS_PER_FRAME
    path.write_text("id,s\n" + "".join(f"{i},{'s' * 300}\n" for i in range(count)))
    batches = list(read_file(path, EVERYTHING))
    assert [decode_event(e).row["id"] for batch in batches for e in batch.events] == list(
        range(count)
    )
    assert max(len(batch.events) for batch in batches) <= row_writer.ROWS_PER_FRAME
    assert batches[0].done_bytes < batches[-1].done_bytes == batches[-1].total_bytes


# Parquet


def parquet_events(tmp_path: Path, **columns: pa.Array) -> list[bytes]:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path)
    return events(read_file(path, EVERYTHING))


def test_parquet_values(tmp_path: Path) -> None:
    moment = datetime(2024, 2, 29, 12, 0, 0, 5)
    first, second = parquet_events(
        tmp_path,
        id=pa.array([1, 2], pa.int32()),
        x=pa.array([1.5, float("-inf")], pa.float64()),
        d=pa.array([Decimal("12.3456"), None], pa.decimal128(20, 4)),
        s=pa.array(["a", "é"]).dictionary_encode(),
        b=pa.array([True, None]),
        day=pa.array([moment.date(), None]),
        t=pa.array([moment, None], pa.timestamp("ns")),
        z=pa.array([moment.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    )
    day = (date(2024, 2, 29) - date(1970, 1, 1)).days
    noon = (day * 86400 + 43200) * 1_000_000 + 5
    assert stored(first) == (1, 1.5, 123456, "a", True, day, noon, noon)
    assert stored(second) == (2, float("-inf"), None, "é", None, None, None, None)


def test_integers_written_as_doubles(tmp_path: Path) -> None:
    assert stored(parquet_events(tmp_path, id=pa.array([5.0]))[0])[0] == 5


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("x", pa.array(["1,5"]), "is not a DOUBLE"),
        ("id", pa.array([1.5]), "is not a BIGINT"),
        ("id", pa.array([2.0**60]), "is not a BIGINT"),
        ("t", pa.array([1], pa.timestamp("ns")), "is not a TIMESTAMP"),
        ("z", pa.array([1], pa.timestamp("ns", "UTC")), "is not a TIMESTAMP"),
        ("s", pa.array([b"\xff"]), "not valid UTF-8"),
        ("t", pa.array([10**15], pa.timestamp("ms")), "is not a TIMESTAMP"),
        ("day", pa.array([10**7], pa.date32()), "is not a DATE"),
        ("b", pa.array(["yes"]), "is not a BOOLEAN"),
        ("b", pa.array([2]), "is not a BOOLEAN"),
        ("b", pa.array([5], pa.duration("s")), "is not a BOOLEAN"),
    ],
)
def test_a_bad_value_is_still_an_event(
    tmp_path: Path, column: str, values: pa.Array, reason: str
) -> None:
    (event,) = parquet_events(tmp_path, **{"id": pa.array([1]), column: values})
    assert reason in refusal(event)


def test_bytes_that_are_text(tmp_path: Path) -> None:
    (event,) = parquet_events(tmp_path, id=pa.array([1]), s=pa.array([b"abc"]))
    assert stored(event)[3] == "abc"


def test_parquet_files_that_cannot_be_meant(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="has a column 'zz'"):
        parquet_events(tmp_path, zz=pa.array([1]))
    (tmp_path / "y.parquet").write_bytes(b"no parquet")
    with pytest.raises(EventError, match=r"y\.parquet cannot be read"):
        list(read_file(tmp_path / "y.parquet", EVERYTHING))


def test_parquet_progress(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pa.table({"id": list(range(10_000))}), path)
    batches = list(read_file(path, EVERYTHING))
    assert len(batches) == 3
    assert 0 < batches[0].done_bytes < batches[2].done_bytes == batches[2].total_bytes


# Back-pressure


def test_publishers_wait_when_the_log_is_too_far_ahead() -> None:
    home = MemoryHome()
    batches = [InputBatch([b"{}"] * 3, 0, None)] * 4
    published = Published()
    with pytest.raises(BacklogError, match="6 records wait"):
        publish(home, batches, published, max_backlog=5)
    assert home.log.end == 6
    assert published == Published(6, 0, 6)
    home.messages.publish(BatchHeader(0, 4, 0), [], [])
    assert publish(home, batches[:1], max_backlog=5).events == 3
    assert publish(home, batches, max_backlog=0).events == 12
