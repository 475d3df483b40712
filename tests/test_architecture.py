"""The shape of the project: rooms import downwards, the door is pinned, documents are true."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "penstock"

# From the bottom up: a room may import those before it, never those behind it.
ROOMS = (
    "errors",
    "arguments",
    "packing",
    "catalog",
    "predicates",
    "sql",
    "messages",
    "matching",
    "joins",
    "routing",
    "network",
    "engine",
    "client",
    "log",
    "registry",
    "sources",
    "subscription",
    "hub",
    "pipeline",
    "history",
    "testing",
    "lab",
    "operate",
    "cli",
)
PURE = ROOMS[: ROOMS.index("log")]
# What no pure room may know of: Spark, sockets, files, databases, processes.
IMPURE_MODULES = {"pyspark", "socket", "sqlalchemy", "sqlite3", "subprocess", "pathlib", "os"}
# An index can be saved to, and mapped from, a directory that it is handed.
HANDED_A_DIRECTORY = {"matching/flatfile.py", "matching/lanes.py", "matching/snapshot.py"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


DOORS = ("__init__", "__main__")  # they open onto everything
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if room_of(path) not in DOORS]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_downwards(path: Path) -> None:
    room = room_of(path)
    allowed = {*ROOMS[: ROOMS.index(room) + 1]}
    used = {name.split(".")[1] for name in imports_of(path) if name.startswith("penstock.")}
    assert used <= allowed


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_pure_rooms_do_no_input_or_output(path: Path) -> None:
    if str(path.relative_to(PACKAGE)) in HANDED_A_DIRECTORY:
        assert not {name.split(".")[0] for name in imports_of(path)} & {"pyspark", "socket"}
    elif room_of(path) in PURE:
        assert not {name.split(".")[0] for name in imports_of(path)} & IMPURE_MODULES


def test_the_public_door() -> None:
    assert penstock.__all__ == [
        "Change",
        "Explanation",
        "Hub",
        "Notification",
        "Op",
        "PenstockError",
        "Subscription",
    ]


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "README.md"])
def test_every_path_a_document_names_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    paths = re.findall(r"`((?:penstock|tests|docs|scripts)/[\w./-]*)`", text)
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert paths
    assert not missing


@pytest.mark.parametrize(
    "module", ["penstock.hub", "penstock.predicates.intervals"], ids=lambda name: name
)
def test_examples_in_docstrings(module: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(module))
    assert not failures
