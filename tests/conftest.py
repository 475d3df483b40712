"""What all tests share: hypothesis profiles, and one Spark session for the whole run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests wait for kernels, so that they test them; also in the processes that they start. The plain
# gear, and the change from one to the other, are tested by those that set it themselves.
os.environ.setdefault("PENSTOCK_GEAR", "fast")

# Homes are written with fsync, which on a disk is most of what a test waits for, and which proves
# nothing: no test pulls the plug. So temporary files are in memory where there is room for them.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 << 30  # a whole run needs less than a quarter of it


def _in_memory() -> bool:
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(MEMORY)
    free, is_executable = found.f_bavail * found.f_frsize, not found.f_flag & os.ST_NOEXEC
    return is_executable and free >= MEMORY_BYTES  # Java loads libraries from there


if "TMPDIR" not in os.environ and _in_memory():
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # pytest has asked where it is already

# Tests run thousands of commands in process, and building the command line takes milliseconds.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

# Compiling a kernel or starting Spark inside the first example makes it look hopelessly slow, and
# stories about rare things discard many that have none: that costs time, not truth.
_unhurried: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
}

# dev: quick, and new examples every time.
settings.register_profile("dev", max_examples=10, **_unhurried)
# ci: the same examples every time, so that a red run is red again when repeated. More that never
# change would find little; `make soak` draws forty times as many, and others for each seed.
settings.register_profile("ci", max_examples=50, derandomize=True, print_blob=True, **_unhurried)
# soak: as many as patience allows; `make soak SEED=…` chooses them.
settings.register_profile("soak", max_examples=2000, print_blob=True, **_unhurried)

# The command line (--hypothesis-profile) is read later and wins.
settings.load_profile("soak" if os.environ.get("PENSTOCK_SOAK") else "dev")


def pytest_sessionstart() -> None:
    """What a batch costs grows with the number of buckets, most of which are empty in a test. Two
    hold enough rows each for kernels to have work. `penstock init`, and all soaks, make homes as
    always. (Not at import: line coverage sees only what is imported after it was configured.)"""
    from penstock.storage import Home, memory_home

    if not os.environ.get("PENSTOCK_SOAK"):
        defaults = Home.create.__kwdefaults__ or {}
        assert "buckets" in defaults
        defaults["buckets"] = 2
        mock.patch.object(memory_home, "DEFAULT_BUCKETS", 2).start()


@pytest.hookimpl(tryfirst=True)  # before -m is applied
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that takes the `spark` fixture is a spark test, whether it says so or not.

    When tests run in several processes, those that take it share one: a session is expensive. Those
    that start Spark in processes of their own share another one, so that there are two at once and
    never three. The largest groups come first; all other tests fill up what time is left.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("the session"))
        elif item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("sessions of their own"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The Spark of this test run: two cores, started by the first test that needs it."""
    from penstock.pipeline.session import spark_session

    session = spark_session("penstock-tests", master="local[2]")
    yield session
    session.stop()
