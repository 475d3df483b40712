"""Whatever becomes of a home's files, every command succeeds or says what is wrong: no other
exception gets out."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock import Hub
from penstock.cli.failures import DAMAGED, UNEXPECTED
from penstock.cli.main import app
from penstock.errors import PenstockError
from penstock.ingest.ingest_ledger import IngestLedger
from penstock.maintenance.compaction import compact
from penstock.pipeline.metrics import MetricsFiles
from penstock.registry import Registry
from penstock.storage import Home
from tests.maintenance.conftest import QUERIES
from tests.maintenance.test_verify import silent
from tests.pipeline.test_metrics import some

# One pattern for each kind of file.
KINDS = (
    "penstock.json",
    "owner.key",
    "log/*.log",
    "log/append.lock",
    "processing.lock",
    "publishing.lock",
    "messages/*.messages",
    "messages/*.base",
    "quarantine/*.quarantine",
    "catalog.db",
    "registry.db",
    "sources.db",
    "*.db-wal",
    "*.db-shm",
    "statistics/*",
    "snapshots/*/snapshot.json",
    "snapshots/*/others.ids",
    "snapshots/*/*/manifest.json",
    "snapshots/*/*.bin",
    "snapshots/*/*/*.bin",
    "metrics/*",
    "checkpoint/metadata",
    "checkpoint/offsets/[0-9]*",
    "checkpoint/**/.*.crc",
)

Fault = Callable[[Path, random.Random], None]


def flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def scramble(path: Path, chance: random.Random) -> None:
    """A sector of noise, as a dying disk gives it."""
    content = bytearray(path.read_bytes())
    begin = chance.randrange(len(content) or 1)
    content[begin : begin + 512] = chance.randbytes(len(content[begin : begin + 512]))
    path.write_bytes(content)


def cut(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content) or 1)])


def empty(path: Path, _chance: random.Random) -> None:
    path.write_bytes(b"")


def zero(path: Path, chance: random.Random) -> None:
    """The size is there, the content is not, from some place on."""
    content = path.read_bytes()
    begin = chance.choice((0, chance.randrange(len(content) or 1)))
    path.write_bytes(content[:begin] + bytes(len(content) - begin))


def extend(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(100))


def remove(path: Path, _chance: random.Random) -> None:
    path.unlink()


def swap_kind(path: Path, chance: random.Random) -> None:
    """Another kind of file is in its place."""
    home = next(one for one in path.parents if one.name == "home")
    others = [one for one in sorted(home.rglob("*")) if one.is_file() and one.suffix != path.suffix]
    path.write_bytes(chance.choice(others).read_bytes())


def swap_same(path: Path, chance: random.Random) -> None:
    """A file of the same kind, but of another place."""
    others = [one for one in sorted(path.parent.glob(f"*{path.suffix}")) if one.is_file()]
    path.write_bytes(chance.choice(others).read_bytes())


def become_directory(path: Path, _chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


FAULTS: tuple[Fault, ...] = (
    flip, scramble, cut, empty, zero, extend, remove, swap_kind, swap_same, become_directory,
)  # fmt: skip

EVENT = '{"table": "stocks", "row": {"id": 500, "symbol": "A", "per": 20}}\n'
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("content", "2"),
    ("content", "3"),
    ("tail", "2", "--no-follow"),
    ("tail", "3", "--no-follow", "--json"),
    ("subscriptions", "--ended"),
    ("tables",),
    ("quarantine", "list"),
    ("quarantine", "show", "17"),
    ("explain", "2", EVENT),
    ("verify", "--all"),
    ("subscribe", QUERIES[0], "--lease", "10m"),
    ("renew", "2", "--lease", "10m"),
    ("publish", "-"),
    ("quarantine", "replay", "--all"),
    ("unsubscribe", "3"),
    ("reoptimise",),
    ("compact",),
    ("rebuild",),
    ("verify", "--all"),
)


@pytest.fixture(scope="session")
def all_kinds(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole home, with its first batches in a base, and metrics."""
    path = Path(shutil.copytree(whole, tmp_path_factory.mktemp("kinds") / "home"))
    home = Home.open(path)
    compact(home, silent, to=8)
    assert home.messages.base is not None
    for number in range(3):
        MetricsFiles(home.metrics).write(some(number))
    with Registry(home) as registry, closing(IngestLedger(home)):
        registry.catch_up()
        # As long as somebody has the databases open, SQLite keeps its journals beside them.
        return Path(shutil.copytree(path, path.with_name("copy") / "home"))


def arguments(home: Path, command: tuple[str, ...]) -> list[str]:
    return [command[0], str(home), *command[1:]]


def run_all(home: Path) -> Iterator[str]:
    """What goes wrong in a way it should not."""
    for command in COMMANDS:
        ended = CliRunner().invoke(app, arguments(home, command), input=EVENT)
        said = ended.output
        if ended.exit_code == UNEXPECTED or "Traceback" in said or not said.strip():
            yield f"{command[:2]}: {ended.exit_code}: {said[:500]!r} {ended.exception!r}"
        if command[0] == "unsubscribe":
            try:
                with Hub(home) as hub:
                    hub.insert("stocks", {"id": 501, "symbol": "A", "per": 20})
                    for number in hub.subscriptions():
                        hub.subscription(number).content()
            except PenstockError:
                pass
            except Exception as error:  # noqa: BLE001 - what this is about
                yield f"Hub: {error!r}"


def test_a_whole_home(all_kinds: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(all_kinds, tmp_path / "home"))
    for command in COMMANDS:
        ended = CliRunner().invoke(app, arguments(home, command), input=EVENT)
        assert ended.exit_code == 0, (command, ended.output)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_damage(all_kinds: Path, tmp_path: Path, kind: str, fault: Fault) -> None:
    chance = random.Random(f"{kind} {fault.__name__}")
    files = sorted(path for path in all_kinds.glob(kind) if path.is_file())
    assert files
    home = Path(shutil.copytree(all_kinds, tmp_path / "home"))
    victim = home / chance.choice(files).relative_to(all_kinds)
    fault(victim, chance)
    assert list(run_all(home)) == []


NOT_FOUND = {
    "statistics/*": {remove},  # nobody needs them
    "checkpoint/commits/[0-9]*": {remove},  # the batch is computed again, and found published
}
"""Faults that leave nothing to find."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "owner.key",
        "log/*.log",
        "messages/*.messages",
        "messages/*.base",
        "quarantine/*.quarantine",
        "statistics/*",
        "snapshots/*/snapshot.json",
        "snapshots/*/*/manifest.json",
        "snapshots/*/*.bin",
        "snapshots/*/*/*.bin",
        "checkpoint/metadata",
        "checkpoint/offsets/[0-9]*",
        "checkpoint/commits/[0-9]*",
        "checkpoint/**/.*.crc",
    ],
)
def test_verify_finds_every_fault(all_kinds: Path, tmp_path: Path, kind: str) -> None:
    """In files with checksums, whatever the fault is, unless it leaves the file as it was."""
    for fault in FAULTS:
        home = Path(shutil.copytree(all_kinds, tmp_path / fault.__name__ / "home"))
        victim = sorted(path for path in home.glob(kind) if path.is_file())[0]
        before = victim.read_bytes()
        fault(victim, random.Random(f"{kind} {fault.__name__}"))
        is_same = victim.is_file() and victim.read_bytes() == before
        found = not is_same and fault not in NOT_FOUND.get(kind, ())
        ended = CliRunner().invoke(app, ["verify", str(home), "--all"])
        assert ended.exit_code == (DAMAGED if found else 0), (fault.__name__, ended.output)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize("name", ["log/append.lock", "processing.lock", "publishing.lock"])
def test_verify_finds_what_is_in_the_place_of_a_lock(
    all_kinds: Path, tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    home = Path(shutil.copytree(all_kinds, tmp_path / "home"))
    (home / name).unlink(missing_ok=True)
    assert CliRunner().invoke(app, ["verify", str(home)]).exit_code == 0  # it is made again
    make(home / name)
    ended = CliRunner().invoke(app, ["verify", str(home)])
    assert ended.exit_code == DAMAGED
    assert name in ended.stdout


def test_verify_finds_a_damaged_mark(all_kinds: Path, tmp_path: Path) -> None:
    """Of what was acknowledged: it is what tells a lost end from a shorter log."""
    home = Path(shutil.copytree(all_kinds, tmp_path / "home"))
    mark = home / "log/append.lock"
    for content in (b"\1" + mark.read_bytes()[1:], mark.read_bytes()[:5]):
        mark.write_bytes(content)
        ended = CliRunner().invoke(app, ["verify", str(home)])
        assert ended.exit_code == DAMAGED
        assert "append.lock" in ended.stdout


def test_verify_names_derived_files_that_are_gone(all_kinds: Path, tmp_path: Path) -> None:
    """They are made again by whoever needs them, so that is no damage; but it is said."""
    home = Path(shutil.copytree(all_kinds, tmp_path / "home"))
    for path in home.glob("*.db*"):
        path.unlink()
    ended = CliRunner().invoke(app, ["verify", str(home), "--all"])
    assert ended.exit_code == 0
    assert "catalog.db: it is not there" in ended.stdout
    assert "registry.db: it is not there" in ended.stdout


def test_a_checkpoint_without_any_checksums_is_not_damaged(all_kinds: Path, tmp_path: Path) -> None:
    """Not every file system of a cluster has them."""
    home = Path(shutil.copytree(all_kinds, tmp_path / "home"))
    for path in home.glob("checkpoint/**/.*.crc"):
        path.unlink()
    ended = CliRunner().invoke(app, ["verify", str(home)])
    assert ended.exit_code == 0
    assert "no checksum beside it" in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["log", "messages", "quarantine", "checkpoint", "staging", "snapshots", "metrics"]
)
@pytest.mark.parametrize("how", ["missing", "a file", "empty"])
def test_directories(all_kinds: Path, tmp_path: Path, name: str, how: str) -> None:
    home = Path(shutil.copytree(all_kinds, tmp_path / "home"))
    shutil.rmtree(home / name)
    if how == "a file":
        (home / name).write_text("no directory")
    elif how == "empty":
        (home / name).mkdir()
    assert list(run_all(home)) == []
