"""Operators by name: entry points, references of a home, registration by hand."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from penstock.errors import OperatorError
from penstock.operators import (
    BIGINT,
    Argument,
    FunctionOperator,
    OperatorSet,
    discover_operators,
    load_operators,
    operator,
)

RESERVED = frozenset({"LOWER", "abs"})

MODULE = """
from penstock.operators import BIGINT, Argument, Operator, operator

@operator("isEven", [Argument("n", BIGINT)])
def is_even(n):
    return n % 2 == 0

class IsOdd(Operator):
    name = "isOdd"
    arguments = (Argument("n", BIGINT),)
    def evaluate(self, rows):
        return [n % 2 == 1 for (n,) in rows]

class NeedsWord(IsOdd):
    def __init__(self, word):
        self.word = word

both = [is_even, IsOdd]
number = 7
"""


def made(name: str, version: str = "1") -> FunctionOperator:
    return operator(name, [Argument("n", BIGINT)], version=version)(lambda n: n > 0)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is imported from, with a module of operators."""
    (tmp_path / "parity_plugin.py").write_text(MODULE)
    (tmp_path / "broken_plugin.py").write_text("import nothing_of_that_name")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "parity_plugin", raising=False)
    return tmp_path


def declare(directory: Path, *lines: str, package: str = "parity_plugin") -> None:
    info = directory / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[penstock.operators]", *lines]))


def test_registering_makes_a_new_set() -> None:
    empty = OperatorSet(reserved=RESERVED)
    one = made("locIn")
    full = empty.register(one)
    assert (len(empty), len(full)) == (0, 1)
    assert full["LOCIN"] is full["locIn"] is one
    assert "locin" in full
    assert "mob" not in full
    assert full.register(one) is full


def test_names_that_clash() -> None:
    known = OperatorSet(reserved=RESERVED).register(made("locIn"))
    with pytest.raises(OperatorError, match="two operators are named locin"):
        known.register(made("LOCIN"))
    for name in ("lower", "Abs"):
        with pytest.raises(OperatorError, match="built-in function"):
            known.register(made(name))
        with pytest.raises(OperatorError, match="built-in function"):
            known.replace(made(name))


def test_a_new_version_replaces_the_old_one() -> None:
    known = OperatorSet().register(made("locIn")).register(made("other"))
    assert known.replace(made("locin", "2"))["locIn"].version == "2"
    assert known["locIn"].version == "1"
    assert len(known.replace(made("locin", "2"))) == 2


def test_missing_ones_are_named() -> None:
    known = OperatorSet().register(made("locIn"))
    known.require(["LocIn"], "subscription 6")
    with pytest.raises(OperatorError) as one:
        known.require(["locIn", "mob"], "subscription 7")
    assert one.value.primary == "operator mob is used by subscription 7 but not registered"
    assert "Hub.register_operator" in one.value.hint
    with pytest.raises(OperatorError, match="operators chase, mob are used by subscription 7"):
        known.require(["mob", "chase"], "subscription 7")


def test_what_a_home_names(plugin: Path) -> None:
    known = OperatorSet().register_named("parity_plugin:both")
    assert sorted(known) == ["iseven", "isodd"]
    assert known["isOdd"].evaluate([(3,), (4,)]) == [True, False]
    assert load_operators("parity_plugin:is_even")[0] is known["isEven"]


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ("parity_plugin", "does not name an operator"),
        (":is_even", "does not name an operator"),
        (7, "is a text"),
        ("parity_plugin:nothing", "cannot be imported"),
        ("no_such_plugin:one", "cannot be imported"),
        ("broken_plugin:one", "nothing_of_that_name"),
        ("parity_plugin:number", "7 .int. is not an operator"),
        ("parity_plugin:NeedsWord", "cannot be made"),
    ],
)
def test_references_that_lead_nowhere(plugin: Path, reference: str, what: str) -> None:
    with pytest.raises(OperatorError, match=what):
        load_operators(reference)


def test_entry_points(plugin: Path) -> None:
    """Loaded when asked for: one that cannot be imported is in nobody's way."""
    declare(
        plugin,
        "isEven = parity_plugin:is_even",
        "isOdd = parity_plugin:both",
        "broken = broken_plugin:one",
        "wrong = parity_plugin:is_even",
    )
    found = discover_operators(RESERVED)
    assert {"iseven", "isodd", "broken", "wrong"} <= set(found)
    assert "parity_plugin" not in sys.modules
    assert found["isEven"].name == "isEven"
    assert isinstance(import_module("parity_plugin"), ModuleType)
    assert found["isOdd"].name == "isOdd"
    with pytest.raises(OperatorError, match="cannot be imported"):
        found["broken"]
    with pytest.raises(OperatorError, match="named otherwise"):
        found["wrong"]
    with pytest.raises(OperatorError, match="two operators are named iseven"):
        found.register(made("isEven"))


@pytest.mark.parametrize(
    "line", ["lower = parity_plugin:is_even", "is-even = parity_plugin:is_even"]
)
def test_entry_points_with_names_that_cannot_be(plugin: Path, line: str) -> None:
    declare(plugin, line)
    with pytest.raises(OperatorError, match=r"named lower|letters, digits"):
        discover_operators(RESERVED)
