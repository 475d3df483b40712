"""Who may use a home: its owner, or a group too; never everybody on the machine."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Hub
from penstock.ingest.ingest_ledger import FileId, IngestLedger
from penstock.maintenance.compaction import compact
from penstock.pipeline.failures import pipeline_error
from penstock.pipeline.metrics import MetricsFiles
from penstock.registry import Registry
from penstock.storage import Home, Log, RecordKind
from penstock.storage.file_access import umask_of
from penstock.storage.home_statistics import HomeStatistics, save_statistics
from penstock.storage.lost_records import accept_loss
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.maintenance.test_verify import silent
from tests.pipeline.test_metrics import some


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def use(path: Path) -> None:
    """Have every kind of file made that needs no Spark."""
    with Hub(path) as hub:
        hub.execute("CREATE TABLE stocks (id INTEGER PRIMARY KEY, per INTEGER)")
        hub.subscribe("SELECT * FROM stocks")
        Log(path / "log", segment_bytes=1).append([(RecordKind.EVENT, b"no event")])
        hub.insert("stocks", {"id": 1, "per": 1})
    home = Home.open(path)
    compact(home, silent, to=3)
    save_statistics(path, HomeStatistics(2, 0, 0, (), ()))
    MetricsFiles(home.metrics).write(some(1))
    pipeline_error(RuntimeError("no luck"), path / "logs" / "spark.log")
    IngestLedger(home).taken(FileId("a", "b"))
    home.log.roll()
    home.log.append([(RecordKind.EVENT, b"lost")])
    sorted(home.log.directory.glob("*.log"))[-1].unlink()
    accept_loss(Home.open(path))
    with Registry(Home.open(path)) as registry:
        registry.subscribe("SELECT * FROM stocks")


def modes(path: Path) -> dict[str, int]:
    found = [path, *path.rglob("*")]
    return {str(one.relative_to(path)): stat.S_IMODE(one.lstat().st_mode) for one in found}


@pytest.mark.usefixtures("umask")
def test_a_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    use(home.path)
    assert {name: oct(mode) for name, mode in modes(home.path).items() if mode & 0o077} == {}
    assert umask_of(home.path) == 0o077


@pytest.mark.usefixtures("umask")
def test_a_home_for_a_group(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home", group_access=True)
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o2770
    use(home.path)
    for name, mode in modes(home.path).items():
        path = home.path / name
        assert mode == (0o2770 if path.is_dir() else 0o660), (name, oct(mode))
    assert umask_of(home.path) == 0o007


@pytest.mark.usefixtures("umask")
def test_hubs_and_commands_make_such_homes(tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    Hub(tmp_path / "a").close()
    Hub(tmp_path / "b", group_access=True).close()
    cli("init", tmp_path / "c")
    cli("init", tmp_path / "d", "--group-access")
    found = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "abcd"]
    assert found == [0o700, 0o2770, 0o700, 0o2770]


def test_an_empty_directory_is_closed_before_anything_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    Home.create(tmp_path / "home")
    assert set(modes(tmp_path / "home").values()) <= {0o700, 0o600}


def test_homes_of_earlier_builds_stay_as_they_are(tmp_path: Path, umask: int) -> None:
    """Whoever reads one by the permissions that it has goes on reading."""
    home = Home.create(tmp_path / "home")
    for path in (home.path, *home.path.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    use(home.path)
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o755
    for name in ("log", "messages"):
        for path in (home.path / name).iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o644 & ~umask


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_somebody_else_sees_nothing(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    use(home.path)
    for above in (tmp_path, *tmp_path.parents[:3]):
        if above != Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o011)
    child = os.fork()
    if child == 0:
        os.setgid(65534)
        os.setuid(65534)
        for path in (home.path, home.log.directory):
            try:
                os.listdir(path)
            except PermissionError:
                continue
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    shutil.rmtree(home.path)
