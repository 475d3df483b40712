"""Explanations over the tables of a home as they were at an offset."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from penstock.errors import ChangeError, HomeError
from penstock.flow.changes import Change
from penstock.flow.events import decode_event
from penstock.flow.explain import Explanation, explain
from penstock.flow.planning import Method, better_choices, explain_plan
from penstock.flow.splitting import Filtering, filterings
from penstock.joins.decomposition.costs import SelectiveCost, UniformCost
from penstock.joins.decomposition.greedy import improvements
from penstock.registry import AnalysedStatistics, HomeOperators, Registry, StoredSubscription
from penstock.spaces import Decomposition
from penstock.storage import Home, RecordKind, load_statistics, replay_tables

_EVENTS = frozenset({RecordKind.EVENT})


def explain_change(home: Home, subscription: int, change: Change) -> Explanation:
    """Why a change would or would not reach a subscription if it were published now."""
    return _explain(home, subscription, change, home.log.end)


def explain_logged(home: Home, subscription: int, offset: int) -> Explanation:
    """Why the change at an offset did or did not reach a subscription."""
    end = home.log.end
    if 0 <= offset < home.log.compacted_to:
        raise HomeError(
            f"the change at offset {offset} is no longer in the log",
            detail=f"the log was compacted up to offset {home.log.compacted_to}",
        )
    records = home.log.read(offset, offset + 1, _EVENTS) if 0 <= offset < end else iter(())
    for record in records:
        return _explain(home, subscription, decode_event(record.body), offset)
    raise ChangeError(
        f"there is no change at offset {offset} of the log",
        detail=f"the log holds offsets 0 to {end - 1}" if end else "the log is empty",
        hint="notifications name the offset of the change that caused them",
    )


def _explain(home: Home, subscription: int, change: Change, offset: int) -> Explanation:
    registry = Registry(home)
    stored = registry.subscription(subscription)
    engine = replay_tables(home, offset).engine
    query = stored.query(registry.catalog())
    engine.learn(subscription, query, chosen_before(registry, stored, offset))
    with closing(HomeOperators(registry.catalog, home.path)) as operators:
        tables = engine.catalog, engine.rows
        found = explain(subscription, query, change, *tables, offset, lambda: operators.runtime)
    return replace(found, filters=explain_plan(engine, subscription))


def chosen_before(
    registry: Registry, stored: StoredSubscription, offset: int
) -> Decomposition | None:
    """The decomposition of a subscription according to the records before an offset."""
    replans = registry.replans(stored.id, stored.id, offset)
    return replans[-1].decomposition if replans else stored.decomposition


def reoptimised(home: Home, method: Method, *, dry_run: bool) -> list[Replanned]:
    """Find subscriptions with a cheaper decomposition and record it, unless it is a dry run. Rows
    are replayed from the log."""
    registry = Registry(home)
    engine = replay_tables(home, home.log.end).engine
    catalog = registry.catalog()
    for stored in registry.subscriptions():
        chosen = chosen_before(registry, stored, registry.applied)
        engine.learn(stored.id, stored.query(catalog), chosen)
    better = better_choices(engine, method)
    before = {number: explain_plan(engine, number) for number in better}
    engine.chosen |= better
    if better and not dry_run:
        registry.replan(better)
    return [Replanned(n, engine.query(n).sql, before[n], explain_plan(engine, n)) for n in better]


def reoptimised_as_analysed(home: Home, method: Method, *, dry_run: bool) -> list[Replanned]:
    """The same, from the statistics of the last analysis; reads no rows."""
    registry = Registry(home)
    catalog = registry.catalog()
    known = AnalysedStatistics(load_statistics(home.path), catalog)
    model = UniformCost(known) if method is Method.UNIFORM else SelectiveCost(known)
    active = registry.subscriptions()
    queries = {stored.id: stored.query(catalog) for stored in active}
    current = {stored.id: chosen_before(registry, stored, registry.applied) for stored in active}
    better = improvements(queries, current, model)
    if better and not dry_run:
        registry.replan(better)
    return [
        Replanned(
            number,
            queries[number].sql,
            tuple(filterings(queries[number], current[number], model)),
            tuple(filterings(queries[number], chosen, model)),
        )
        for number, chosen in better.items()
    ]


@dataclass(frozen=True, slots=True)
class Replanned:
    """A subscription with a new decomposition."""

    id: int
    sql: str
    before: tuple[Filtering, ...]
    after: tuple[Filtering, ...]
