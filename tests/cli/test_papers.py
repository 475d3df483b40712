"""`penstock lab paper` and `penstock lab list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.lab.evidence import registry
from penstock.lab.evidence.existing import not_built
from penstock.lab.evidence.model import Claim, Item, Paper, Row, Size
from tests.cli.conftest import Cli

ROWS: list[Row] = [{"series": "ours", "x": 1, "ours": 2.5}]


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A paper with one item whose claim turns out as this says."""
    found = {"holds": True}
    claim = Claim("It is small.", lambda _: (found["holds"], "2.5"))
    sizes = {Size.SMALL: "one", Size.FULL: "many"}
    seconds = {Size.SMALL: 1.0, Size.FULL: 60.0}
    items = (
        Item("figure 1", "Cost", lambda *_: ROWS, (), (claim,), None, seconds, sizes=sizes),
        not_built("figure 2", "Time"),
    )
    paper = Paper("liu2007", "A title", "Somebody", items)
    monkeypatch.setattr(registry, "find_paper", lambda _: paper)
    monkeypatch.setattr("penstock.cli.paper_report.find_paper", lambda _: paper)
    return found


def test_a_paper_is_run_and_its_page_written(
    cli: Cli, tmp_path: Path, outcome: dict[str, bool]
) -> None:
    ran = cli("lab", "paper", "liu2007", "--out", tmp_path / "pages")
    assert ran.code == 0
    assert "holds: 2.5 | It is small." in ran.out
    assert "1 of 2 claims hold" in ran.out
    assert "liu2007, figure 1; about 1 s left" in ran.err
    assert "It is small." in (tmp_path / "pages" / "liu2007.html").read_text(encoding="utf-8")
    assert "liu2007" in (tmp_path / "pages" / "index.html").read_text(encoding="utf-8")


def test_a_claim_that_fails_is_an_exit_code(
    cli: Cli, tmp_path: Path, outcome: dict[str, bool]
) -> None:
    outcome["holds"] = False
    ran = cli("lab", "paper", "liu2007", "--json", "--full", "--out", tmp_path)
    assert ran.code == 1
    (result,) = json.loads(ran.out)["results"]
    assert result["size"] == "full"
    assert [claim["verdict"] for item in result["items"] for claim in item["claims"]] == [
        "fails",
        "not built",
    ]
    assert result["items"][0]["rows"] == ROWS


def test_papers_are_listed(cli: Cli, outcome: dict[str, bool]) -> None:
    ran = cli("lab", "list")
    assert ran.code == 0
    for part in ("liu2007", "figure 1", "Cost", "one", "many", "not built"):
        assert part in ran.out
    listed = cli("lab", "list", "--json").json["results"]
    assert listed[0]["items"][0]["seconds"] == {"small": 1.0, "full": 60.0}


def test_an_unknown_paper_is_refused_by_name(cli: Cli, tmp_path: Path) -> None:
    ran = cli("lab", "paper", "nobody1900", "--out", tmp_path)
    assert ran.code == 2
    assert "'nobody1900' is not one of" in " ".join(ran.err.split())
    assert "liu2007" in ran.err
    assert not list(tmp_path.iterdir())


def test_one_item_of_a_paper(cli: Cli, tmp_path: Path, outcome: dict[str, bool]) -> None:
    ran = cli("lab", "paper", "liu2007", "--item", "figure 1", "--json", "--out", tmp_path)
    (result,) = ran.json["results"]
    assert [item["item"] for item in result["items"]] == ["figure 1"]
    refused = cli("lab", "paper", "liu2007", "--item", "figure 9", "--out", tmp_path)
    assert refused.code == 2
    assert "not one of figure 1, figure 2" in " ".join(refused.err.split())
