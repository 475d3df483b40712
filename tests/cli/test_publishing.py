"""publish."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet
import pytest

from penstock import Hub
from penstock.errors import HomeError
from penstock.ingest import file_ingest, formats, input_files, resumable_file
from penstock.ingest.formats import json_lines
from penstock.storage import Home, RecordKind
from penstock.storage.disk import NO_ROOM
from penstock.storage.interfaces import Entry
from penstock.storage.log import Log
from tests.cli.conftest import Cli, insert, lines

ROOT = Path(__file__).parent.parent.parent


def test_publish_lines(cli: Cli, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "changes.jsonl"
    file.write_text(lines(insert("stocks", id=1, symbol="GOOG"), insert("stocks", id=2)))
    ran = cli("publish", home, file)
    assert (ran.code, ran.out) == (0, "published 2 events\n")
    assert f"penstock run {home} --once" in ran.err


def test_publish_several_files_as_json(cli: Cli, home: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.ndjson"
    one.write_text(lines(insert("stocks", id=1)))
    other.write_text(lines(insert("stocks", id=2)))
    expected = {"events": 2, "log_end": 4, "being_processed": False}
    assert cli("publish", home, one, other, "--json").json == expected


def test_publish_standard_input(cli: Cli, home: Path) -> None:
    ran = cli("publish", home, "-", input=lines(insert("stocks", id=1, symbol="GOOG")))
    assert ran.out == "published 1 event\n"


def test_publish_says_nothing_of_run_where_somebody_processes(cli: Cli, home: Path) -> None:
    with Home.open(home).processing_lock("test"):
        ran = cli("publish", home, "-", input=lines(insert("stocks", id=1)))
    assert (ran.out, ran.err) == ("published 1 event\n", "")


def test_publish_csv_and_parquet(
    cli: Cli, home: Path, tmp_path: Path, process: Callable[[], None]
) -> None:
    cli("subscribe", home, "SELECT id, per FROM stocks")
    (tmp_path / "stocks.csv").write_text("id,symbol,per\n1,A,10\n2,B,20\n")
    assert cli("publish", home, tmp_path / "stocks.csv", "--table", "stocks").code == 0
    table = pa.table({"id": [2, 3], "symbol": ["B", "C"], "per": [21.0, 30.0]})
    # Its name does not say what it is.
    pyarrow.parquet.write_table(table, tmp_path / "stocks.data")
    ran = cli(
        "publish", home, tmp_path / "stocks.data", "--format", "parquet",
        "--table", "STOCKS", "--op", "upsert",
    )  # fmt: skip
    assert ran.out == "published 2 events\n"
    process()
    rows = cli("content", home, 2, "--json").json["rows"]
    assert rows == [{"id": 1, "per": 10.0}, {"id": 2, "per": 21.0}, {"id": 3, "per": 30.0}]


def test_publish_refuses_before_anything_is_appended(cli: Cli, home: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text(lines(insert("stocks", id=1)))
    assert cli("publish", home, good, tmp_path / "missing.jsonl").code == 2
    assert cli("publish", home, good, "--table", "nothing").code == 4
    assert cli("publish", home, "-", "--format", "csv", "--table", "stocks").code == 2
    assert cli("publish", home, good, "--format", "csv").code == 2
    assert cli("publish", home, good, "--op", "replace").code == 2
    assert Home.open(home).log.end == 2


def test_publish_csv_without_table(cli: Cli, home: Path, tmp_path: Path) -> None:
    (tmp_path / "stocks.csv").write_text("id\n1\n")
    ran = cli("publish", home, tmp_path / "stocks.csv")
    assert ran.code == 4
    assert "which table" in ran.err


def test_publish_needs_a_home(cli: Cli, tmp_path: Path) -> None:
    ran = cli("publish", tmp_path / "nowhere", "-", input="")
    assert ran.code == 6
    assert "penstock init" in ran.err


def test_publish_is_refused_while_too_much_waits(cli: Cli, home: Path) -> None:
    cli("publish", home, "-", input=lines(insert("stocks", id=1), insert("stocks", id=2)))
    ran = cli("publish", home, "-", "--max-backlog", "3", input=lines(insert("stocks", id=3)))
    assert ran.code == 11
    assert "4 records wait to be processed" in ran.err
    assert Home.open(home).log.end == 4


# Publishing that stops halfway


def events(home: Path) -> list[bytes]:
    kinds = frozenset({RecordKind.EVENT})
    return [record.body for record in Home.open(home).log.read(0, kinds=kinds)]


def stocks(first: int, count: int) -> str:
    return lines(*(insert("stocks", id=i, symbol="S") for i in range(first, first + count)))


def test_a_good_file_and_then_a_bad_one(cli: Cli, home: Path, tmp_path: Path) -> None:
    good, bad, other = (tmp_path / name for name in ("good.jsonl", "bad.csv", "other.csv"))
    good.write_text(stocks(0, 16))
    bad.write_text("id,colour\n1,red\n")
    other.write_text("id\n50\n")
    command = ("publish", home, good, bad, other, "--table", "stocks")
    ran = cli(*command)
    assert ran.code == 4
    assert f"in the log: all 16 events of {good} (offsets 2 to 17), none of {bad}" in ran.err
    rest = f"penstock publish {home} {bad} {other} --table stocks"
    assert f"to publish the rest: {rest}\n" in ran.err
    assert len(events(home)) == 16

    error = json.loads(cli(*command, "--json").out)["error"]
    assert error["rest"] == rest
    assert error["published"]["events"] == 16
    assert error["published"]["log_end"] == 34
    facts = [
        (one["file"], one["events"], one["first_offset"], one["end_offset"], one["complete"])
        for one in error["published"]["files"]
    ]
    assert facts == [
        (str(good), 16, 18, 34, True),
        (str(bad), 0, None, None, False),
        (str(other), 0, None, None, False),
    ]

    bad.write_text("id,symbol\n20,red\n")
    assert cli(*rest.split()[1:]).code == 0
    assert len(events(home)) == 16 + 16 + 2


def test_a_full_disk_in_the_middle_of_a_file(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "CHUNK_BYTES", 1000)
    file = tmp_path / "large.jsonl"
    file.write_text(stocks(0, 100))
    with full_disk(after=3):
        ran = cli("publish", home, file)
        assert ran.code == 6
    there = len(events(home))
    assert 0 < there < 100
    assert f"the first {there} events of {file} (offsets 2 to {there + 1})" in ran.err
    assert "try again" not in ran.err
    rest = f"penstock publish {home} {file} --skip {there}"
    assert f"make room on that disk; to publish the rest: {rest}\n" in ran.err

    with full_disk(after=2):
        ran = cli(*rest.split()[1:])
    more = len(events(home))
    assert there < more < 100
    assert f"after {there} skipped, {more - there} events" in ran.err
    assert f"--skip {more}\n" in ran.err
    assert cli("publish", home, file, "--skip", more).out == f"published {100 - more} events\n"
    assert "".join(event.decode() + "\n" for event in events(home)) == file.read_text()


def test_a_full_disk_at_once(cli: Cli, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(stocks(0, 2))
    with full_disk(after=0):
        ran = cli("publish", home, file)
    assert "nothing was appended" in ran.err
    assert "then try again" in ran.err
    assert events(home) == []


def full_disk(after: int) -> AbstractContextManager[object]:
    original, left = Log.append, [after]

    def append(self: Log, entries: Sequence[Entry]) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise HomeError("cannot append: No space left on device", hint=NO_ROOM)
        return original(self, entries)

    return mock.patch.object(Log, "append", append)


def test_more_is_left_out_than_there_is(cli: Cli, home: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(stocks(0, 2))
    ran = cli("publish", home, tmp_path / "x.jsonl", "--skip", 3)
    assert ran.code == 4
    assert "no 3 events to leave out, but 2" in ran.err


KILLED = """
import os, signal, sys
from penstock.cli.main import main
from penstock.ingest.formats import json_lines
from penstock.ingest import resumable_file
json_lines.CHUNK_BYTES = 300
original, left, before = resumable_file.append_taken, [int(sys.argv[1])], sys.argv[2] == "before"
def append(*arguments):
    left[0] -= 1
    if left[0] < 0 and before:
        os.kill(os.getpid(), signal.SIGKILL)
    offset = original(*arguments)
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return offset
resumable_file.append_taken = append
sys.argv = ["penstock", *sys.argv[3:]]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_resuming_after_a_kill(cli: Cli, home: Path, tmp_path: Path, when: str) -> None:
    file, other = tmp_path / "large.jsonl", tmp_path / "other.csv"
    file.write_text(stocks(0, 20))
    other.write_text("id\n" + "".join(f"{i}\n" for i in range(100, 105)))
    command = ["publish", str(home), str(file), str(other), "--table", "stocks", "--resume"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for countdown in (0, 1, 0):
        killing = [sys.executable, "-c", KILLED, str(countdown), when, *command]
        assert subprocess.run(killing, env=environment, check=False).returncode == -9
    there = len(events(home))
    assert there < 25
    ran = cli(*command)
    assert ran.code == 0
    expected = [*range(20), *range(100, 105)]
    assert [json.loads(event)["row"]["id"] for event in events(home)] == expected
    again = cli(*command, "--json").json
    assert (again["events"], again["events_before"]) == (0, 25)
    assert len(events(home)) == 25


def test_resuming_knows_what_a_file_is_published_as(cli: Cli, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("id\n1\n")
    command = ("publish", home, file, "--resume", "--table", "stocks")
    assert cli(*command).out == "published 1 event\n"
    assert cli(*command).out == "published 0 events; 1 event was already in the log\n"
    assert cli(*command, "--op", "delete").out == "published 1 event\n"
    file.write_text("id\n2\n")
    assert cli(*command).out == "published 1 event\n"
    assert cli("publish", home, file, "--table", "stocks").out == "published 1 event\n"
    assert len(events(home)) == 4


def test_a_file_that_changed_since_it_was_half_published(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "CHUNK_BYTES", 300)
    file = tmp_path / "x.jsonl"
    file.write_text(stocks(0, 20))
    original = file_ingest.append_taken
    left = [2]

    def append(*arguments: object) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise HomeError("cannot append: No space left on device", hint=NO_ROOM)
        return original(*arguments)  # type: ignore[arg-type]

    with mock.patch.object(resumable_file, "append_taken", append):
        ran = cli("publish", home, file, "--resume")
    assert "repeat the command" in ran.err
    there = len(events(home))
    assert 0 < there < 20
    file.write_text(stocks(0, 21))
    ran = cli("publish", home, file, "--resume")
    assert ran.code == 4
    assert f"--skip {there}" in ran.err
    assert len(events(home)) == there


def test_what_cannot_be_resumed(cli: Cli, home: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(stocks(0, 1))
    assert cli("publish", home, "-", "--resume", input="").code == 2
    assert cli("publish", home, tmp_path / "x.jsonl", "--resume", "--skip", 1).code == 2
    assert cli("publish", home, tmp_path, "--resume").code == 2


def test_a_file_that_vanishes_before_it_is_read(cli: Cli, home: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    for number, file in enumerate((one, other)):
        file.write_text(stocks(number, 1))
    original = input_files.open_input

    def vanish(path: Path) -> object:
        other.unlink(missing_ok=True)
        return original(path)

    with mock.patch.object(formats, "open_input", vanish):
        ran = cli("publish", home, one, other)
    assert ran.code == 6
    assert f"in the log: all 1 event of {one} (offsets 2 to 2), none of {other}" in ran.err


# A dry run


def test_check_appends_nothing_and_groups_reasons(cli: Cli, home: Path, tmp_path: Path) -> None:
    file, debezium = tmp_path / "stocks.csv", tmp_path / "changes.jsonl"
    rows = ["1,A,1.5", "2.0,B,2", "x,C,3", "y,C,3", "4,D,cheap", "5,E", "6,F,", "7.5,G,1"]
    file.write_text("id,symbol,per\n" + "\n".join(rows) + "\n")
    debezium.write_text(
        '\nnull\n{"ts_ms": 1}\n{"table": "stocks", "row": {"id": 1, "symbol": "A"}}\n'
        '{"table": "bonds", "row": {}}\n'
    )
    end = Home.open(home).log.end
    command = ("publish", home, file, debezium, "--table", "stocks", "--check")
    ran = cli(*command)
    assert ran.code == 4
    assert ran.out.startswith("would accept 4 of 12 events, 2 events skipped\n")
    assert "'x' is not a BIGINT" in ran.out
    found = json.loads(cli(*command, "--json").out)
    assert (found["accepted"], found["skipped"], found["refused"]) == (4, 2, 6)
    reasons = {
        one["reason"]: (one["events"], one["unit"], one["first_at"]) for one in found["reasons"]
    }
    assert reasons == {
        "column id of stocks: 'x' is not a BIGINT": (3, "row", [3, 4, 8]),
        "column per of stocks: 'cheap' is not a DOUBLE": (1, "row", [5]),
        "table stocks has no column (3 fields expected, 2 found)": (1, "row", [6]),
        "unknown table bonds": (1, "line", [5]),
    }
    assert Home.open(home).log.end == end


def test_check_of_good_and_unreadable_files(cli: Cli, home: Path, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.parquet"
    good.write_text(stocks(0, 3))
    bad.write_bytes(b"no parquet file, whatever its name says")
    assert cli("publish", home, good, "--check").out == "would accept 3 of 3 events\n"
    ran = cli("publish", home, good, bad, "--table", "stocks", "--check")
    assert ran.code == 4
    assert f"{bad} cannot be read to the end: bad.parquet cannot be read" in ran.out


def test_what_pandas_writes_is_accepted(cli: Cli, home: Path, tmp_path: Path) -> None:
    cli(
        "execute", home,
        "CREATE TABLE rides (id INTEGER PRIMARY KEY, n INTEGER, at TIMESTAMP, ok BOOLEAN)",
    )  # fmt: skip
    file = tmp_path / "rides.csv"
    file.write_text(
        "id,n,at,ok\n1,951.0,2024-05-06T07:08:09Z,True\n2,,2024-05-06 07:08:09+00:00,False\n"
    )
    assert cli("publish", home, file, "--table", "rides", "--check").code == 0
    cli("publish", home, file, "--table", "rides")
    with Hub(home) as hub:
        moment = datetime(2024, 5, 6, 7, 8, 9)
        assert hub.quarantine() == []
        assert hub.rows("rides") == [
            {"id": 1, "n": 951, "at": moment, "ok": True},
            {"id": 2, "n": None, "at": moment, "ok": False},
        ]
