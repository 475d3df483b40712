"""Telling stories to a home, and reading from its message log what subscribers know."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path

from penstock import Hub, Subscription
from penstock.catalog import Outside
from penstock.client import Content, Initial, Notification
from penstock.delivery import SubscriptionBatches
from penstock.delivery.registration import registered
from penstock.flow.changes import Change
from penstock.flow.events import encode_change
from penstock.registry import Registry
from penstock.spaces import Decomposition
from penstock.sql import bind
from penstock.storage import Home, RecordKind
from penstock.testing import load_scenario
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle, comparable
from penstock.testing.scenario import (
    Bad,
    Define,
    Expect,
    Publish,
    Replan,
    Step,
    Subscribe,
    Withdraw,
)

SCENARIOS = Path(__file__).parent.parent / "fixtures" / "scenarios"

Plain = Counter[tuple[object, ...]]


def scenario_paths() -> list[Path]:
    return sorted(SCENARIOS.glob("*.scenario"))


def interleaved(paths: Iterable[Path]) -> list[Step]:
    """All scenarios at once, a step of each in turn. Their tables have different names."""
    stories = [[_renamed(step, path.stem) for step in load_scenario(path)] for path in paths]
    return [step for round_ in zip_longest(*stories) for step in round_ if step is not None]


def _renamed(step: Step, prefix: str) -> Step:
    match step:
        case Subscribe(name, sql):
            return Subscribe(f"{prefix}: {name}", sql)
        case Withdraw(name):
            return Withdraw(f"{prefix}: {name}")
        case Replan(name, plan):
            return Replan(f"{prefix}: {name}", plan)
        case Expect(name, rows):
            return Expect(f"{prefix}: {name}", rows)
    return step


@dataclass(frozen=True)
class Expected:
    """What a content is to be after the records before `position`."""

    name: str
    position: int
    rows: Plain


@dataclass
class Teller:
    """Puts a story into the log of a home, as publishers and subscribers do."""

    home: Home
    registry: Registry = field(init=False)
    ids: dict[str, int] = field(default_factory=dict)
    expected: list[Expected] = field(default_factory=list)
    bad: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registry = Registry(self.home)

    def tell(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Define(sql):
                    self.registry.define(sql)
                case Subscribe(name, sql, plan, initial):
                    chosen = None if plan is None else self._numbered(sql, plan)
                    stored = self.registry.subscribe(sql, chosen=chosen, initial=initial)
                    self.ids[name] = stored.id
                case Replan(name, plan):
                    number = self.ids[name]
                    sql = self.registry.subscription(number).sql
                    self.registry.replan({number: self._numbered(sql, plan)})
                case Withdraw(name):
                    self.registry.withdraw(self.ids.pop(name))
                case Publish(changes):
                    self.publish(*changes)
                case Bad(raw):
                    self.bad.append(raw)
                    self.home.log.append([(RecordKind.EVENT, raw)])
                case Expect(name, rows):
                    self.expected.append(Expected(name, self.home.log.end, plain(rows)))

    def _numbered(self, sql: str, plan: int) -> Decomposition:
        return numbered_decomposition(bind(sql, self.registry.catalog()), plan)

    def publish(self, *changes: Change) -> int:
        return self.home.log.append([(RecordKind.EVENT, encode_change(c)) for c in changes])

    def content(self, name: str, position: int | None = None) -> Plain | None:
        """What the subscriber knows of the records before `position`, or of all.

        None if it was not yet active then.
        """
        return content(self.home, self.registry, self.ids[name], position)


def content(
    home: Home, registry: Registry, subscription: int, position: int | None = None
) -> Plain | None:
    """Built from all notifications, each of which must fit what the ones before have led to."""
    stored = registry.subscription(subscription, withdrawn=True)
    registration = replace(registered(registry, stored), initial=Initial.CONTENT)
    built = Content(subscription, registration.query, registration.decomposition)
    active = False
    known: dict[object, dict[str, Outside]] = {}
    for header, messages in SubscriptionBatches(home.messages, registration).new():
        if position is None or header.start < position:  # what it starts with has this offset
            active = True
        before = [m for m in messages if position is None or m.position.offset < position]
        for told in built.apply(before):
            assert known.pop(told.key, None) == told.before, told
            known |= {} if told.after is None else {told.key: told.after}
    assert plain(known.values()) == plain(built.rows())
    return plain(built.rows()) if active else None


def told_to(home: Home, registry: Registry, subscription: int) -> list[Notification]:
    """What the message log tells a subscription, as `penstock tail` prints it."""
    registration = registered(registry, registry.subscription(subscription))
    client, batches = registration.new_client(), SubscriptionBatches(home.messages, registration)
    return [one for _, deliveries in batches.new() for one in client.apply(deliveries)]


def plain(rows: Iterable[dict[str, Outside]]) -> Plain:
    """Rows as a multiset of (label, value) pairs, values as the text of a scenario writes them."""
    found: Plain = Counter()
    for row in rows:
        (values,) = comparable([row.values()])
        found[tuple((label, _plain(v)) for label, v in zip(row, values, strict=True))] += 1
    return found


def values_of(rows: Plain) -> Plain:
    return Counter({tuple(v for _, v in row): count for row, count in rows.items()})


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value


class Chorus:
    """DuckDB, told the same story: what every content must be."""

    def __init__(self, oracle: Oracle, registry: Registry) -> None:
        self._oracle = oracle
        self._registry = registry
        self.sql: dict[str, str] = {}

    def tell(self, steps: Iterable[Step]) -> None:
        for step in steps:
            match step:
                case Define(sql):
                    name = sql.split()[2]
                    relation = self._registry.catalog().get(name)
                    assert relation is not None
                    self._oracle.define(relation)
                case Subscribe(name, sql):
                    self.sql[name] = sql
                case Withdraw(name):
                    del self.sql[name]
                case Publish(changes):
                    for change in changes:
                        self._oracle.apply(change)

    def contents(self) -> dict[str, Plain]:
        return {name: self.content(name) for name in self.sql}

    def content(self, name: str) -> Plain:
        rows = self._oracle.content(self.sql[name])
        return Counter({tuple(_plain(v) for v in row): count for row, count in rows.items()})


def tell_hub(hub: Hub, steps: Iterable[Step], live: dict[str, Subscription]) -> None:
    for step in steps:
        match step:
            case Define(sql):
                hub.execute(sql)
            case Subscribe(name, sql, plan):
                chosen = None if plan is None else _numbered(hub, sql, plan)
                live[name] = hub.subscribe(sql, decomposition=chosen)
            case Withdraw(name):
                hub.unsubscribe(live.pop(name))
            case Publish(changes):
                hub.apply(changes)
            case Replan(name, plan):
                hub.replan(live[name], _numbered(hub, live[name].sql, plan))
            case Bad():
                pass  # through this door it would be refused


def _numbered(hub: Hub, sql: str, plan: int) -> Decomposition:
    return numbered_decomposition(bind(sql, hub.catalog), plan)
