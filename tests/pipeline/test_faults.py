"""Damaged files that a run meets: it ends with the right messages, or says what to do."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import CorruptionError, PenstockError, PipelineError
from penstock.pipeline.run import run
from penstock.pipeline.snapshot_scheduler import SnapshotScheduler
from penstock.pipeline.snapshots import compile_snapshot
from penstock.registry import Registry, rebuild
from penstock.storage import Home
from penstock.testing import LocalPipeline
from tests.pipeline.disturbing import fill, outputs

BATCH_ROWS = 50  # a run that starts over needs two batches
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@dataclass(frozen=True)
class Whole:
    """A home that was run and has more to do, and what that gives."""

    path: Path
    expected: dict[str, bytes]


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Its checkpoint has snapshots of the state as well as changes since. Its subscriptions are
    compiled, those of the home that says what is expected are not."""
    home = Home.create(tmp_path_factory.mktemp("faults") / "home")
    before = spark.conf.get(CHANGELOG)
    spark.conf.set(CHANGELOG, "false")
    fill(home, 40)
    run(home.path, once=True, batch_rows=BATCH_ROWS)
    spark.conf.set(CHANGELOG, str(before))
    fill(home, 60)
    summary = run(home.path, once=True, batch_rows=BATCH_ROWS)
    fill(home, 80)
    good = Path(shutil.copytree(home.path, home.path.with_name("good")))
    run(good, once=True, batch_rows=BATCH_ROWS)
    with Registry(home) as registry:
        compile_snapshot(home.snapshots, registry, summary.position, {})
    return Whole(home.path, outputs(Home.open(good)))


def damaged(
    whole: Path, directory: Path, pattern: str, fault: str, share: float = 0.5
) -> tuple[Path, Path]:
    """A copy in which the last file of a kind is cut off, or has a flipped bit, in its middle (or
    behind another share of it)."""
    files = [path for path in whole.glob(pattern) if path.is_file()]
    last = max(files, key=lambda path: (path.stat().st_mtime_ns, path))
    copy = Path(shutil.copytree(whole, directory / fault))
    victim = copy / last.relative_to(whole)
    content = bytearray(victim.read_bytes())
    place = int(len(content) * share)
    if fault == "cut":
        del content[place:]
    else:
        content[place] ^= 1
    victim.write_bytes(content)
    return copy, victim


def refusal(path: Path) -> PenstockError | None:
    """What a run says if it does not succeed: something that helps."""
    try:
        run(path, once=True, batch_rows=BATCH_ROWS)
    except PenstockError as error:
        told = str(error)
        assert "hint: " in told, told
        assert "org.apache" not in told, told
        assert "\tat " not in told, told
        assert len(told.splitlines()) < 15, told
        return error
    return None


def start_over(home: Path) -> None:
    """What hints about the checkpoint ask for."""
    for part in (home / "checkpoint").iterdir():
        shutil.rmtree(part) if part.is_dir() else part.unlink()


CHECKPOINT = {
    "metadata": ["cut"],
    "offsets/[0-9]*": ["cut", "flip"],
    "commits/[0-9]*": ["flip", "cut"],
    "state/0/[01]/*.changelog": ["cut", "flip"],
    "state/1/[01]/*.zip": ["cut"],
    "state/1/[01]/SSTs/*.sst": ["flip"],
    "state/0/_metadata/**/[0-9]*": ["flip"],
    "state/0/_stateSchema/**/[0-9a-f]*": ["cut"],
    "offsets/.*.crc": ["flip"],
}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", CHECKPOINT)
def test_a_damaged_checkpoint(whole: Whole, tmp_path: Path, pattern: str) -> None:
    """A run goes on and is right, or is refused: then everything but the checkpoint is as it was,
    so that starting over leads to what it leads to below."""
    before = outputs(Home.open(whole.path))
    for fault in CHECKPOINT[pattern]:
        home, _ = damaged(whole.path, tmp_path, f"checkpoint/{pattern}", fault)
        error = refusal(home)
        if error is None:
            assert outputs(Home.open(home)) == whole.expected
        else:
            assert str(home / "checkpoint") in str(error)
            assert outputs(Home.open(home)) == before


@pytest.mark.slow
def test_starting_over(whole: Whole, tmp_path: Path) -> None:
    home, _ = damaged(whole.path, tmp_path, "checkpoint/state/0/[01]/*.changelog", "cut")
    assert refusal(home) is not None
    start_over(home)
    assert refusal(home) is None
    assert outputs(Home.open(home)) == whole.expected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault"), [("catalog.db", "flip"), ("registry.db", "cut")])
def test_a_damaged_database(whole: Whole, tmp_path: Path, name: str, fault: str) -> None:
    home, _ = damaged(whole.path, tmp_path, name, fault)
    error = refusal(home)
    if error is not None:
        assert "penstock rebuild" in str(error)
        rebuild(Home.open(home))
        assert refusal(home) is None
    assert outputs(Home.open(home)) == whole.expected


SNAPSHOT = {"*/*.bin": "cut", "*.bin": "flip", "*.json": "flip"}


@pytest.mark.slow
@pytest.mark.parametrize("pattern", SNAPSHOT)
def test_a_damaged_snapshot_of_subscriptions(whole: Whole, tmp_path: Path, pattern: str) -> None:
    """It is derived: the pipeline does without it, as here without Spark."""
    path, victim = damaged(whole.path, tmp_path, f"snapshots/[0-9]*/{pattern}", SNAPSHOT[pattern])
    home = Home.open(path)
    with Registry(home) as registry:
        SnapshotScheduler(home, registry).ensure(home.log.end)  # before the first batch of a run
    LocalPipeline(home, BATCH_ROWS).run()
    assert outputs(home) == whole.expected
    assert not victim.exists()


@pytest.mark.slow
def test_a_run_on_a_damaged_snapshot(whole: Whole, tmp_path: Path) -> None:
    home, victim = damaged(whole.path, tmp_path, "snapshots/[0-9]*/*/*.bin", "cut")
    assert refusal(home) is None
    assert outputs(Home.open(home)) == whole.expected
    assert not victim.exists()


def assert_well_once_restored(whole: Whole, home: Path, victim: Path) -> None:
    shutil.copy(whole.path / victim.relative_to(home), victim)
    assert refusal(home) is None
    assert outputs(Home.open(home)) == whole.expected


@pytest.mark.slow
def test_a_damaged_log(whole: Whole, tmp_path: Path) -> None:
    """What was published is refused or left alone; there is nothing to make the log again from."""
    for fault in ("cut", "flip"):
        # Records that are still to be processed: a run does not read the others again.
        home, victim = damaged(whole.path, tmp_path, "log/*.log", fault, share=0.9)
        error = refusal(home)
        assert error is not None
        assert "backup" in str(error)
    # Spark met this one: whoever wants to know all of it finds it in a file.
    assert isinstance(error, PipelineError)
    assert "is damaged at byte" in str(error)
    log = home / "logs" / "spark.log"
    assert str(log) in error.hint
    assert "org.apache" in log.read_text()
    assert_well_once_restored(whole, home, victim)


@pytest.mark.slow
def test_the_last_messages_are_damaged(whole: Whole, tmp_path: Path) -> None:
    for fault in ("cut", "flip"):
        home, victim = damaged(whole.path, tmp_path, "messages/*.messages", fault)
        error = refusal(home)
        assert isinstance(error, CorruptionError)
        assert victim.name in str(error)
    assert_well_once_restored(whole, home, victim)
