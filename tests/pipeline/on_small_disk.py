"""What a run does when its disk is full, in a process that has a small one to itself."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import HomeError, PenstockError
from penstock.pipeline.run import run
from penstock.pipeline.session import spark_session
from penstock.storage import Home, RecordKind
from tests.pipeline.disturbing import fill, outputs, undisturbed

BATCH_ROWS = 25
# What is free, in pages of 4 KiB: it fails at other places each time, further on.
FREE_PAGES = (0, 4, 18, 26, 34, 42)


@contextmanager
def nearly_full(disk: Path, free_pages: int) -> Iterator[None]:
    """A disk on which a file takes all the room but a little."""
    ballast = disk / "ballast"
    ballast.write_bytes(b"")
    with ballast.open("wb") as file:
        file.write(bytes(max(0, shutil.disk_usage(disk).free - free_pages * 4096)))
    try:
        yield
    finally:
        ballast.unlink()


def refused_append(home: Home) -> str:
    """An event that does not fit is refused, and the log is as it was."""
    end = home.log.end
    try:
        home.log.append([(RecordKind.EVENT, b"x" * 1_000_000)])
    except HomeError as error:
        assert Home.open(home.path).log.end == end
        assert len(list(home.log.read(0))) == end
        return str(error)
    raise AssertionError("there was room")


def drive(disk: Path, aside: Path) -> dict[str, list[str]]:
    """Run on a disk that is fuller or less full, then with room; what was said on the way."""
    # A task that finds no room is tried twice instead of four times: every try is a new worker.
    spark_session(master="local[2,2]", log_file=aside / "spark.log")
    home = Home.create(disk / "home")
    fill(home, 120)
    expected = undisturbed(home, aside, BATCH_ROWS)
    runs, appends = [], []
    for free_pages in FREE_PAGES:
        with nearly_full(disk, free_pages):
            appends.append(refused_append(home))
            try:
                run(home.path, once=True, batch_rows=BATCH_ROWS)
            except PenstockError as error:
                runs.append(str(error))
    run(home.path, once=True, batch_rows=BATCH_ROWS)
    assert outputs(home) == expected
    assert list(home.staging.iterdir()) == []
    return {"runs": runs, "appends": appends}


if __name__ == "__main__":
    print(json.dumps(drive(Path(sys.argv[1]), Path(sys.argv[2]))))
