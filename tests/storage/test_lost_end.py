"""Records that were acknowledged and are gone: nobody goes on as if they had never been."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from penstock import Hub
from penstock.errors import CorruptionError
from penstock.ingest.ingest_ledger import FileId, IngestLedger, IngestRecord, encode_taken
from penstock.maintenance.compaction import compact
from penstock.pipeline.snapshots import compile_snapshot
from penstock.registry import Registry, rebuild
from penstock.storage import BatchHeader, Home, Log, Record, RecordKind
from penstock.storage.file_store import LocalFiles
from penstock.storage.lost_records import accept_loss
from tests.maintenance.test_verify import look, serious, silent
from tests.storage.rolling import roll_early
from tests.storage.test_lost_end_of_log import EVENT, drop_all, fill, segments

# What else of a home remembers


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A home with everything that follows the log: 9 records, all processed."""
    path = tmp_path / "home"
    with Hub(path) as hub:
        hub.execute("CREATE TABLE stocks (id INTEGER PRIMARY KEY, per INTEGER)")
        hub.subscribe("SELECT * FROM stocks WHERE per < 50")
        for number in range(5):
            hub.insert("stocks", {"id": number, "per": 10 * number})
        late = hub.subscribe("SELECT * FROM stocks WHERE per > 30")
        assert late.id == 7
    home = Home.open(path)
    home.log.append([encode_taken(FileId("a", "0" * 64), IngestRecord(0, complete=True))])
    with closing(IngestLedger(home)) as ledger:
        ledger.taken(FileId("a", "0" * 64))
    with Hub(path):
        pass
    with Registry(home) as registry:
        compile_snapshot(home.snapshots, registry, 9, {})
    return path


def shorten(path: Path, end: int) -> None:
    """The log ends at an offset, as if restored from an older backup, its mark with it."""
    whole = Home.open(path).log
    entries = [(record.kind, record.body) for record in whole.read(0, end)]
    shutil.rmtree(path / "log")
    (path / "log").mkdir()
    log = Log(path / "log")
    for entry in entries:
        log.append([entry])


FOLLOWING = {"messages", "quarantine", "registry", "sources", "catalog", "snapshots"}
WITNESSES = {
    "messages": ("messages", "quarantine"),
    "registry": ("registry.db",),
    "sources": ("sources.db",),
    "catalog": ("catalog.db",),
    "snapshots": ("snapshots",),
}


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("witness", WITNESSES)
def test_a_log_older_than_what_was_made_of_it(used: Path, witness: str, mark: bool) -> None:
    """One witness is enough, whether the log remembers anything itself or not."""
    shorten(used, 4)
    for path in used.iterdir():
        if path.name.split(".")[0] in FOLLOWING:
            if path.name.startswith(WITNESSES[witness]):
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            if path.name in ("messages", "quarantine", "snapshots"):
                path.mkdir()
    if not mark:
        Home.open(used).log.lock_path.unlink()
    before = {p: p.read_bytes() for p in sorted((used / "log").glob("*.log"))}
    for use in (
        lambda: Home.open(used).log.append([(EVENT, b"{}")]),
        lambda: Hub(used).close(),
        lambda: compact(Home.open(used), silent),
    ):
        with pytest.raises(CorruptionError, match="the log ends at offset 4, but") as caught:
            use()
        assert "restore the log from a backup" in caught.value.hint
    assert {p: p.read_bytes() for p in sorted((used / "log").glob("*.log"))} == before


def test_the_list_of_taken_files_does_not_know_more_than_the_log(used: Path) -> None:
    shorten(used, 4)
    with closing(IngestLedger(Home.open(used))) as ledger, pytest.raises(CorruptionError):
        ledger.taken(FileId("a", "0" * 64))


# Going on without them


def test_accepting_the_loss(used: Path) -> None:
    """What survived is delivered, offsets are not given out twice, and everything agrees."""
    with Hub(used) as hub:
        expected = [row for row in hub.rows("stocks") if row["id"] in (0, 1)]
    shorten(used, 4)
    loss = accept_loss(Home.open(used))
    assert (loss.start, loss.end) == (4, 9)
    rebuild(Home.open(used))
    with Hub(used) as hub:
        assert hub.rows("stocks") == expected
        assert hub.subscription(1).content() == expected
        assert sorted(hub.subscriptions()) == [1], "the later one was lost"
        assert hub.insert("stocks", {"id": 7, "per": 40}) == 9
        assert hub.subscription(1).content() == [*expected, {"id": 7, "per": 40}]
    log = Home.open(used).log
    assert list(log.read(4, 9)) == [Record(n, RecordKind.LOST, b"") for n in range(4, 9)]
    assert serious(look(used)) == []


def test_accepting_the_loss_of_a_part_of_a_rolled_file(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches before the loss are written as files of their own."""
    roll_early(monkeypatch, 2)
    with Hub(used) as hub:
        for number in range(20, 24):
            hub.insert("stocks", {"id": number, "per": 40})
        end = hub.insert("stocks", {"id": 24, "per": 40})
    assert list((used / "messages").glob("*.rolled"))
    kept = end - 2
    shorten(used, kept)
    loss = accept_loss(Home.open(used))
    assert (loss.start, loss.end) == (kept, end + 1)
    rebuild(Home.open(used))
    with Hub(used) as hub:
        ids = [row["id"] for row in hub.rows("stocks")]
        assert [number for number in ids if number not in range(20)] == [20, 21]
        assert [row["id"] for row in hub.subscription(1).content()] == ids
    assert serious(look(used)) == []


def test_accepting_a_loss_that_nobody_had_processed(used: Path) -> None:
    with Registry(Home.open(used)) as registry:
        registry.catch_up()
    home = Home.open(used)
    batches = sorted(home.messages.directory.iterdir())
    (segment,) = segments(home.log.directory)
    size = segment.stat().st_size
    home.log.append([(EVENT, b"{}")] * 3)
    os.truncate(segment, size)
    loss = accept_loss(Home.open(used))
    assert (loss.start, loss.end) == (9, 12)
    assert loss.batches == 0
    assert sorted(home.messages.directory.iterdir()) == batches
    with Hub(used) as hub:
        assert hub.insert("stocks", {"id": 7, "per": 40}) == 12
    assert serious(look(used)) == []


def test_what_is_put_aside_is_kept(used: Path) -> None:
    shorten(used, 4)
    messages = {p.name: p.read_bytes() for p in (used / "messages").iterdir()}
    loss = accept_loss(Home.open(used))
    kept = {p.name: p.read_bytes() for p in (used / "messages").iterdir()}
    aside = {p.name: p.read_bytes() for p in loss.aside.rglob("*.messages")}
    assert loss.batches == len(aside) > 0
    assert kept | aside == messages


def test_a_torn_tail_that_was_acknowledged_is_kept(used: Path) -> None:
    """Nearly all of the lost records may be in it."""
    (segment,) = segments(used / "log")
    Home.open(used).log.append([(EVENT, bytes(1000))])
    os.truncate(segment, segment.stat().st_size - 5)
    torn = segment.read_bytes()
    loss = accept_loss(Home.open(used))
    assert (loss.start, loss.end) == (9, 10)
    assert (loss.aside / segment.name).read_bytes() == torn


def test_what_an_attempt_put_aside_outlives_the_next(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the torn tail was cut off; then a reader makes the databases again."""
    (segment,) = segments(used / "log")
    Home.open(used).log.append([(EVENT, bytes(1000))])
    os.truncate(segment, segment.stat().st_size - 5)
    torn, known = segment.read_bytes(), (used / "registry.db").read_bytes()
    with monkeypatch.context() as crash:
        crash.setattr(LocalFiles, "append", _die)
        with pytest.raises(KeyboardInterrupt):
            accept_loss(Home.open(used))
    assert len(segment.read_bytes()) < len(torn)
    with Registry(Home.open(used)) as registry:
        registry.catch_up()
    assert (used / "registry.db").exists()
    loss = accept_loss(Home.open(used))
    assert (loss.start, loss.end) == (9, 10)
    aside = {path.name: path.read_bytes() for path in loss.aside.iterdir() if path.is_file()}
    assert aside[segment.name] == torn
    assert aside["registry.db"] == known


def _die(*_arguments: object) -> None:
    raise KeyboardInterrupt


def test_nothing_to_accept(used: Path) -> None:
    before = {p: p.read_bytes() for p in (used / "log").iterdir()}
    loss = accept_loss(Home.open(used))
    assert loss.start == loss.end == 9
    assert {p: p.read_bytes() for p in (used / "log").iterdir()} == before


def test_a_loss_before_a_base_cannot_be_accepted(used: Path) -> None:
    """The messages of a compacted home start with contents: they cannot be cut in their middle."""
    compact(Home.open(used), silent)
    drop_all(used / "log")
    with pytest.raises(CorruptionError, match="compacted") as caught:
        accept_loss(Home.open(used))
    assert "backup" in caught.value.hint


def test_an_absurd_witness_is_not_believed_without_limit(used: Path) -> None:
    with closing(sqlite3.connect(used / "registry.db")) as database, database:
        database.execute("UPDATE progress SET applied = 1 << 60")
    with pytest.raises(CorruptionError, match="too many"):
        accept_loss(Home.open(used))
    assert Home.open(used).log.end == 9


def test_the_command(used: Path) -> None:
    from typer.testing import CliRunner

    from penstock.cli.main import app

    shorten(used, 4)
    refused = CliRunner().invoke(app, ["rebuild", str(used)])
    assert refused.exit_code == 7
    assert "--accept-loss" in refused.stderr
    done = CliRunner().invoke(app, ["rebuild", str(used), "--accept-loss"])
    assert done.exit_code == 0, done.stderr
    assert "lost: 5 records, from offset 4 on" in done.stdout
    assert CliRunner().invoke(app, ["verify", str(used), "--all"]).exit_code == 0
    again = CliRunner().invoke(app, ["rebuild", str(used), "--accept-loss", "--json"])
    assert '"lost": 0' in again.stdout


def test_the_processing_goes_on_after_an_unacknowledged_torn_tail(used: Path) -> None:
    (segment,) = segments(used / "log")
    with segment.open("ab") as file:
        file.write(b"half of a frame")
    with Hub(used) as hub:
        assert hub.insert("stocks", {"id": 7, "per": 40}) == 9


def test_a_batch_beyond_the_log_is_a_witness_by_its_name(tmp_path: Path) -> None:
    """Even if it is damaged."""
    home = Home.create(tmp_path / "home")
    fill(home.log, 2)
    home.messages.publish(BatchHeader(0, 4, 0), [])
    (batch,) = home.messages.directory.iterdir()
    batch.write_bytes(b"")
    drop_all(home.log.directory)
    home.log.lock_path.unlink()
    with pytest.raises(CorruptionError, match="the log ends at offset 0, but 4 records"):
        Home.open(home.path).log.append([(EVENT, b"next")])
