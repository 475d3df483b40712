"""A run in processes of its own, which can be killed, and what it leaves in its home."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from penstock.errors import PipelineError
from penstock.flow.changes import Change, Op
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from penstock.testing.scenario import Define, Subscribe, Withdraw
from tests.pipeline.telling import Teller

PATIENCE_SECONDS = 600  # only to end a test that hangs
POLL_SECONDS = 0.01  # a batch takes a second

SUBSCRIPTIONS = (
    "SELECT * FROM stocks WHERE per BETWEEN 10 AND 40",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per < 50 AND rating > 3",
    "SELECT a.id, b.id AS other FROM stocks a JOIN stocks b USING (symbol) WHERE b.per > 80",
)


# -- the story ------------------------------------------------------------------------------------


TABLES = (
    Define("CREATE TABLE stocks (id INTEGER PRIMARY KEY, symbol VARCHAR, per INTEGER)"),
    Define("CREATE TABLE reviews (id INTEGER PRIMARY KEY, symbol VARCHAR, rating INTEGER)"),
)


def fill(home: Home, records: int) -> None:
    """Tables, changes of all kinds, some bad, and subscriptions that come and go between them; a
    home that has some of it gets more."""
    rng = random.Random(7)
    teller = Teller(home)
    teller.tell([] if home.log.end else TABLES)
    while home.log.end < records:
        number = home.log.end
        if number % 9 == 0:
            teller.tell([Subscribe(f"s{number}", rng.choice(SUBSCRIPTIONS))])
        if number % 41 == 0 and teller.ids:
            teller.tell([Withdraw(next(iter(teller.ids)))])
        if number % 17 == 0:
            home.log.append([(RecordKind.EVENT, b'{"table": "stocks", "op": "del')])
        teller.publish(*(some_change(rng) for _ in range(rng.randint(1, 4))))
    teller.registry.close()


def some_change(rng: random.Random) -> Change:
    """Inserts of rows that exist and deletes of rows that do not end in quarantine."""
    table, value = rng.choice([("stocks", "per"), ("reviews", "rating")])
    op = rng.choice([Op.UPSERT, Op.UPSERT, Op.INSERT, Op.DELETE])
    row: dict[str, object] = {"id": rng.randrange(60)}
    if op is not Op.DELETE:
        row |= {"symbol": rng.choice("ABCDE"), value: rng.randrange(100)}
    return Change(table, op, row)


def undisturbed(home: Home, aside: Path, batch_rows: int) -> dict[str, bytes]:
    """What all runs of a home must lead to, from a copy of it that nothing happens to. Spark itself
    adds nothing to that, so it is done without."""
    twin = Home.open(Path(shutil.copytree(home.path, aside / "undisturbed")).absolute())
    LocalPipeline(twin, batch_rows).run()
    return outputs(twin)


# -- what a home shows ----------------------------------------------------------------------------


def _last(directory: Path) -> int:
    """The number of the last batch that Spark has written down there."""
    if not directory.is_dir():
        return -1
    return max((int(p.name) for p in directory.iterdir() if p.name.isdecimal()), default=-1)


def planned(home: Home) -> int:
    return _last(home.checkpoint / "offsets")


def done(home: Home) -> int:
    return _last(home.checkpoint / "commits")


def under_way(home: Home) -> bool:
    return planned(home) > done(home)


def published(home: Home) -> int:
    return sum(1 for _ in home.messages.batches())


def staged(home: Home) -> int:
    return len(list(home.staging.glob("*.arrow")))


def outputs(home: Home) -> dict[str, bytes]:
    """All that a run makes for others, byte for byte."""
    directories = (home.messages.directory, home.quarantine.directory)
    return {path.name: path.read_bytes() for d in directories for path in d.iterdir()}


# -- the run --------------------------------------------------------------------------------------


def command(home: Home, batch_rows: int) -> list[str]:
    return [
        *(sys.executable, "-m", "penstock", "run", str(home.path), "--once"),
        *("--master", "local[2]", "--batch-rows", str(batch_rows)),
    ]


def start(home: Home, directory: Path, batch_rows: int, **environ: str) -> subprocess.Popen[bytes]:
    """A run in a session of its own, by somebody who lets everybody read what he writes; what it
    says goes to a file in the directory."""
    with (directory / "said.txt").open("ab") as said:
        return subprocess.Popen(
            command(home, batch_rows),
            env={**os.environ, "TMPDIR": str(directory), **environ},
            start_new_session=True,
            stdout=said,
            stderr=said,
            umask=0o022,
        )


def said(directory: Path) -> str:
    return (directory / "said.txt").read_text(encoding="utf-8")


def assert_java_is_missed(said: str) -> None:
    """One message about Java's end, and no trace of a library."""
    told = [line for line in said.splitlines() if not line.startswith("batch ")]
    assert [line.split(":")[0].strip() for line in told] == ["error", "detail", "hint"], said
    assert "Java process" in told[0]


def assert_nobody_else_reads(home: Home) -> None:
    for path in home.path.rglob("*"):
        assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of a run: Spark's workers are in a process group of their own."""
    for one in members(process):
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.kill()
    process.wait()


@contextmanager
def pipeline_process(
    home: Home, directory: Path, batch_rows: int, **environ: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A run that is killed at the end of the block."""
    process = start(home, directory, batch_rows, **environ)
    try:
        yield process
    finally:
        end(process)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(POLL_SECONDS)


# -- its processes --------------------------------------------------------------------------------


def members(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """All processes of the session that a run was started in."""
    return [one for one in psutil.process_iter() if _session(one.pid) == process.pid]


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def java(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return [one for one in members(process) if _command(one)[:1] == ["java"]]


def workers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes that do Spark's tasks: forked by a daemon, which has the same command."""
    daemons = [one for one in members(process) if _command(one)[-1:] == ["pyspark.worker"]]
    pids = {one.pid for one in daemons}
    return [one for one in daemons if one.ppid() in pids]


def _command(process: psutil.Process) -> list[str]:
    """The name of a process and its arguments; nothing, if it has ended."""
    try:
        return [process.name(), *process.cmdline()[1:]]
    except psutil.NoSuchProcess:  # so are those that nobody has buried yet
        return []


def driver(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return [psutil.Process(process.pid)]


VICTIMS: dict[str, Callable[[subprocess.Popen[bytes]], list[psutil.Process]]] = {
    "worker": workers,
    "java": java,
    "driver": driver,
}


def kill_one(victim: str, process: subprocess.Popen[bytes], chance: random.Random) -> bool:
    """Kill a process of that kind, once there are workers, so that it hits a batch; whether it
    did."""
    try:
        found = VICTIMS[victim](process)
        if not found or not workers(process):
            return False
        chance.choice(found).send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return False
    return True


REFUSED = PipelineError.exit_code
