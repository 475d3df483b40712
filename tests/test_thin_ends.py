"""What readers, brokers and clients need loads without compilers, Arrow, SQL parsers and Spark."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from penstock import Hub

HEAVY = ("numba", "llvmlite", "pyarrow", "sqlglot", "pyspark", "pandas", "duckdb")


def loaded_by(code: str, *arguments: object) -> list[str]:
    """The heavy modules that a fresh process has loaded after running some code."""
    program = f"{code}\nimport sys\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()[-1].split()


@pytest.mark.parametrize(
    "room",
    ["client", "delivery", "messages", "operators", "service", "spaces", "predicates"],
)
def test_a_thin_room(room: str) -> None:
    """All of it: some doors load their parts late."""
    load = f"from penstock import {room} as door\n[getattr(door, name) for name in names(door)]"
    assert loaded_by(f"names = lambda door: getattr(door, '__all__', ())\n{load}") == []


def test_the_plain_gear_of_routing() -> None:
    assert loaded_by("from penstock.routing import PlainRegions, RoutingTable") == []


def test_opening_a_home() -> None:
    assert loaded_by("from penstock.storage import Home, MemoryHome") == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".delivery",
        ".ingest",
        ".joins",
        ".maintenance",
        ".operators",
        ".registry",
        ".routing",
        ".service",
        ".sql",
        ".storage",
    ],
)
def test_a_late_door_opens_onto_all_it_promises(name: str) -> None:
    """And never onto a module of the same name, whichever was loaded before."""
    door = importlib.import_module(f"penstock{name}")
    assert door.__all__
    for export in door.__all__:
        assert not isinstance(getattr(door, export), ModuleType)
        assert importlib.util.find_spec(f"{door.__name__}.{export}") is None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        door.nothing  # noqa: B018


def test_statements_without_documents_load_no_arrays() -> None:
    """numpy takes as long to load as parsing and binding a statement."""
    code = """
from penstock.catalog.catalog import Catalog
from penstock.sql import bind, parse_relation
import sys
catalog = Catalog()
catalog.add(parse_relation("CREATE TABLE t (id BIGINT PRIMARY KEY, a INTEGER)"), 0)
bind("SELECT id FROM t WHERE a > 1", catalog)
assert "numpy" not in sys.modules"""
    loaded_by(code)


def test_the_list_can_fail() -> None:
    assert "numba" in loaded_by("import penstock.joins.points")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("thin") / "home"
    with Hub(path) as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, symbol VARCHAR, per DOUBLE)")
        hub.execute("CREATE TABLE reviews (id INT PRIMARY KEY, symbol VARCHAR, rating INT)")
        hub.subscribe("SELECT * FROM stocks WHERE per BETWEEN 45 AND 70")
        hub.subscribe("SELECT * FROM stocks JOIN reviews USING (symbol) WHERE rating > 3")
        hub.insert("stocks", {"id": 1, "symbol": "A", "per": 50})
        hub.insert("reviews", {"id": 1, "symbol": "A", "rating": 4})
    return path


READ = """
import sys
from penstock.delivery import SubscriptionReader
from penstock.storage import Home
reader = SubscriptionReader(Home.open(sys.argv[1]), int(sys.argv[2]))
assert [len(news.notifications) for news in reader.new()].count(1) == 1
assert len(reader.rows()) == 1
"""
FAN_OUT = """
import sys
from penstock.delivery import FanOut
from penstock.storage import Home
fan_out = FanOut(Home.open(sys.argv[1]))
assert sum(len(cut.notifications) for cut in fan_out.new()) == 2
"""


@pytest.mark.parametrize("number", [2, 3])
def test_reading_a_subscription(home: Path, number: int) -> None:
    """Only the registry's database is needed beyond what is thin."""
    assert not loaded_by(READ, home, number)


def test_reading_many(home: Path) -> None:
    assert not loaded_by(FAN_OUT, home)
