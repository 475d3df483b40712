"""Index snapshots: whoever starts from one knows what whoever starts from nothing knows."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import HomeError
from penstock.flow.kinds import Span
from penstock.joins.selections import NewSelections
from penstock.pipeline import snapshot_scheduler as keeping
from penstock.pipeline.snapshot_scheduler import SnapshotScheduler
from penstock.pipeline.snapshots import (
    all_snapshots,
    compile_snapshot,
    discard_damaged,
    is_sound,
    newest,
)
from penstock.pipeline.worker_index import WorkerIndex
from penstock.registry import Registry
from penstock.storage import Home
from penstock.testing.decompositions import numbered_decomposition
from tests.examples import examples

TABLES = (
    "CREATE TABLE stocks (id INTEGER PRIMARY KEY, symbol VARCHAR, per INTEGER)",
    "CREATE STREAM quotes (symbol VARCHAR, price DOUBLE)",
)
QUERIES = (
    "SELECT * FROM stocks WHERE per BETWEEN 10 AND 40",
    "SELECT * FROM stocks WHERE per < 5 OR symbol = 'A'",
    "SELECT symbol FROM quotes WHERE price > 3.5",
    "SELECT * FROM stocks JOIN quotes USING (symbol) WHERE per > 2",
    (
        "SELECT * FROM stocks AS s JOIN quotes USING (symbol) JOIN stocks AS t USING (symbol) "
        "WHERE s.per > 2 AND price > 1.5 AND t.id < 9"
    ),
    "SELECT * FROM quotes",
)
STOCKS = [(i, symbol, per) for i, (symbol, per) in enumerate([("A", 7), ("B", 20), (None, 3)])]
QUOTES = [("A", 4.0), ("B", 1.0), (None, None)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
    return home


def known(view: WorkerIndex, since: int) -> object:
    """What a view says of the rows, and of the subscriptions that are new."""
    span = Span(view.active, view.active, view.active, 0, since)
    arrivals = view.new_points(span)
    told = {}
    for name, rows in (("stocks", STOCKS), ("quotes", QUOTES)):
        selections = view.index.selections(view.catalog(view.active)[name])
        if selections is not None:
            any_match = selections.any_match(rows).tolist()
            told[name] = any_match, [selections.mentioned(row) for row in rows]
    new = {}
    for one in arrivals.selections:
        rows = STOCKS if one.relation.name == "stocks" else QUOTES
        ids = one.selecting(rows)
        assert one.any_match(rows).tolist() == [found != () for found in ids]
        new[one.relation.name] = len(one), ids
    joined = sorted(
        (points.space.name, begin, sorted(points.ids)) for points, begin, _ in arrivals.semijoins
    )
    edges = [edge.name for edge in arrivals.edges]
    return told, new, joined, edges


steps = st.lists(
    st.sampled_from(["subscribe", "withdraw", "replan", "snapshot", "look", "lose"]), max_size=14
)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(steps, st.randoms(use_true_random=False))
def test_a_view_from_a_snapshot_is_like_any_other(
    tmp_path_factory: pytest.TempPathFactory, story: list[str], chance: object
) -> None:
    home = Home.create(tmp_path_factory.mktemp("homes") / "home")
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        follower, ids = WorkerIndex(home), []
        for step in [*story, "look"]:
            if step == "subscribe":
                sql, initial = chance.choice(QUERIES), chance.choice(("content", "none"))  # type: ignore[attr-defined]
                ids.append(registry.subscribe(sql, initial=initial).id)
            elif step == "withdraw" and ids:
                registry.withdraw(ids.pop(chance.randrange(len(ids))))  # type: ignore[attr-defined]
            elif step == "replan" and ids:
                number, plan = chance.choice(ids), chance.randrange(9)  # type: ignore[attr-defined]
                query = registry.subscription(number).query(registry.catalog())
                registry.replan({number: numbered_decomposition(query, plan)})
            elif step == "snapshot" and not (home.snapshots / f"{home.log.end:020d}").exists():
                compile_snapshot(home.snapshots, registry, home.log.end, {})
            elif step == "lose":
                for path in all_snapshots(home.snapshots):
                    shutil.rmtree(path)
            elif step == "look":
                fresh = WorkerIndex(home)
                kept, home_without = list(home.snapshots.iterdir()), WorkerIndex(home)
                home_without._snapshots = None
                for view in (follower, fresh, home_without):
                    view.move_to(home.log.end)
                since = chance.randrange(home.log.end + 1)  # type: ignore[attr-defined]
                expected = known(home_without, since)
                assert known(follower, since) == expected
                assert known(fresh, since) == expected
                assert kept == list(home.snapshots.iterdir())


def test_a_snapshot_of_an_earlier_offset_serves_a_replayed_batch(home: Home) -> None:
    with Registry(home) as registry:
        first = registry.subscribe(QUERIES[0]).id
        compile_snapshot(home.snapshots, registry, first + 1, {})
        registry.withdraw(first)
        second = registry.subscribe(QUERIES[1]).id
        compile_snapshot(home.snapshots, registry, second + 1, {})
        view = WorkerIndex(home)
        view.move_to(second + 1)
        assert len(view.index.covered[0]) == 2  # an OR is two points
        view.move_to(first + 1)
        assert len(view.index.covered[0]) == 1
        found = NewSelections(None, view.index.covered[0]).selecting(STOCKS)
        assert [[point.subscription for point in points] for points in found] == [[], [first], []]


def test_what_can_never_match_needs_no_place(home: Home) -> None:
    with Registry(home) as registry:
        view, never = WorkerIndex(home), "SELECT * FROM stocks WHERE id > 5 AND id < 3"
        for initial in ("content", "none"):
            registry.subscribe(never, initial=initial)
            view.move_to(home.log.end)
            registry.subscribe(QUERIES[0])
            compile_snapshot(home.snapshots, registry, home.log.end, {})
            view.move_to(home.log.end, home.log.end)
        assert len(view.index.covered[0]) == 2


def test_damaged_and_unfinished_snapshots_are_discarded(home: Home) -> None:
    with Registry(home) as registry:
        for number in range(2):
            for sql in QUERIES:
                registry.subscribe(sql)
            compile_snapshot(home.snapshots, registry, home.log.end, {})
            assert len(all_snapshots(home.snapshots)) == number + 1
        older, younger = all_snapshots(home.snapshots)
        segment = next(younger.glob("*/*.bin"))
        content = bytearray(segment.read_bytes())
        content[-1] ^= 1
        segment.write_bytes(content)
        (home.snapshots / "00000000000000000099.unfinished").mkdir()
        assert is_sound(older)
        assert not is_sound(younger)
        discard_damaged(home.snapshots)
        assert list(home.snapshots.iterdir()) == [older]
        assert newest(home.snapshots, home.log.end) is not None
        assert newest(home.snapshots, 1) is None


def test_only_the_newest_stay(home: Home) -> None:
    with Registry(home) as registry:
        for _ in range(4):
            registry.subscribe(QUERIES[0])
            compile_snapshot(home.snapshots, registry, home.log.end, {})
    assert [int(path.name) for path in all_snapshots(home.snapshots)] == [5, 6]


def test_many_are_compiled_at_once_and_some_beside_the_query(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "FEW_SUBSCRIPTIONS", 2)
    monkeypatch.setattr(keeping, "MANY_SUBSCRIPTIONS", 4)
    with Registry(home) as registry:
        keeper = SnapshotScheduler(home, registry)
        registry.subscribe(QUERIES[0])
        keeper.ensure(home.log.end)
        assert all_snapshots(home.snapshots) == []
        registry.subscribe_many(QUERIES[:4])
        keeper.ensure(home.log.end)
        assert len(all_snapshots(home.snapshots)) == 1
        registry.subscribe_many(QUERIES[:3])
        keeper.ensure(home.log.end)
        for thread in threading.enumerate():
            if thread.name == "penstock-snapshot":
                thread.join()
        assert len(all_snapshots(home.snapshots)) == 2


def test_what_fails_beside_the_query_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keeping, "FEW_SUBSCRIPTIONS", 1)
    monkeypatch.setattr(keeping, "compile_snapshot", full)
    with Registry(home) as registry:
        keeper = SnapshotScheduler(home, registry)
        registry.subscribe(QUERIES[0])
        keeper.ensure(home.log.end)
        assert keeper._compiling is not None
        keeper._compiling.join()
        with pytest.raises(HomeError, match="compile the subscriptions"):
            keeper.ensure(home.log.end)
