"""Variables in conditions: contents equal those of a plain twin that tries all substitutions."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.operators.schedules.registry import schedule_names
from tests.examples import examples
from tests.operators.evaluating import in_process
from tests.operators.samples import BINDING, PREDICATES, divisors, splits

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, m BIGINT, other BIGINT)"
Row = dict[str, int | None]
Bound = dict[str, int | None]


@dataclass(frozen=True)
class Part:
    """A condition as SQL, and what it means: for calls, the bindings of a row; for others, whether
    it holds for a substitution. None is unknown, and never holds."""

    sql: str
    names: tuple[str | int, ...] = ()
    bindings: Callable[[Row], list[tuple[int | None, ...]]] | None = None
    holds: Callable[[Row, Bound], bool | None] | None = None


def _call(
    function: Callable[..., object], column: str
) -> Callable[[Row], list[tuple[int | None, ...]]]:
    def found(row: Row) -> list[tuple[int | None, ...]]:
        value = row[column]
        return [] if value is None else function(value) or []  # type: ignore[return-value]

    return found


def calls(column: str, one: str | int, other: str | int) -> list[Part]:
    def shown(name: str | int) -> str:
        return f":{name}" if isinstance(name, str) else str(name)

    return [
        Part(f"divisors({column}, {shown(one)})", (one,), _call(divisors.function, column)),
        Part(
            f"splits({column}, {shown(one)}, {shown(other)})",
            (one, other),
            _call(splits.function, column),
        ),
    ]


def _compare(sign: str, left: int | None, right: int | None) -> bool | None:
    if left is None or right is None:
        return None
    return {"<": left < right, "=": left == right, ">": left > right, "<>": left != right}[sign]


NAMES: list[str | int] = ["x", "y", "z", 1, 2]


@st.composite
def groups(draw: st.DrawFn) -> list[Part]:
    names, columns = st.sampled_from(NAMES), st.sampled_from(["n", "m"])
    parts = [
        draw(st.sampled_from(calls(draw(columns), draw(names), draw(names))))
        for _ in range(draw(st.integers(1, 3)))
    ]
    bound = sorted({one for part in parts for one in part.names if isinstance(one, str)})
    for _ in range(draw(st.integers(0, 2)) if bound else 0):
        one, other = draw(st.sampled_from(bound)), draw(st.sampled_from(bound))
        sign, factor = draw(st.sampled_from(["<", "=", ">", "<>"])), draw(st.integers(1, 2))
        if draw(st.booleans()):
            parts.append(_constraint(one, sign, factor, other))
        else:
            parts.append(_with_column(one, sign))
    return parts


def _constraint(one: str, sign: str, factor: int, other: str) -> Part:
    def holds(_: Row, bound: Bound) -> bool | None:
        right = bound[other]
        return _compare(sign, bound[one], None if right is None else factor * right)

    return Part(f":{one} {sign} {factor} * :{other}", holds=holds)


def _with_column(one: str, sign: str) -> Part:
    return Part(f":{one} {sign} other", holds=lambda row, b: _compare(sign, b[one], row["other"]))


def is_true(parts: list[Part], row: Row) -> bool:
    """By trying every combination of bindings."""
    asked = [part for part in parts if part.bindings is not None]
    for chosen in itertools.product(*(part.bindings(row) for part in asked)):  # type: ignore[misc]
        bound: Bound = {}
        fits = True
        for part, values in zip(asked, chosen, strict=True):
            for name, value in zip(part.names, values, strict=True):
                wanted = bound.setdefault(name, value) if isinstance(name, str) else name
                # A variable that occurs once may be anything, also unknown.
                again = not isinstance(name, str) or _occurrences(asked, name) > 1
                fits = fits and not (again and _compare("=", wanted, value) is not True)
        if fits and all(p.holds(row, bound) is True for p in parts if p.holds is not None):
            return True
    return False


def _occurrences(asked: list[Part], name: str) -> int:
    return sum(part.names.count(name) for part in asked)


@pytest.fixture(autouse=True, scope="module")
def evaluated_here() -> Iterator[None]:
    with in_process():
        yield


VALUES = st.sampled_from([None, 0, 1, 2, 4, 6])


@settings(max_examples=examples(60))
@given(
    st.lists(groups(), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 3), VALUES, VALUES, VALUES), min_size=1, max_size=8),
    st.integers(0, 8),
)
def test_contents_are_what_brute_force_finds(
    wanted: list[list[Part]], changes: list[tuple[int | None, ...]], late: int
) -> None:
    with Hub() as hub:
        for one in BINDING:
            hub.register_operator(one)
        hub.execute(TABLE)
        subscriptions = {}
        rows: dict[int | None, Row] = {}
        for number, change in enumerate(changes):
            for place, parts in enumerate(wanted):
                if number == min(place * late, len(changes) - 1):
                    condition = " AND ".join(part.sql for part in parts)
                    subscriptions[place] = hub.subscribe(f"SELECT id FROM t WHERE {condition}")
            row: Row = dict(zip(("id", "n", "m", "other"), change, strict=True))
            hub.upsert("t", row)
            rows[row["id"]] = row
            for place, subscription in subscriptions.items():
                expected = {key for key, one in rows.items() if is_true(wanted[place], one)}
                assert {one["id"] for one in subscription.content()} == expected, subscription.sql


# Counting


def test_nobody_is_asked_twice(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with in_process() as counted, Hub(home) as hub:
        for one in (*PREDICATES, *BINDING):
            hub.register_operator(one)
        hub.execute(TABLE)
        hub.subscribe("SELECT id FROM t WHERE isOdd(n) AND divisors(m, :x) AND :x > 2")
        for number in range(6):
            hub.insert("t", {"id": number, "n": number, "m": number + 10})
        for number in range(6):
            hub.update("t", {"id": number, "other": number})
        hub.subscribe("SELECT id FROM t WHERE divisors(m, :y) AND :y < 2 AND isOdd(n)")
        first = Counter(counted)
        assert first
        assert set(first.values()) == {1}
        hub.update("t", {"id": 1, "n": 101})
        assert counted - first == Counter({("isOdd", "1", (101,)): 1})
        known = Counter(counted)
    with in_process() as counted, Hub(home, operators=(*PREDICATES, *BINDING)) as hub:
        hub.update("t", {"id": 1, "other": 9})
        # Schedules have learnt other things by now: they may ask other questions, none again.
        assert max((counted + known).values()) == 1


@settings(max_examples=examples(10))
@given(st.lists(groups(), min_size=1, max_size=4), st.lists(VALUES, min_size=1, max_size=6))
def test_every_schedule_finds_the_same_and_asks_nobody_twice(
    wanted: list[list[Part]], values: list[int | None]
) -> None:
    found = []
    for schedule in schedule_names():
        with in_process(schedule) as counted, Hub() as hub:
            for one in BINDING:
                hub.register_operator(one)
            hub.execute(TABLE)
            made = [
                hub.subscribe(f"SELECT id FROM t WHERE {' AND '.join(p.sql for p in parts)}")
                for parts in wanted
            ]
            for number, value in enumerate(values):
                hub.insert("t", {"id": number, "n": value, "m": number, "other": 1})
            hub.unsubscribe(made.pop())
            hub.upsert("t", {"id": 0, "n": 4, "m": 6, "other": 2})
            found.append([sorted(map(str, one.content())) for one in made])
            assert not counted or max(counted.values()) == 1
    assert all(one == found[0] for one in found)
