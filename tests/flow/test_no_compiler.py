"""Where no kernel is compiled yet, nothing waits for a compiler: the plain gear gives the same
bytes without loading one, and has kernels compiled beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from penstock.client import Initial
from penstock.flow import plan
from penstock.flow.plan import FAST, FEW_ROWS, UNTIL_COMPILED, Gear, fastest_gear
from penstock.kernels import preparation
from penstock.kernels.cache_directory import DIRECTORY_VARIABLE
from penstock.kernels.fast_gear import FAST_GEAR
from penstock.kernels.preparation import GEAR_VARIABLE, KernelSet, kernels_ready
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.flow.test_warm_up import QUERIES, TABLES, events
from tests.pipeline.test_stages import files

ROOT = Path(__file__).parents[2]
NO_COMPILER = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise MemoryError("a compiler is asked for")  # which is no fault of a record
sys.meta_path.insert(0, Refuse())
"""


@pytest.fixture
def no_kernels(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which no kernel is compiled, and nobody says which gear to use."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment[DIRECTORY_VARIABLE] = str(tmp_path / "kernels")
    del environment[GEAR_VARIABLE]
    with mock.patch.dict(os.environ, environment, clear=True):
        yield environment


def run_python(code: str, environment: dict[str, str]) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def make_home(directory: Path) -> Home:
    """Subscriptions before and after changes, some with an initial content."""
    home = Home.create(directory)
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        registry.subscribe_many([sql for sql in QUERIES for _ in range(3)], initial=Initial.NONE)
    home.log.append([(RecordKind.EVENT, json.dumps(event).encode()) for event in events()])
    with Registry(home) as registry:
        registry.subscribe_many(list(QUERIES))
    home.log.append([(RecordKind.EVENT, json.dumps(event).encode()) for event in events()])
    return home


@pytest.mark.slow
def test_the_same_messages_without_a_compiler(tmp_path: Path, no_kernels: dict[str, str]) -> None:
    home = make_home(tmp_path / "home")
    other = Home.open(Path(shutil.copytree(home.path, tmp_path / "other")))
    code = (
        "from pathlib import Path; from penstock.storage import Home\n"
        "from penstock.testing import LocalPipeline; from unittest import mock\n"
        "with mock.patch('penstock.flow.plan.start_preparation') as start:\n"
        f"    assert LocalPipeline(Home.open(Path({str(other.path)!r})), 50).run() > 1\n"
        "print(start.called)\n"
    )
    assert run_python(NO_COMPILER + code, no_kernels).split() == ["True"]
    # With the kernels of all tests, which need not be compiled again.
    with mock.patch.dict(os.environ, {GEAR_VARIABLE: "fast"}):
        os.environ.pop(DIRECTORY_VARIABLE)
        LocalPipeline(home, 50).run()
    assert files(home) == files(other)
    assert len(b"".join(files(home).values())) > 10_000


@pytest.mark.slow
def test_a_process_changes_gears_when_kernels_are_there(
    tmp_path: Path, no_kernels: dict[str, str]
) -> None:
    home = make_home(tmp_path / "home")
    other = Home.open(Path(shutil.copytree(home.path, tmp_path / "other")))
    code = f"""
import penstock.kernels.fast_gear as kernels
is_ready = False
kernels.kernels_ready = lambda _: is_ready
from pathlib import Path
from unittest import mock
from penstock.flow.plan import fastest_gear
from penstock.storage import Home
from penstock.testing import LocalPipeline
pipeline = LocalPipeline(Home.open(Path({str(other.path)!r})), 50)
with mock.patch("penstock.flow.plan.start_preparation"):
    for _ in range(2):
        pipeline.process(pipeline.planned())
assert "numba" not in sys.modules
is_ready = True
assert pipeline.run() > 0
print(fastest_gear().gear, "numba" in sys.modules)
"""
    del no_kernels[DIRECTORY_VARIABLE]  # those of all tests
    assert run_python("import sys\n" + code, no_kernels).split() == ["fast", "True"]
    with mock.patch.dict(os.environ, {GEAR_VARIABLE: "fast"}):
        os.environ.pop(DIRECTORY_VARIABLE)
        LocalPipeline(home, 50).run()
    assert files(home) == files(other)


def test_a_hub_loads_no_compiler(no_kernels: dict[str, str]) -> None:
    code = """
from penstock import Hub
hub = Hub()
hub.execute("CREATE TABLE l (id BIGINT PRIMARY KEY, name VARCHAR, v INTEGER)")
hub.execute("CREATE TABLE r (id BIGINT PRIMARY KEY, name VARCHAR, v INTEGER)")
joined = "SELECT l.id, r.id AS other FROM l JOIN r USING (name) WHERE l.v > 3 AND r.v < 5"
told = hub.subscribe(joined)
alone = hub.subscribe("SELECT id FROM l WHERE v > 3")
hub.apply([{"table": "l", "op": "insert", "row": {"id": i, "name": f"n{i % 3}", "v": i}}
           for i in range(30)])
hub.apply([{"table": "r", "op": "insert", "row": {"id": i, "name": f"n{i % 3}", "v": i}}
           for i in range(30)])
print(len(told.content()), len(alone.content()))
"""
    pairs = sum(i % 3 == k % 3 for i in range(4, 30) for k in range(5))
    assert run_python(NO_COMPILER + code, no_kernels).split() == [str(pairs), "26"]


def test_the_gear_follows_the_kernels(no_kernels: dict[str, str]) -> None:
    assert fastest_gear() == UNTIL_COMPILED
    with mock.patch.dict(os.environ, {GEAR_VARIABLE: "fast"}):
        assert fastest_gear() == FAST
    mark = preparation._mark_of(FAST_GEAR)
    assert mark is not None
    mark.touch()
    assert fastest_gear() == FAST
    with mock.patch.dict(os.environ, {GEAR_VARIABLE: "plain"}):
        assert fastest_gear().gear is Gear.PLAIN


def test_many_rows_have_kernels_compiled_and_few_do_not(no_kernels: dict[str, str]) -> None:
    started: list[KernelSet] = []
    with mock.patch.object(plan, "start_preparation", started.append):
        plan.prepare_fast_gear(fastest_gear(), FEW_ROWS)
        plan.prepare_fast_gear(FAST, 1000)
        with mock.patch.dict(os.environ, {GEAR_VARIABLE: "plain"}):
            plan.prepare_fast_gear(fastest_gear(), 1000)
        assert started == []
        plan.prepare_fast_gear(fastest_gear(), FEW_ROWS + 1)
    assert started == [FAST_GEAR]


def test_one_process_prepares_at_a_time(no_kernels: dict[str, str]) -> None:
    asked: list[KernelSet] = []
    slow = KernelSet("slow", ("kernels",), "tests.flow.test_no_compiler:unused")
    with mock.patch.object(preparation, "prepare_kernels", asked.append):
        with preparation._locked(slow) as is_mine:
            assert is_mine
            assert preparation.start_preparation(slow) is None
        assert asked == []
        preparation.start_preparation.cache_clear()
        preparation.start_preparation(slow)
        preparation.start_preparation(slow)
    assert asked == [slow]
    assert not kernels_ready(slow)
