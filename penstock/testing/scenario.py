"""Scenario files: tables, subscriptions and changes, with the contents they must lead to.

    CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)
    SUBSCRIBE cheap: SELECT symbol FROM stocks WHERE per < 20
    INSERT stocks {"id": 1, "symbol": "GOOG", "per": 12.5}
    EXPECT cheap
      {"symbol": "GOOG"}
    UPDATE stocks {"id": 1, "per": 25}
    EXPECT cheap
    BAD {"table": "stocks", "op": "delete", "row": {"id": 7}}
    REPLAN cheap 7
    WITHDRAW cheap

Every line is one step; indented lines belong to the EXPECT before them; `#` starts a comment. BAD
is followed by an event that cannot be applied, as a publisher might send it. REPLAN gives a
subscription another decomposition, any one, by number. The same file can be run on a Hub, on the
pipeline, and on DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from penstock.catalog import Outside
from penstock.flow.changes import Change, Op


@dataclass(frozen=True, slots=True)
class Define:
    sql: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """`plan` is the number of a decomposition; without one, it is chosen. `initial` is "content",
    or "none" for changes only."""

    name: str
    sql: str
    plan: int | None = None
    initial: str = "content"


@dataclass(frozen=True, slots=True)
class Replan:
    name: str
    plan: int


@dataclass(frozen=True, slots=True)
class Withdraw:
    name: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Changes that are applied as one batch."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Bad:
    """A publisher's bytes that must end in quarantine."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Expect:
    name: str
    rows: list[dict[str, Outside]] = field(default_factory=list)


Step: TypeAlias = Define | Subscribe | Replan | Withdraw | Publish | Bad | Expect


def load_scenario(path: Path) -> list[Step]:
    return list(parse_scenario(path.read_text(encoding="utf-8"), path.name))


def parse_scenario(text: str, name: str = "scenario") -> Iterator[Step]:
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if _is_content(line)]
    while lines:
        number, line = lines.pop(0)
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "EXPECT":
                rows = []
                while lines and lines[0][1].startswith(" "):
                    rows.append(msgspec.json.decode(lines.pop(0)[1], type=dict[str, object]))
                yield Expect(rest.strip(), rows)
            else:
                yield _step(word, rest.strip(), line)
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from error


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _step(word: str, rest: str, line: str) -> Step:
    if word == "CREATE":
        return Define(line.strip())
    if word == "SUBSCRIBE":
        name, _, sql = rest.partition(":")
        return Subscribe(name.strip(), sql.strip())
    if word == "REPLAN":
        name, _, plan = rest.rpartition(" ")
        return Replan(name.strip(), int(plan))
    if word == "WITHDRAW":
        return Withdraw(rest)
    if word == "BAD":
        return Bad(rest.encode())
    if word.lower() in set(Op):
        table, _, row = rest.partition(" ")
        values = msgspec.json.decode(row, type=dict[str, object])
        return Publish((Change(table, Op(word.lower()), values),))
    raise ValueError(f"no step starts with {word}")
