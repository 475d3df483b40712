"""reoptimise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.storage import Home
from penstock.storage.home_statistics import save_statistics
from tests.cli.conftest import Cli, insert, lines
from tests.history.test_analyse import dry_analyse

SQL = (
    "SELECT stocks.id FROM stocks JOIN reviews USING (symbol) "
    "JOIN makers ON makers.symbol = reviews.symbol WHERE per < 20 AND rating < 50 AND size > 8"
)


@pytest.fixture
def shop(cli: Cli, home: Path, process: Callable[[], None]) -> Path:
    """A home whose subscription 3 was made when nothing was known of the tables."""
    cli(
        "execute", home, "CREATE TABLE makers (id BIGINT PRIMARY KEY, symbol VARCHAR, size INTEGER)"
    )
    assert cli("subscribe", home, SQL).out == "3\n"
    events = [insert("stocks", id=i, symbol=f"s{i % 3}", per=i) for i in range(6)]
    events += [insert("reviews", id=i, symbol=f"s{i % 3}", rating=i) for i in range(60)]
    events += [insert("makers", id=i, symbol=f"s{i}", size=i) for i in range(10)]
    cli("publish", home, "-", input=lines(*events))
    process()
    return home


def test_reoptimising(cli: Cli, shop: Path, process: Callable[[], None]) -> None:
    content = cli("content", shop, 3, "--json").json["rows"]
    tried = cli("reoptimise", shop, "--dry-run", "--json").json
    assert tried["dry_run"]
    (replanned,) = tried["replanned"]
    by = {one["table"]: one["by"] for one in replanned["after"]}
    assert by == {"stocks": "reviews", "reviews": "makers", "makers": "reviews"}
    ran = cli("reoptimise", shop)
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"3: {SQL}\n")
    assert ran.out.endswith("1 subscription with a new decomposition\n")
    assert cli("reoptimise", shop, "--json").json["replanned"] == []
    process()
    assert cli("content", shop, 3, "--json").json["rows"] == content
    explained = cli("explain", shop, 3, '{"table": "reviews", "row": {"id": 99}}', "--json").json
    assert {one["table"]: one["by"] for one in explained["filters"]} == by
    assert cli("tail", shop, 3, "--no-follow", "--json").code == 0


def test_an_unknown_method_is_refused(cli: Cli, home: Path) -> None:
    ran = cli("reoptimise", home, "--method", "magic")
    assert ran.code == 2
    assert "unknown method magic" in ran.err


def test_by_an_analysis(cli: Cli, shop: Path, process: Callable[[], None]) -> None:
    """What is read from the file leads to the same choice as what is replayed from the log."""
    replayed = cli("reoptimise", shop, "--method", "selective", "--dry-run", "--json").json
    ran = cli("reoptimise", shop, "--analysed")
    assert ran.code == 6
    assert "penstock analyse" in ran.err
    save_statistics(shop, dry_analyse(Home.open(shop)))
    content = cli("content", shop, 3, "--json").json["rows"]
    analysed = cli("reoptimise", shop, "--analysed", "--json").json
    assert [by_table(one) for one in analysed["replanned"]] == [
        by_table(one) for one in replayed["replanned"]
    ]
    assert len(analysed["replanned"]) == 1
    process()
    assert cli("content", shop, 3, "--json").json["rows"] == content


def by_table(replanned: dict[str, Any]) -> dict[str, str]:
    return {one["table"]: one["by"] for one in replanned["after"]}


def test_an_analysis_has_no_rows_to_simulate_with(cli: Cli, shop: Path) -> None:
    assert cli("reoptimise", shop, "--analysed", "--method", "simulation").code == 2
    assert cli("reoptimise", shop, "--analysed", "--method", "uniform").code == 6
