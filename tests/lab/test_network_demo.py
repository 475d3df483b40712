"""The network demonstration: the table says what was saved, and the picture is one."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app


@pytest.mark.slow
def test_covering_merging_and_caching_save_something(tmp_path: Path) -> None:
    picture = tmp_path / "overlay.svg"
    arguments = ["network", "demo", "--brokers", "8", "--subscriptions", "60", "--changes", "120"]
    ran = CliRunner().invoke(app, [*arguments, "--svg", str(picture), "--json"])
    assert ran.exit_code == 0, ran.output
    lines = json.loads(ran.stdout)["results"]
    unicast, plain, covered, merged, cached = lines
    assert len({line["arrivals"] for line in lines}) == 1
    assert plain["traffic_bytes"] < unicast["traffic_bytes"]
    assert covered["table_entries"] < plain["table_entries"]
    assert merged["table_entries"] < covered["table_entries"]
    assert covered["traffic_bytes"] == plain["traffic_bytes"]
    assert cached["traffic_bytes"] < merged["traffic_bytes"]
    assert len(ElementTree.parse(picture).getroot()) > 8
