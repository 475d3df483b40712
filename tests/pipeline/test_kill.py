"""A pipeline that is killed in the middle of batches leaves the same message log as any other."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.engine.changes import Change, Op
from penstock.log import Home, RecordKind
from penstock.pipeline.run import run
from penstock.pipeline.sink import sweep_staging
from penstock.testing.scenario import Define, Subscribe, Withdraw
from tests.pipeline.telling import Teller

KILLS = 5
BATCH_ROWS = 25
PATIENCE_SECONDS = 600  # only to end a test that hangs

PROGRAM = """
import sys
from pathlib import Path
from penstock.pipeline.run import run
from penstock.pipeline.sink import sweep_staging
run(Path(sys.argv[1]), once=True, master="local[2]", batch_rows=int(sys.argv[2]))
"""

SUBSCRIPTIONS = (
    "SELECT * FROM stocks WHERE per BETWEEN 10 AND 40",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per < 50 AND rating > 3",
    "SELECT a.id, b.id AS other FROM stocks a JOIN stocks b USING (symbol) WHERE b.per > 80",
)


def fill(home: Home, records: int = 250) -> None:
    """Tables, changes of all kinds, some bad, and subscriptions that come and go between them."""
    rng = random.Random(7)
    teller = Teller(home)
    teller.tell(
        [
            Define("CREATE TABLE stocks (id INTEGER PRIMARY KEY, symbol VARCHAR, per INTEGER)"),
            Define("CREATE TABLE reviews (id INTEGER PRIMARY KEY, symbol VARCHAR, rating INTEGER)"),
        ]
    )
    while home.log.end < records:
        number = home.log.end
        if number % 9 == 0:
            teller.tell([Subscribe(f"s{number}", rng.choice(SUBSCRIPTIONS))])
        if number % 41 == 0 and teller.ids:
            teller.tell([Withdraw(next(iter(teller.ids)))])
        if number % 17 == 0:
            home.log.append([(RecordKind.EVENT, b'{"table": "stocks", "op": "del')])
        teller.publish(*(some_change(rng) for _ in range(rng.randint(1, 4))))


def some_change(rng: random.Random) -> Change:
    """Inserts of rows that exist and deletes of rows that do not end in quarantine."""
    table, value = rng.choice([("stocks", "per"), ("reviews", "rating")])
    op = rng.choice([Op.UPSERT, Op.UPSERT, Op.INSERT, Op.DELETE])
    row: dict[str, object] = {"id": rng.randrange(60)}
    if op is not Op.DELETE:
        row |= {"symbol": rng.choice("ABCDE"), value: rng.randrange(100)}
    return Change(table, op, row)


@contextmanager
def pipeline_process(home: Home, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a process group of its own, killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(home.path), str(BATCH_ROWS)],
        env={**os.environ, "TMPDIR": str(directory)},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last(directory: Path) -> int:
    """The number of the last batch that Spark has written down there."""
    if not directory.is_dir():
        return -1
    return max((int(p.name) for p in directory.iterdir() if p.name.isdecimal()), default=-1)


def planned(home: Home) -> int:
    return last(home.checkpoint / "offsets")


def done(home: Home) -> int:
    return last(home.checkpoint / "commits")


def published(home: Home) -> int:
    return len(list(home.messages.directory.glob("*.messages")))


def state_versions(home: Home) -> int:
    return len(list(home.checkpoint.glob("state/*/*/*.changelog")))


def staged(home: Home) -> int:
    return len(list(home.staging.glob("*.arrow")))


# Where in a batch to strike: each is true from some point of a batch on.
POINTS: dict[str, tuple[Callable[[Home], int], int]] = {
    "planned": (planned, 1),
    "state written": (state_versions, 1),
    "staged": (staged, 1),
    "published": (published, 1),
    "planned, two batches later": (planned, 3),
}


def kill_at(point: str, home: Home, directory: Path) -> bool:
    """Run until a point of a batch, then kill everything; whether a batch was under way."""
    measure, increase = POINTS[point]
    sweep_staging(home.staging)
    enough = measure(home) + increase
    deadline = time.monotonic() + PATIENCE_SECONDS
    with pipeline_process(home, directory) as process:
        while measure(home) < enough:
            assert process.poll() is None, f"it ended before it was {point}"
            assert time.monotonic() < deadline, f"waited in vain until it was {point}"
            time.sleep(0.001)
    return planned(home) > done(home)


def outputs(home: Home) -> dict[str, bytes]:
    directories = (home.messages.directory, home.quarantine.directory)
    return {path.name: path.read_bytes() for d in directories for path in d.iterdir()}


@pytest.mark.slow
def test_killed_five_times_in_the_middle_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    disturbed = Home.create(tmp_path / "disturbed")
    fill(disturbed)
    shutil.copytree(disturbed.path, tmp_path / "undisturbed")
    undisturbed = Home.open(tmp_path / "undisturbed")

    hits = 0
    points = list(POINTS)
    for attempt in range(2 * KILLS):
        point = points[attempt % len(points)]
        hits += kill_at(point, disturbed, tmp_path)
        if hits == KILLS:
            break
    assert hits == KILLS
    assert 2 <= published(disturbed) < 8

    run(disturbed.path, once=True, batch_rows=BATCH_ROWS)
    run(undisturbed.path, once=True, batch_rows=BATCH_ROWS)
    assert outputs(disturbed) == outputs(undisturbed)
    assert published(disturbed) > 8
    assert list(disturbed.staging.iterdir()) == []
