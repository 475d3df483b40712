"""Plans of a home's views on the command line."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from penstock import Hub
from penstock.errors import PlanError
from tests.cli.conftest import Cli
from tests.service.news_home import VIEWS, NewsHome


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("news") / "home"
    with NewsHome(path) as home:
        for sql in VIEWS:
            home.subscribe(sql)
        home.hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, a INTEGER, b INTEGER)")
        for condition in ("a > 3", "a > 3 AND b = 1", "b = 1", "a = 1 OR b = 2"):
            home.subscribe(f"SELECT id, a, b FROM t WHERE {condition}")
        home.change(12)
        home.hub.insert("t", {"id": 1, "a": 4, "b": 1})
    return path


def planned(cli: Cli, *words: object) -> list[dict[str, object]]:
    ran = cli("views", "plan", *map(str, words), "--json")
    assert ran.code == 0, ran.err
    results: list[dict[str, object]] = msgspec.json.decode(ran.out)["results"]
    return results


@pytest.mark.slow
def test_a_plan_keeps_its_limits(cli: Cli, news: Path) -> None:
    (one,) = planned(cli, news, "--feeds", 2, "--sites", 4, "--explain")
    assert one["views"] == len(VIEWS)
    feeding = one["feeding"]
    assert isinstance(feeding, list)
    by_id = {row["view"]: row for row in feeding}
    assert max(row["feeds"] for row in feeding) <= 2
    assert sum(not row["fed_by"] for row in feeding) == one["fed_by_source"]
    for row in feeding:
        inputs = [by_id[number]["level"] for number in row["fed_by"]]
        assert row["level"] == 1 + max(inputs, default=0)
        assert row["steps"]
    sites = one["sites"]
    assert isinstance(sites, list)
    assert [site["views"] for site in sites] == [4, 4, 4, 4]
    assert sum(site["feeds"] for site in sites) == sum(row["feeds"] for row in feeding)


def test_limits_that_no_plan_keeps(cli: Cli, news: Path) -> None:
    ran = cli("views", "plan", str(news), "--source", "0", "--json")
    assert ran.code == PlanError.exit_code
    error = msgspec.json.decode(ran.out)["error"]
    least = error["smallest_source_capacity"]
    assert f"raise the source's limit to {least}" in ran.err
    (one,) = planned(cli, news, "--source", least)
    assert one["fed_by_source"] == least
    assert cli("views", "plan", str(news), "--source", str(least - 1)).code == PlanError.exit_code
    none_feeds = cli("views", "plan", str(news), "--feeds", "0", "--source", "3")
    assert f"limit to {len(VIEWS)}" in none_feeds.err


def test_a_picture_and_words(cli: Cli, news: Path, tmp_path: Path) -> None:
    svg = tmp_path / "plan.svg"
    ran = cli("views", "plan", str(news), "--svg", str(svg))
    assert ran.code == 0
    assert f"news.doc: {len(VIEWS)} views" in ran.out
    circles = ET.fromstring(svg.read_text()).findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == len(VIEWS)
    assert "its condition has alternatives" in ran.out


def test_selections_feed_each_other_too(cli: Cli, news: Path) -> None:
    trees, boxes = planned(cli, news, "--tables", "--explain")
    assert (trees["documents"], boxes["documents"]) == ("news.doc", "t")
    feeding = boxes["feeding"]
    assert isinstance(feeding, list)
    assert [row["level"] for row in feeding] == [1, 2, 1]
    assert len(feeding[1]["fed_by"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--documents", "x.y"], "There are no views over x.y"),
        (["--alpha", "0", "--beta", "0"], "not both 0"),
    ],
)
def test_what_cannot_be_planned(cli: Cli, news: Path, words: list[str], said: str) -> None:
    ran = cli("views", "plan", str(news), *words)
    assert (ran.code, said in ran.err) == (PlanError.exit_code, True)


def test_a_home_without_views(cli: Cli, tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, a INTEGER)")
        hub.subscribe("SELECT a FROM t WHERE a > 3")
    for words in (["views", "plan"], ["site", "--home"]):
        ran = cli(*words, str(tmp_path / "home"))
        assert (ran.code, "The home has no views" in ran.err) == (PlanError.exit_code, True)


def test_a_site_needs_a_home_or_a_source(cli: Cli, news: Path) -> None:
    for words in ([], ["--home", str(news), "--upstream", "127.0.0.1:1"]):
        assert "either a home or a source" in cli("site", *words).err
    ran = cli("site", "--upstream", "127.0.0.1:1", "--listen", "0.0.0.0:0", "--feeds", "1")
    assert "a token is needed" in ran.err
