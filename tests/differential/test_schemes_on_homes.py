"""Schemes that take turns on a home: contents equal DuckDB's, or the scheme is refused by name."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.errors import HomeError
from penstock.joins import family_of, scheme_names
from penstock.maintenance.compaction import compact
from penstock.pipeline.run import run
from penstock.storage import Home
from penstock.testing.oracle import Oracle, comparable
from penstock.testing.scenario import Define
from tests.differential.stories import JOINS, Story, rounds
from tests.differential.test_hub import tell
from tests.examples import examples
from tests.maintenance.test_verify import silent


def live_contents_equal(hub: Hub, oracle: Oracle) -> None:
    """Contents built from the message log of the home, not those of a Hub that was open before."""
    for number, sql in hub.subscriptions().items():
        content = comparable(row.values() for row in hub.subscription(number).content())
        assert content == oracle.content(sql), f"{number}: {sql}"


def take_turns(path: Path, parts: list[Story], schemes: list[str], compacted: list[bool]) -> None:
    """Each part of a story is told to a Hub with another scheme, if the home may have it."""
    family = family_of(schemes[0])
    with Oracle() as oracle:
        names: dict[str, int] = {}
        for part, scheme, is_compacted in zip(parts, schemes, compacted, strict=True):
            if family_of(scheme) is not family:
                with pytest.raises(HomeError, match="messages of other schemes") as caught:
                    Hub(path, scheme=scheme)
                assert schemes[0] in caught.value.hint
                scheme = schemes[0]
            with Hub(path, scheme=scheme) as hub:
                live_contents_equal(hub, oracle)
                live = {name: hub.subscription(number) for name, number in names.items()}
                tell(part, hub, oracle, live)
                names = {name: one.id for name, one in live.items()}
            if is_compacted:
                compact(Home.open(path), silent)
        with Hub(path, scheme=schemes[0]) as hub:
            live_contents_equal(hub, oracle)


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[Story], list[str], list[bool]]:
    parts = draw(rounds(JOINS, 3, 12))
    others = draw(st.lists(st.sampled_from(scheme_names()), min_size=2, max_size=2))
    compacted = draw(st.lists(st.booleans(), min_size=3, max_size=3))
    return parts, others, compacted


@pytest.mark.slow
@pytest.mark.parametrize("scheme", scheme_names())
@settings(max_examples=examples(8))
@given(drawn=turns())
def test_every_scheme_on_a_home_that_others_use(
    scheme: str, drawn: tuple[list[Story], list[str], list[bool]]
) -> None:
    parts, others, compacted = drawn
    place = Path(tempfile.mkdtemp(prefix="penstock-turns-"))
    try:
        take_turns(place / "home", parts, [scheme, *others], compacted)
    finally:
        shutil.rmtree(place)


TABLES = [
    Define("CREATE TABLE r (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)"),
    Define("CREATE TABLE s (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)"),
]
QUERY = "SELECT r.id AS r, s.id AS s FROM r JOIN s USING (k) WHERE r.a > 1 AND s.a > 1"


@pytest.mark.parametrize("scheme", scheme_names())
def test_a_row_that_joined_nothing_when_the_home_was_compacted(scheme: str, tmp_path: Path) -> None:
    """Where the join is left to clients, they hold such a row; the base must tell it to them."""
    with Hub(tmp_path / "home", scheme=scheme) as hub:
        for table in TABLES:
            hub.execute(table.sql)
        number = hub.subscribe(QUERY).id
        hub.insert("r", {"id": 1, "k": 1, "a": 2})
        hub.insert("r", {"id": 2, "k": 2, "a": 2})
        hub.insert("s", {"id": 2, "k": 2, "a": 2})
        hub.insert("s", {"id": 3, "k": 2, "a": 2})
    compact(Home.open(tmp_path / "home"), silent)
    with Hub(tmp_path / "home", scheme=scheme) as hub:
        hub.insert("s", {"id": 1, "k": 1, "a": 2})
        hub.delete("s", {"id": 2})
        content = hub.subscription(number).content()
    assert sorted((row["r"], row["s"]) for row in content) == [(1, 1), (2, 3)]


@pytest.mark.parametrize("scheme", scheme_names())
@pytest.mark.parametrize("before", ["auto", "ref-j", "rel-sel"])
def test_a_row_that_joined_nothing_when_another_scheme_took_over(
    before: str, scheme: str, tmp_path: Path
) -> None:
    with Hub(tmp_path / "home", scheme=before) as hub:
        for table in TABLES:
            hub.execute(table.sql)
        number = hub.subscribe(QUERY).id
        hub.insert("r", {"id": 1, "k": 1, "a": 2})
    if family_of(scheme) is not family_of(before):
        with pytest.raises(HomeError, match="messages of other schemes"):
            Hub(tmp_path / "home", scheme=scheme)
        return
    with Hub(tmp_path / "home", scheme=scheme) as hub:
        hub.insert("s", {"id": 1, "k": 1, "a": 2})
        assert hub.subscription(number).content() == [{"r": 1, "s": 1}]


@pytest.mark.parametrize("scheme", scheme_names())
def test_a_home_without_messages_takes_any_scheme(scheme: str, tmp_path: Path) -> None:
    Home.create(tmp_path / "home")
    for other in ("rel-sel", "ref-j", scheme):
        Hub(tmp_path / "home", scheme=other).close()


def test_the_pipeline_refuses_a_home_of_other_schemes(tmp_path: Path) -> None:
    with Hub(tmp_path / "home", scheme="rel-sel") as hub:
        hub.execute(TABLES[0].sql)
    with pytest.raises(HomeError, match="messages of other schemes than the pipeline"):
        run(tmp_path / "home", once=True)


def test_a_hub_that_is_refused_does_not_keep_the_lock(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(TABLES[0].sql)
    with pytest.raises(HomeError) as caught:
        Hub(tmp_path / "home", scheme="rel-sel")
    Hub(tmp_path / "home").close()
    assert caught.value.hint


def test_a_home_of_an_earlier_release_has_semijoins(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(TABLES[0].sql)
    marker = tmp_path / "home" / "penstock.json"
    assert b"semijoins" in marker.read_bytes()
    marker.write_bytes(b'{"penstock_home": 1, "created": "2026-01-01", "shared": false}')
    with pytest.raises(HomeError, match="messages of other schemes"):
        Hub(tmp_path / "home", scheme="rel-sel")
    Hub(tmp_path / "home", scheme="enum-sj").close()


def test_a_family_of_a_later_release_is_refused(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(TABLES[0].sql)
    marker = tmp_path / "home" / "penstock.json"
    marker.write_bytes(b'{"penstock_home": 1, "created": "2026-01-01", "schemes": "magic"}')
    with pytest.raises(HomeError, match="unknown family"):
        Hub(tmp_path / "home")
