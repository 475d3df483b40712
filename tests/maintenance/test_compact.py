"""Compaction: less to keep, and nobody can tell the difference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import Hub
from penstock.errors import CorruptionError, HomeError, LockedError
from penstock.flow.changes import Change, Op
from penstock.flow.events import encode_change
from penstock.maintenance.compaction import Compaction, compact
from penstock.maintenance.verification import verify
from penstock.pipeline.offsets import StreamOffset
from penstock.registry import Registry, rebuild
from penstock.sql import bind
from penstock.storage import Home, Log, RecordKind
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle, comparable
from penstock.testing.scenario import Define, Publish, Replan, Subscribe, Withdraw
from tests.differential.stories import MIXED, Story, stories
from tests.examples import examples
from tests.maintenance.conftest import BAD, QUERIES, REVIEWS, STOCKS, tell
from tests.maintenance.test_verify import everything_known, silent


def shrink(path: Path, to: int | None = None) -> Compaction:
    return compact(Home.open(path), silent, to=to)


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return used_home(tmp_path_factory.mktemp("pattern") / "home", 120)


@pytest.fixture
def home(pattern: Path, tmp_path: Path) -> Path:
    """A home in which much has happened, and little is left."""
    return Path(shutil.copytree(pattern, tmp_path / "home"))


def used_home(path: Path, updates: int) -> Path:
    with Hub(path) as hub:
        hub.execute(STOCKS)
        hub.execute(REVIEWS)
        for sql in QUERIES:
            hub.subscribe(sql)
        tell(hub, 0)
        for per in range(updates):
            hub.upsert("stocks", {"id": 1, "symbol": "B", "per": per})
    Home.open(path).log.append([(RecordKind.EVENT, BAD)])
    with Hub(path) as hub:
        hub.unsubscribe(hub.subscribe(QUERIES[1]))
    return path


def test_it_is_smaller_and_the_same(home: Path) -> None:
    before = everything_known(home)
    done = shrink(home)
    end = Home.open(home).log.end
    assert (done.offset, done.log_offset, done.held_back_by) == (end, end, "")
    assert done.bytes_after < done.bytes_before / 5
    assert everything_known(home) == before
    assert verify(Home.open(home), silent).findings == []
    again = shrink(home)
    assert again.bytes_after <= done.bytes_after + 100
    assert everything_known(home) == before


def test_databases_can_be_made_again(home: Path) -> None:
    def dumps() -> list[object]:
        with Registry(Home.open(home)) as registry:
            return [registry._catalog.database.dump(), registry._database.dump()]

    before = dumps()
    shrink(home)
    for name in ("catalog.db", "registry.db"):
        (home / name).unlink()
    rebuild(Home.open(home))
    assert dumps() == before


def test_publishing_and_subscribing_go_on(home: Path) -> None:
    """Also for those who had the log open all the time."""
    open_before = Home.open(home)
    registry = Registry(open_before)
    end = open_before.log.end
    shrink(home)
    assert open_before.log.end == end
    assert open_before.log.compacted_to == end
    first = open_before.log.append([(RecordKind.EVENT, BAD)])
    subscription = registry.subscribe("SELECT * FROM stocks").id
    assert (first, subscription) == (end, end + 1)
    with Hub(home) as hub:
        tell(hub, 50)
        assert len(hub.subscription(subscription).content()) == len(hub.rows("stocks"))
        known = hub.rows("reviews")
    shrink(home)
    with Hub(home) as hub:
        assert sorted(map(str, hub.rows("reviews"))) == sorted(map(str, known))
        assert [event.raw for event in hub.quarantine()] == [BAD, BAD]


def test_a_client_that_goes_on_from_its_cursor(home: Path) -> None:
    opened = Home.open(home)
    *_, early, last = opened.messages.batches()
    shrink(home)
    with Hub(home) as hub:
        hub.insert("stocks", {"id": 900, "symbol": "A", "per": 30})
    assert len(list(opened.messages.batches(last))) == 1
    with pytest.raises(HomeError, match="is no longer there") as caught:
        list(opened.messages.batches(early))
    assert caught.value.hint == "start again from the content"


@pytest.mark.slow
def test_only_so_far(home: Path) -> None:
    before = everything_known(home)
    done = shrink(home, to=100)
    assert done.offset == 100
    assert done.log_offset == 0  # no segment ends there
    assert "only up to offset 100" in done.held_back_by
    *_, batch = (header for header in Home.open(home).messages.batches() if header.end <= 100)
    assert batch.end == 100
    assert everything_known(home) == before
    assert shrink(home, to=50).offset == 100
    assert verify(Home.open(home), silent).findings == []


@pytest.mark.slow
def test_several_segments(home: Path) -> None:
    log = Log(home / "log", segment_bytes=2000)
    middle = log.roll()
    with Hub(home) as hub:
        tell(hub, 50)
    Log(home / "log").append([(RecordKind.EVENT, BAD)])  # nobody has processed it
    before = everything_known(Path(shutil.copytree(home, home.with_name("copy"))))
    done = shrink(home)
    assert done.log_offset == middle < done.offset
    assert verify(Home.open(home), silent).findings == []
    assert everything_known(home) == before


def test_the_past_is_gone_and_that_is_said(home: Path) -> None:
    from penstock.storage.table_replay import replay_tables

    shrink(home)
    opened = Home.open(home)
    with pytest.raises(HomeError, match="the tables at offset 20 are no longer known"):
        replay_tables(opened, 20)
    replay_tables(opened, opened.log.compacted_to)


def test_no_backtest_of_the_past(home: Path) -> None:
    from penstock.history.reading import check_known

    check_known(Home.open(home), 0)
    done = shrink(home)
    with pytest.raises(HomeError, match="what happened at offset 3 is no longer known"):
        check_known(Home.open(home), 3)
    check_known(Home.open(home), done.log_offset)


def test_it_needs_the_home_for_itself(home: Path) -> None:
    with Hub(home), pytest.raises(LockedError):
        shrink(home)


def test_an_empty_home(tmp_path: Path) -> None:
    Home.create(tmp_path / "home")
    assert shrink(tmp_path / "home").held_back_by == "nothing has been processed"


def checkpoint_at(home: Path, *positions: int, committed: int) -> None:
    for directory in ("offsets", "commits"):
        (home / "checkpoint" / directory).mkdir(parents=True, exist_ok=True)
    for number, position in enumerate(positions):
        offset = StreamOffset(position, position).to_json()
        text = f"v1\n{{}}\n{json.dumps(offset)}"
        (home / "checkpoint" / "offsets" / str(number)).write_text(text)
        if number < committed:
            (home / "checkpoint" / "commits" / str(number)).write_text("v1\n{}")


def test_never_past_a_batch_that_may_be_replayed(home: Path) -> None:
    checkpoint_at(home, 50, 100, committed=1)
    done = shrink(home)
    assert done.offset == 50
    assert done.held_back_by == "the pipeline goes on at offset 50: run it first"
    checkpoint_at(home, 50, 100, committed=2)
    assert shrink(home).offset == 100


def test_a_checkpoint_that_is_older_than_the_log(home: Path) -> None:
    shrink(home)
    checkpoint_at(home, 50, committed=1)
    with pytest.raises(HomeError, match="the checkpoint is older than the log"):
        shrink(home)


@pytest.mark.parametrize("scheme", ["ref-j", "rel-sel"])
def test_a_home_that_does_not_say_which_schemes_processed_it(tmp_path: Path, scheme: str) -> None:
    """An earlier release let every scheme process a home, and recorded none."""
    with Hub(tmp_path / "home", scheme=scheme) as hub:
        hub.execute(STOCKS)
        hub.execute(REVIEWS)
        for sql in QUERIES:
            hub.subscribe(sql)
        tell(hub, 0)
    marker = tmp_path / "home" / "penstock.json"
    marker.write_bytes(b'{"penstock_home": 1, "created": "2026-01-01"}')
    with pytest.raises(HomeError, match="not made by a scheme that sends semijoins"):
        shrink(tmp_path / "home")


# Damage


@pytest.mark.slow
def test_a_damaged_base_or_compacted_segment_is_named(home: Path, tmp_path: Path) -> None:
    shrink(home)
    (base,) = (home / "messages").glob("*.base")
    for victim in (base, home / "log" / f"{0:020d}.log"):
        size = victim.stat().st_size
        for place in range(0, size, max(1, size // 12)):
            for cut in (False, True):
                copy = Path(shutil.copytree(home, tmp_path / "copy"))
                content = bytearray(victim.read_bytes())
                if cut:
                    del content[place:]
                else:
                    content[place] ^= 16
                (copy / victim.relative_to(home)).write_bytes(content)
                found = verify(Home.open(copy), silent).findings
                assert str(copy / victim.relative_to(home)) in {one.where for one in found}
                shutil.rmtree(copy)


def test_a_segment_behind_the_compacted_one_that_is_lost(home: Path) -> None:
    shrink(home)
    *_, last = sorted((home / "log").glob("*.log"))
    with Hub(home) as hub:
        tell(hub, 70)
    last.unlink()
    assert verify(Home.open(home), silent).has_problems
    with pytest.raises(CorruptionError):
        Log(home / "log").frames(0, 150)


# Stories


def tell_with_compactions(story: Story, path: Path, oracle: Oracle, when: list[int]) -> None:
    """Tell a story to a Hub on a home that is compacted, and opened again, now and then."""
    names: dict[str, int] = {}
    for number, step in enumerate(story.steps):
        with Hub(path) as hub:
            match step:
                case Define(sql):
                    hub.execute(sql)
                    oracle.define(list(hub.catalog)[-1])
                case Subscribe(name, sql, plan):
                    chosen = None
                    if plan is not None:
                        chosen = numbered_decomposition(bind(sql, hub.catalog), plan)
                    names[name] = hub.subscribe(sql, decomposition=chosen).id
                case Withdraw(name):
                    hub.unsubscribe(names.pop(name))
                case Publish(changes):
                    hub.apply(changes)
                    for change in changes:
                        oracle.apply(change)
                case Replan(name, plan):
                    query = bind(hub.subscriptions()[names[name]], hub.catalog)
                    hub.replan(names[name], numbered_decomposition(query, plan))
            _compare(hub, names, oracle)
        if number in when:
            shrink(path)
            with Hub(path) as hub:
                _compare(hub, names, oracle)


def _compare(hub: Hub, names: dict[str, int], oracle: Oracle) -> None:
    for name, number in names.items():
        subscription = hub.subscription(number)
        content = comparable(row.values() for row in subscription.content())
        assert content == oracle.content(subscription.sql), f"{name}: {subscription.sql}"


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    stories(MIXED, max_steps=10, any_plan=True),
    st.lists(st.integers(0, 14), min_size=1, max_size=4),
)
def test_stories_with_compactions(
    tmp_path_factory: pytest.TempPathFactory, story: Story, when: list[int]
) -> None:
    path = tmp_path_factory.mktemp("story") / "home"
    Home.create(path)
    with Oracle() as oracle:
        tell_with_compactions(story, path, oracle, when)
    assert verify(Home.open(path), silent).findings == []
    shutil.rmtree(path)


@pytest.mark.slow
def test_a_pipeline_goes_on_with_its_checkpoint_and_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    from penstock.pipeline.run import run

    path = tmp_path / "home"
    home = Home.create(path)
    with Registry(home) as registry:
        registry.define(STOCKS)
        registry.define(REVIEWS)
        for sql in QUERIES:
            registry.subscribe(sql)
    for first in (0, 10, 20):
        home.log.append([(RecordKind.EVENT, body) for body in _events(first)])
        run(path, once=True)
        done = shrink(path)
        # The last batch may be one without records; the base is then the one before.
        assert done.offset == done.log_offset == home.log.end
        assert verify(Home.open(path), silent).findings == []
        if first == 10:
            shutil.rmtree(home.checkpoint)
            home.checkpoint.mkdir()
    published = {file.name: file.read_bytes() for file in (path / "messages").iterdir()}
    shutil.rmtree(home.checkpoint)
    home.checkpoint.mkdir()
    run(path, once=True)
    assert {file.name: file.read_bytes() for file in (path / "messages").iterdir()} == published


def _events(first: int) -> list[bytes]:
    """As `tell` says them to a Hub."""
    changes: list[Change] = []
    for i in range(first, first + 4):
        symbol = "ABC"[i % 3]
        stock = {"id": i, "symbol": symbol, "per": 12.5 * (i % 6)}
        changes.append(Change("stocks", Op.INSERT, stock))
        changes.append(Change("reviews", Op.INSERT, {"id": i, "symbol": symbol, "rating": i % 8}))
    changes.append(Change("stocks", Op.UPDATE, {"id": first + 1, "per": 44}))
    changes.append(Change("reviews", Op.DELETE, {"id": first + 2}))
    return [encode_change(change) for change in changes]
