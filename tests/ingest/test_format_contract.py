"""What every input format promises. A format that is added to the package is tested here, once it
has a way to write files (`WRITERS`)."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from penstock.catalog import Column, IntegerType, Relation, StringType
from penstock.errors import EventError, InputError
from penstock.flow.changes import Op
from penstock.flow.events import decode_event
from penstock.ingest import formats
from penstock.ingest.formats import InputFormat, format_of, input_formats, read_file
from penstock.ingest.input_files import InputBatch
from penstock.storage.frames import MAX_RECORD_BYTES

THINGS = Relation("things", (Column("id", IntegerType()), Column("s", StringType())), (0,))
Rows = Sequence[dict[str, Any]]

ROWS: Rows = [{"id": i, "s": None if i % 7 == 0 else f"text {i}"} for i in range(10_000)]


def write_lines(path: Path, rows: Rows) -> None:
    events = [{"table": "things", "op": "upsert", "row": row} for row in rows]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


def write_csv(path: Path, rows: Rows) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "s"])
        writer.writerows([row["id"], row["s"]] for row in rows)


def write_parquet(path: Path, rows: Rows) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows), schema), path)


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "jsonl": write_lines,
    "csv": write_csv,
    "parquet": write_parquet,
}
HEADERS = {"jsonl": b"", "csv": b"id,s\n", "parquet": b"PAR1"}


@pytest.fixture(params=sorted(input_formats()))
def format_(request: pytest.FixtureRequest) -> InputFormat:
    return input_formats()[request.param]


def written(format_: InputFormat, directory: Path, rows: Rows = ROWS) -> Path:
    path = directory / f"things{min(format_.suffixes)}"
    WRITERS[format_.name](path, rows)
    return path


def read(path: Path, format_: InputFormat | None = None) -> list[InputBatch]:
    return list(read_file(path, THINGS, Op.UPSERT, format_))


def test_the_rows_come_out_as_they_went_in(format_: InputFormat, tmp_path: Path) -> None:
    events = [event for batch in read(written(format_, tmp_path)) for event in batch.events]
    changes = [decode_event(event) for event in events]
    assert [change.row for change in changes] == ROWS
    assert {(change.table, change.op) for change in changes} == {("things", Op.UPSERT)}


def test_reading_twice_gives_the_same_events(format_: InputFormat, tmp_path: Path) -> None:
    """Whoever resumes skips as many events as are in the log."""
    path = written(format_, tmp_path)
    first, again = ([e for batch in read(path) for e in batch.events] for _ in range(2))
    assert first == again


def test_batches_are_bounded_and_count(format_: InputFormat, tmp_path: Path) -> None:
    path = written(format_, tmp_path)
    batches = read(path)
    assert all(sum(map(len, batch.events)) <= MAX_RECORD_BYTES for batch in batches)
    numbers = [number for batch in batches for number in batch.numbers]
    assert numbers == list(range(1, len(ROWS) + 1))
    done = [batch.done_bytes for batch in batches]
    assert done == sorted(done)
    assert {batch.total_bytes for batch in batches} == {path.stat().st_size}
    assert done[-1] == path.stat().st_size
    assert len({batch.unit for batch in batches}) == 1


def test_a_file_without_events(format_: InputFormat, tmp_path: Path) -> None:
    assert [event for batch in read(written(format_, tmp_path, [])) for event in batch.events] == []


def test_names_say_the_format(format_: InputFormat, tmp_path: Path) -> None:
    for suffix in format_.suffixes:
        assert suffix == suffix.lower()
        assert suffix.startswith(".")
        assert format_of(Path(f"x{suffix}")) is format_
        assert format_of(Path(f"x{suffix.upper()}")) is format_
    other = written(format_, tmp_path).rename(tmp_path / "nameless")
    with pytest.raises(EventError, match="has no name that says"):
        read(other)
    assert sum(len(batch.events) for batch in read(other, format_)) == len(ROWS)


def test_rows_need_a_table(format_: InputFormat, tmp_path: Path) -> None:
    path = written(format_, tmp_path)
    if format_.holds_rows:
        with pytest.raises(EventError, match="which table"):
            read_file(path)
    else:
        assert sum(len(batch.events) for batch in read_file(path)) == len(ROWS)


def test_what_is_no_such_file(format_: InputFormat, tmp_path: Path) -> None:
    """Bytes of any kind are events that will be refused, or an error of ours."""
    path = tmp_path / f"x{min(format_.suffixes)}"
    for content in (b"\x00\xff" * 500, HEADERS[format_.name] + b"\xff,\x00\n", b"PAR1" * 9):
        path.write_bytes(content)
        events: list[bytes] = []
        with suppress(EventError):
            events = [event for batch in read(path) for event in batch.events]
        for event in events:
            with pytest.raises(EventError):
                decode_event(event)
    path.unlink()
    with pytest.raises(InputError):
        read(path)


def test_all_formats_are_tested() -> None:
    modules = {path.stem for path in Path(formats.__file__).parent.glob("*.py")} - {"__init__"}
    assert len(input_formats()) == len(modules) == len(WRITERS)
    suffixes = [suffix for one in input_formats().values() for suffix in one.suffixes]
    assert len(suffixes) == len(set(suffixes))


def test_a_format_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numbers.py").write_text(
        "from penstock.ingest.input_files import InputBatch\n"
        "class Numbers:\n"
        "    name, suffixes, holds_rows = 'numbers', frozenset({'.num'}), True\n"
        "    def read(self, source, relation, op):\n"
        "        for n, line in enumerate(source.file, 1):\n"
        '            event = \'{"table": "%s", "row": {"id": %d}}\' % (relation.name, int(line))\n'
        "            yield InputBatch([event.encode()], n, source.size, [n])\n"
        "FORMAT = Numbers()\n"
    )
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    for cached in (input_formats, formats.known_suffixes):
        cached.cache_clear()
    try:
        (tmp_path / "x.num").write_text("3\n5\n")
        events = [event for batch in read(tmp_path / "x.num") for event in batch.events]
        assert [decode_event(event).row for event in events] == [{"id": 3}, {"id": 5}]
    finally:
        for cached in (input_formats, formats.known_suffixes):
            cached.cache_clear()


def test_finding_a_format_loads_nothing_heavy() -> None:
    """Every `penstock publish` looks for one."""
    program = (
        "import sys; from penstock.ingest.formats import input_formats; input_formats();"
        "print(*{'pyarrow', 'numba', 'sqlglot', 'pyspark'} & sys.modules.keys())"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ""
