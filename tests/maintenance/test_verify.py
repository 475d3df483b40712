"""A home is whole, or the file that is not is named; nothing that is wrong goes unsaid."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from penstock import Hub
from penstock.errors import HomeError, PenstockError
from penstock.maintenance import verification
from penstock.maintenance.checkpoints import _missing_tables
from penstock.maintenance.compaction import compact
from penstock.maintenance.findings import Advance, Finding, Severity
from penstock.maintenance.verification import Verdict, verify
from penstock.registry import Registry
from penstock.storage import Home, Log, RecordKind
from penstock.storage.batch_codec import encode_batch
from penstock.storage.message_log import MESSAGE_FORMAT
from penstock.testing.oracle import Oracle, comparable
from tests.maintenance.conftest import BAD, QUERIES, REVIEWS, STOCKS, tell
from tests.storage.rolling import roll_early


@contextmanager
def silent(_what: str) -> Iterator[Advance]:
    yield lambda _done, _total: None


def look(path: Path) -> Verdict:
    return verify(Home.open(path), silent)


def serious(verdict: Verdict) -> list[tuple[str, str]]:
    return [(f.where, f.what) for f in verdict.findings if f.severity is not Severity.REMARK]


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "home"))


def test_a_whole_home(home: Path) -> None:
    verdict = look(home)
    assert verdict.findings == []
    assert verdict.active == len(verdict.compared) == len(QUERIES)
    assert verdict.frontier is not None
    assert verdict.frontier.end == verdict.log_end
    kinds = {path.suffix for path in home.rglob("*")}
    assert {".log", ".messages", ".quarantine", ".bin", ".changelog", ".db"} <= kinds


@pytest.mark.slow
def test_a_sample(home: Path) -> None:
    opened = Home.open(home)
    drawn = {tuple(verify(opened, silent, sample=1, seed=seed).compared) for seed in range(20)}
    assert len(drawn) == len(QUERIES)
    assert verify(opened, silent, sample=0).compared == []


def test_what_is_not_processed_yet_is_no_difference(home: Path) -> None:
    registry = Registry(Home.open(home))
    registry.subscribe(QUERIES[0])
    Log(home / "log").append([(RecordKind.EVENT, BAD)])
    verdict = look(home)
    assert verdict.findings == []
    assert verdict.active == len(QUERIES)


def everything_known(path: Path) -> object:
    """What users can find out about a home."""
    with Hub(path) as hub:
        contents: dict[int, object] = {}
        for number, sql in hub.subscriptions().items():
            rows = comparable(row.values() for row in hub.subscription(number).content())
            contents[number] = (sql, rows)
        tables = {
            relation.name: comparable(row.values() for row in hub.rows(relation.name))
            for relation in hub.catalog
        }
        return contents, tables, hub.quarantine()


@pytest.fixture(scope="module")
def known(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    return everything_known(Path(shutil.copytree(whole, tmp_path_factory.mktemp("known") / "home")))


def assert_named_or_harmless(path: Path, damaged: Path, expected: object) -> None:
    try:
        verdict = look(path)
    except PenstockError:
        assert damaged.name == "penstock.json"  # the home cannot even be opened, and that is said
        return
    for finding in verdict.findings:
        assert finding.hint or finding.severity is Severity.REMARK
    if not serious(verdict):
        assert everything_known(path) == expected


# One pattern for each kind of file. `append.lock` has a test of its own.
KINDS = (
    "penstock.json",
    "log/*.log",
    "messages/*.messages",
    "quarantine/*.quarantine",
    "catalog.db",
    "registry.db",
    "sources.db",
    "statistics/*",
    "*.db-wal",
    "*.db-shm",
    "snapshots/*/snapshot.json",
    "snapshots/*/others.ids",
    "snapshots/*/*/manifest.json",
    "snapshots/*/*/*.bin",
    "checkpoint/**/[0-9m]*",
    "checkpoint/**/.*.crc",
)
FAULTS_OF_A_KIND = 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_and_cut_files(whole: Path, known: object, tmp_path: Path, kind: str) -> None:
    chance = random.Random(kind)
    files = sorted(path for path in whole.glob(kind) if path.is_file())
    assert files
    for number in range(FAULTS_OF_A_KIND):
        path = Path(shutil.copytree(whole, tmp_path / str(number)))
        damaged = path / chance.choice(files).relative_to(whole)
        content = bytearray(damaged.read_bytes())
        place = chance.randrange(len(content))
        if number % 3:
            content[place] ^= 1 << chance.randrange(8)
        else:
            del content[place:]
        damaged.write_bytes(content)
        assert_named_or_harmless(path, damaged, known)


@pytest.mark.slow
@pytest.mark.parametrize("directory", ["log", "messages", "quarantine", "checkpoint", "snapshots"])
def test_missing_files(whole: Path, known: object, tmp_path: Path, directory: str) -> None:
    for number, path in enumerate(sorted((whole / directory).rglob("*"))):
        if path.is_file() and path.suffix not in (".lock", ".crc"):
            copy = Path(shutil.copytree(whole, tmp_path / str(number)))
            damaged = copy / path.relative_to(whole)
            damaged.unlink()
            assert_named_or_harmless(copy, damaged, known)


def test_a_log_that_was_cut_between_two_records(home: Path) -> None:
    """Nothing in the segment shows it; nobody had processed the record."""
    log = Log(home / "log")
    last = sorted((home / "log").glob("*.log"))[-1]
    before = last.stat().st_size
    log.append([(RecordKind.EVENT, BAD)])
    with last.open("r+b") as file:
        file.truncate(before)
    ((where, what),) = serious(look(home))
    assert where == str(last)
    assert f"but {log.acknowledged} records were acknowledged" in what


def test_a_torn_tail_is_only_a_remark(home: Path) -> None:
    last = sorted((home / "log").glob("*.log"))[-1]
    with last.open("ab") as file:
        file.write(b"half a frame")
    (finding,) = look(home).findings
    assert finding.severity is Severity.REMARK
    assert "12 bytes of a write that was never acknowledged" in finding.what


def test_messages_that_say_something_else(home: Path) -> None:
    """All checksums are right, but the content is not what the SQL returns."""
    opened = Home.open(home)
    first, *_ = opened.messages.batches()
    headers = [header for header in opened.messages.batches() if opened.messages.read(header)]
    victim = headers[-1]
    for header in list(opened.messages.batches(first)):
        if header.start >= victim.start:
            (home / "messages" / f"{header.start:020d}-{header.end:020d}.messages").unlink()
    Home.open(home).messages.publish(victim, [])
    shutil.rmtree(home / "checkpoint")
    (home / "checkpoint").mkdir()
    found = serious(look(home))
    assert found
    assert all(where.startswith("subscription ") for where, _ in found)
    assert all("rows of its content: " in what for _, what in found)


def test_contents_do_not_come_from_the_checkpoint(home: Path) -> None:
    victim = home / "checkpoint" / "state" / "0" / "0" / "1.changelog"
    victim.write_bytes(victim.read_bytes()[:-1])
    verdict = look(home)
    assert [where for where, _ in serious(verdict)] == [str(victim)]
    assert len(verdict.compared) == len(QUERIES)


def test_contents_that_cannot_be_compared_do_not_count_as_compared(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Oracle.content

    def refuse_joins(oracle: Oracle, sql: str) -> object:
        if "JOIN" in sql:
            raise duckdb.NotImplementedException("no joins today")
        return content(oracle, sql)

    monkeypatch.setattr(Oracle, "content", refuse_joins)
    verdict = look(home)
    assert verdict.active == len(QUERIES)
    assert len(verdict.compared) == len(QUERIES) - 1
    (finding,) = verdict.findings
    assert "so it is not compared: " in finding.what


def test_a_damaged_archive_of_state_is_named(home: Path) -> None:
    """Whatever Python's modules make of it."""
    path = home / "checkpoint" / "state" / "0" / "0" / "1.zip"
    metadata = json.dumps({"sstFiles": [{"dfsSstFileName": "a.sst", "sizeBytes": 7}] * 40})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", f"v1\n{metadata}")
    whole = path.read_bytes()
    (path.parent / "SSTs").mkdir()
    (path.parent / "SSTs" / "a.sst").write_bytes(bytes(7))
    assert list(_missing_tables(path, "0/0")) == []
    for place in range(len(whole)):
        for bit in (0, 3, 7):
            content = bytearray(whole)
            content[place] ^= 1 << bit
            path.write_bytes(content)
            for what in _missing_tables(path, "0/0"):
                assert "1.zip" in what


def test_a_part_of_the_state_that_is_gone_altogether(home: Path) -> None:
    shutil.rmtree(home / "checkpoint" / "state" / "0" / "0")
    ((where, what),) = serious(look(home))
    assert where == str(home / "checkpoint")
    assert "state/0/0, a part of the state, is missing" in what


def test_a_lost_quarantine_file(home: Path) -> None:
    (lost,) = (home / "quarantine").glob("*.quarantine")
    lost.unlink()
    ((where, what),) = serious(look(home))
    assert where == str(home / "quarantine")
    assert "cannot be applied, but is not in quarantine" in what


def test_a_lost_base_with_nothing_behind_it(home: Path) -> None:
    """The home looks as if nothing had been processed yet; but its log is compacted."""
    shutil.rmtree(home / "checkpoint")
    (home / "checkpoint").mkdir()
    with Hub(home) as hub:
        content = hub.subscription(2).content()
    compact(Home.open(home), silent)
    (base,) = (home / "messages").iterdir()
    base.unlink()
    ((where, what),) = serious(look(home))
    assert where == str(home / "messages")
    assert "the base of the messages is missing: the log is compacted up to 29" in what
    with Hub(home) as hub:  # nothing is lost: it is computed again
        assert hub.subscription(2).content() == content
    assert serious(look(home)) == []


def test_files_that_vanish_meanwhile_are_left_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark tidies its checkpoint up while somebody looks."""
    monkeypatch.setattr(
        verification, "_checked_files", lambda home: iter([home.path / "gone", home.path])
    )
    assert serious(look(home)) == []


@pytest.mark.parametrize("name", ["log", "messages", "quarantine"])
def test_a_directory_that_vanishes_meanwhile(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def vanish(_home: Home, _seen: Callable[[Path], None]) -> list[Finding]:
        shutil.rmtree(home / name)
        return []

    monkeypatch.setattr(verification, "check_checkpoint", vanish)
    try:
        verdict = look(home)
    except HomeError:
        return
    assert serious(verdict)


def test_leftovers_are_remarks(home: Path) -> None:
    (kept,) = (home / "quarantine").glob("*.quarantine")
    last = sorted((home / "messages").iterdir())[-1]
    last.unlink()
    shutil.rmtree(home / "checkpoint")
    (home / "checkpoint").mkdir()
    (home / "checkpoint" / ".0.crc").write_bytes(b"")
    assert serious(look(home)) == []
    kept.rename(home / "quarantine" / last.with_suffix(".quarantine").name)
    remarks = {finding.what for finding in look(home).findings}
    assert "the file that it belongs to is gone" in remarks


@pytest.fixture
def rolled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose batches were rolled, messages and quarantine alike."""
    roll_early(monkeypatch, 4)
    path = tmp_path / "home"
    with Hub(path) as hub:
        hub.execute(STOCKS)
        hub.execute(REVIEWS)
        for sql in QUERIES:
            hub.subscribe(sql)
        log = Home.open(path).log
        for first in range(0, 40, 4):
            tell(hub, first)
            log.append([(RecordKind.EVENT, BAD)])
    with Hub(path):
        pass
    for name in ("messages", "quarantine"):
        assert any((path / name).glob("*.rolled"))
    return path


def test_rolled_batches_are_read_like_others(rolled: Path) -> None:
    verdict = look(rolled)
    assert verdict.findings == []
    assert len(verdict.compared) == len(QUERIES)
    assert verdict.frontier == Home.open(rolled).messages.frontier


@pytest.mark.parametrize("directory", ["messages", "quarantine"])
def test_damage_to_rolled_batches_is_named(rolled: Path, directory: str) -> None:
    chance = random.Random(directory)
    for path in sorted((rolled / directory).glob("*.rolled")):
        whole = path.read_bytes()
        for number in range(6):
            damaged = bytearray(whole)
            place = chance.randrange(len(whole))
            if number % 3:
                damaged[place] ^= 1 << chance.randrange(8)
            else:
                del damaged[place:]
            path.write_bytes(damaged)
            assert str(path) in [where for where, _ in serious(look(rolled))]
        path.write_bytes(whole)
    assert look(rolled).findings == []


def test_a_missing_rolled_file_is_named(rolled: Path) -> None:
    victim = sorted((rolled / "messages").glob("*.rolled"))[0]
    victim.unlink()
    assert "are missing" in serious(look(rolled))[0][1]


def test_what_a_crash_leaves_beside_a_rolled_file_is_a_remark(rolled: Path) -> None:
    home = Home.open(rolled)
    first = next(home.messages.batches())
    found = home.messages._files.read((first.start, first.end))
    assert found is not None
    left = home.messages._files.path((first.start, first.end))
    left.write_bytes(b"".join(map(bytes, encode_batch(MESSAGE_FORMAT, *found))))
    (finding,) = look(rolled).findings
    assert (finding.where, finding.severity) == (str(left), Severity.REMARK)
    with Hub(rolled):
        assert not left.exists()
