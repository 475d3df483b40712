"""The shape of the project: rooms import downwards, the door is pinned, documents are true."""

from __future__ import annotations

import ast
import doctest
import graphlib
import importlib
import re
from collections.abc import Container
from functools import cache
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "penstock"

# From the bottom up: a room may import those before it, never those behind it.
ROOMS = (
    "doors",
    "errors",
    "doors",
    "arguments",
    "garbage",
    "json_text",
    "packing",
    "xml_text",
    "catalog",
    "expressions",
    "predicates",
    "query",
    "messages",
    "spaces",
    "kernels",
    "documents",
    "operators",
    "sql",
    "matching",
    "joins",
    "routing",
    "network",
    "views",
    "flow",
    "client",
    "storage",
    "registry",
    "ingest",
    "delivery",
    "hub",
    "pipeline",
    "history",
    "service",
    "maintenance",
    "testing",
    "lab",
    "cli",
)
# What serves users knows nothing of these two; commands that show or measure do.
NOT_SERVING = {"testing", "lab"}
SHOWING = {
    "cli/commands/network.py",
    "cli/demo_report.py",
    "cli/paper_report.py",
    *(f"cli/commands/{one}.py" for one in ("bench", "demo", "lab")),
}
# Entered by their doors only, `penstock.ROOM`: their modules are their own affair.
DOORS = ("hub", "ingest", "maintenance", "registry", "service", "storage")
PURE = ROOMS[: ROOMS.index("storage")]
# What no pure room may know of: Spark, sockets, files, databases, processes.
IMPURE_MODULES = {"pyspark", "socket", "sqlite3", "subprocess", "pathlib", "os"}
# An index can be saved to, and mapped from, a directory that it is handed.
HANDED_A_DIRECTORY = {"matching/flatfile.py", "matching/lanes.py", "matching/snapshot.py"}
# Compiled kernels are kept on disk, and compiled by a process of their own.
KEEPS_KERNELS = {"kernels/cache.py", "kernels/cache_directory.py", "kernels/preparation.py"}
# Operators run in processes of their own; results are kept in, and looked up from, SQLite files.
RUNS_OPERATORS = {
    "operators/worker_main.py",
    "operators/worker_process.py",
    "operators/results_file.py",
    "operators/journal_file.py",
    "operators/shared_file.py",
    "operators/examples/look_up.py",
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


ENTRANCES = ("__init__", "__main__")  # they open onto everything
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if room_of(path) not in ENTRANCES]


def short(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def rooms_used(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports_of(path) if name.startswith("penstock.")}


def roots_used(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports_of(path)}


def test_rooms_import_downwards() -> None:
    for path in MODULES:
        upwards = rooms_used(path) - {*ROOMS[: ROOMS.index(room_of(path)) + 1]}
        assert not upwards, short(path)


def test_pure_rooms_do_no_input_or_output() -> None:
    excepted = HANDED_A_DIRECTORY | KEEPS_KERNELS | RUNS_OPERATORS
    for path in MODULES:
        if short(path) in excepted:
            assert not roots_used(path) & {"pyspark", "socket"}, short(path)
        elif room_of(path) in PURE:
            assert not roots_used(path) & IMPURE_MODULES, short(path)


def test_what_serves_knows_no_laboratory() -> None:
    for path in MODULES:
        if room_of(path) not in NOT_SERVING and short(path) not in SHOWING:
            assert not rooms_used(path) & NOT_SERVING, short(path)


def test_rooms_are_entered_by_their_doors() -> None:
    for path in MODULES:
        inside = tuple(f"penstock.{room}." for room in set(DOORS) - {room_of(path)})
        assert not [name for name in imports_of(path) if name.startswith(inside)], short(path)


@pytest.mark.parametrize("room", DOORS)
def test_doors_hold_what_they_offer(room: str) -> None:
    door = importlib.import_module(f"penstock.{room}")
    assert door.__all__
    for name in door.__all__:
        assert getattr(door, name) is not None
    with pytest.raises((AttributeError, ImportError)):
        door.nothing  # noqa: B018


def test_no_module_is_imported_in_a_circle() -> None:
    """Inside rooms, too, and through imports inside functions."""
    names = {_module_name(path): path for path in [*MODULES, PACKAGE / "__init__.py"]}
    imports = {name: _modules_used(path, names) - {name} for name, path in names.items()}
    sorter = graphlib.TopologicalSorter(imports)
    sorter.prepare()  # CycleError names a circle


def _module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def _modules_used(path: Path, known: Container[str]) -> set[str]:
    """The modules of the project that one imports; those that only types need count, too, except
    in a door, whose names are all there."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else str(node.module))
    return found


MAX_METHODS = 25


def test_large_classes_say_why() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                above = "\n".join(text.splitlines()[max(0, first - 4) : first - 1])
                is_explained = "# Many methods: " in above
                assert len(methods) <= MAX_METHODS or is_explained, f"{short(path)}: {node.name}"


MAX_LINES = 400


def test_modules_fit_a_head() -> None:
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES, path


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


WITH_EXAMPLES = [path for path in MODULES if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples_in_docstrings(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    failures, tried = doctest.testmod(importlib.import_module(module))
    assert not failures
    assert tried
