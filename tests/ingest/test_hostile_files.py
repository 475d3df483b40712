"""Files that stand for more than they seem to, or are not what their names say: refused by name, or
read in pieces of limited size."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Column, IntegerType, Relation, StringType
from penstock.errors import EventError, InputError
from penstock.flow.changes import Op
from penstock.flow.events import MAX_EVENT_BYTES, decode_event
from penstock.ingest import row_writer
from penstock.ingest.formats import InputFormat, csv_rows, parquet_rows, read_file
from penstock.ingest.input_files import InputBatch
from tests.examples import examples

ROOT = Path(__file__).parent.parent.parent
THINGS = Relation("things", (Column("id", IntegerType(), False), Column("s", StringType())), (0,))


def batches_of(path: Path, format_: InputFormat | None = None) -> list[InputBatch]:
    return list(read_file(path, THINGS, Op.INSERT, format_))


def events_of(path: Path) -> list[bytes]:
    return [event for batch in batches_of(path) for event in batch.events]


def write_parquet(path: Path, **options: object) -> Path:
    """A text of 500 kB in 400 rows, which take a few kB as a file."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 400, pa.int32()), ["x" * 500_000])
    table = pa.table({"id": range(400), "s": text})
    pyarrow.parquet.write_table(table, path, compression="zstd", store_schema=False, **options)
    assert path.stat().st_size < 50_000
    return path


READ = """
import sys
from pathlib import Path
import pyarrow
from tests.ingest.test_hostile_files import THINGS
from penstock.ingest.formats import read_file
rows = most = 0
for batch in read_file(Path(sys.argv[1]), THINGS):
    rows += len(batch.events)
    most = max(most, sum(map(len, batch.events)))
print(rows, most, pyarrow.default_memory_pool().max_memory())
"""


def test_a_long_text_in_every_row_is_in_memory_once(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "x.parquet")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", READ, str(path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    rows, most, arrow_bytes = map(int, ran.stdout.split())
    assert rows == 400
    assert most <= row_writer.BYTES_PER_FRAME + MAX_EVENT_BYTES
    assert arrow_bytes < 50_000_000  # the rows would take two hundred million


def test_a_file_that_expands_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_writer, "MIN_EXPANDED_BYTES", 50_000_000)
    path = write_parquet(tmp_path / "x.parquet")
    seen: list[InputBatch] = []
    with pytest.raises(EventError, match=r"x\.parquet holds more than it can mean"):
        seen.extend(read_file(path, THINGS))
    assert 0 < sum(len(batch.events) for batch in seen) < 200


def test_a_row_group_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "MIN_GROUP_BYTES", 1_000_000)
    path = tmp_path / "x.parquet"
    table = pa.table({"id": [1, 2], "s": ["x" * 1_000_000, "y" * 1_000_000]})
    pyarrow.parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(EventError, match=r"row group 0 of x\.parquet .* become 2,000,"):
        batches_of(path)


def test_a_large_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "MAX_FOOTER_BYTES", 100)
    path = write_parquet(tmp_path / "x.parquet")
    with pytest.raises(EventError, match=r"the footer of x\.parquet has"):
        batches_of(path)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([[1, 2]]), "list"),
        (pa.array([{"a": 1}]), "struct"),
        (pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())), "map"),
    ],
)
def test_values_within_values(tmp_path: Path, column: pa.Array, kind: str) -> None:
    pyarrow.parquet.write_table(pa.table({"id": [1], "s": column}), tmp_path / "x.parquet")
    with pytest.raises(EventError, match="no column of a table holds what 's' holds") as caught:
        batches_of(tmp_path / "x.parquet")
    assert kind in caught.value.detail


def test_wide_values_of_fixed_size_are_read_in_small_pieces(tmp_path: Path) -> None:
    values = pa.array([b"x" * 100_000] * 100, pa.binary(100_000))
    table = pa.table({"id": range(100), "s": values})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    batches = batches_of(tmp_path / "x.parquet")
    assert sum(len(batch.events) for batch in batches) == 100
    assert max(len(batch.events) for batch in batches) <= parquet_rows.READ_BYTES // 100_000


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_row_that_is_too_large_for_an_event(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    if suffix == "csv":
        # Quotes are escaped in JSON, so the event is larger than the row.
        path.write_text("id,s\n1,ok\n2," + "\\" * 600_000 + "\n3,ok\n")
    else:
        texts = ["ok", "x" * 3_000_000, "ok"]
        pyarrow.parquet.write_table(pa.table({"id": [1, 2, 3], "s": texts}), path)
    good, bad, other = events_of(path)
    assert (decode_event(good).row["id"], decode_event(other).row["id"]) == (1, 3)
    assert len(bad) < 1000
    with pytest.raises(EventError, match="has more than 1048576 bytes"):
        decode_event(bad)


def test_a_csv_row_without_end(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,s\n1,ok\n2," + "x" * 5_000_000)
    with pytest.raises(EventError, match=r"x\.csv cannot be read"):
        batches_of(path)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (",".join(f"c{i}" for i in range(100_000)), "has a column 'c0'"),
        ("id," * 200_000 + "id", "the column 'id' twice"),
        ("x" * 2_000_000, "the first line of"),
        ('"id' + "x" * 200_000 + '",s', "cannot be read"),
    ],
)
def test_a_header_without_end(tmp_path: Path, header: str, reason: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(header + "\n1\n")
    with pytest.raises(EventError, match=reason):
        batches_of(path)


def test_rows_with_too_many_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,s\n" + "1,2,3\n" * 1000)
    batches = batches_of(path)
    assert [number for batch in batches for number in batch.numbers] == list(range(1, 1001))
    monkeypatch.setattr(csv_rows, "MAX_RAGGED_BYTES", 10_000)
    with pytest.raises(EventError, match="cannot be read") as caught:
        batches_of(path)
    assert "Expected 2 columns" in caught.value.detail


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_row_with_too_many_fields_that_is_no_text(tmp_path: Path) -> None:
    """Arrow cannot hand it over, so the file is refused; it is not lost without a word."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,s\n1,ok\n2,\xff,4\n3,ok\n")
    with pytest.raises(EventError, match="cannot be read") as caught:
        batches_of(path)
    assert "Row #3" in caught.value.detail


def test_rows_are_numbered_as_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('id,s\n1,a\n2\n3,"b\nc"\n\n4,d\n5,6,7\n8\n7,e\n')
    batches = batches_of(path)
    assert [list(batch.numbers) for batch in batches] == [[1, 3, 4, 7], [2, 5, 6]]


def test_compressed_csv_is_read_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"id,s\n" + b"1,xxxxxxxxxxxxxxxxxxxxx\n" * 100_000))
    assert sum(len(batch.events) for batch in batches_of(path, csv_rows.FORMAT)) == 100_000
    monkeypatch.setattr(row_writer, "MIN_EXPANDED_BYTES", 1_000_000)
    monkeypatch.setattr(row_writer, "MAX_EXPANSION", 10)
    with pytest.raises(EventError, match="holds more than it can mean"):
        batches_of(path, csv_rows.FORMAT)


def test_a_line_without_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 30)  # zeros that take no room
    with pytest.raises(EventError, match=r"line 1 of x\.jsonl is longer than 67108864"):
        batches_of(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    for suffix in ("jsonl", "csv", "parquet"):
        path = tmp_path / f"x.{suffix}"
        with pytest.raises(InputError, match="No such file"):
            batches_of(path)
        path.mkdir()
        with pytest.raises(InputError, match="cannot read the file"):
            batches_of(path)
        path.rmdir()
        os.mkfifo(path)
        with pytest.raises(InputError, match="not a regular file"):
            batches_of(path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@settings(max_examples=examples(60))
@given(
    st.sampled_from(["x.csv", "x.parquet", "x.jsonl"]),
    st.binary(max_size=200),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
    st.integers(0, 2000),
)
def test_no_content_crashes_a_reader(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    content: bytes,
    flips: list[tuple[int, int]],
    cut: int,
) -> None:
    """Anything, under any name; and a good Parquet file that was damaged or cut short."""
    path = tmp_path_factory.mktemp("hostile") / name
    whole = path.with_name("whole.parquet")
    pyarrow.parquet.write_table(pa.table({"id": range(50), "s": ["a"] * 50}), whole)
    damaged = bytearray(whole.read_bytes())
    for at, byte in flips:
        damaged[at % len(damaged)] = byte
    for raw in (content, b"id,s\n" + content, bytes(damaged), bytes(damaged[: -cut or None])):
        path.write_bytes(raw)
        with suppress(EventError):
            batches_of(path)
