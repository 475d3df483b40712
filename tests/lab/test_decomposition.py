"""The experiment on decompositions of multi-way joins."""

from __future__ import annotations

import json

import pytest

from penstock.lab.experiments.joins_decomposition import joins_decomposition


@pytest.mark.slow
@pytest.mark.parametrize("star", [False, True])
def test_every_way_is_measured(star: bool, capsys: pytest.CaptureFixture[str]) -> None:
    joins_decomposition(subscriptions=34, events=12, star=star, share=0.02, seed=3, json=True)
    results = json.loads(capsys.readouterr().out)["results"]
    by_name = {result["decomposition"]: result for result in results}
    assert {"selective", "uniform", "simulation", "plain rule"} <= by_name.keys()
    assert sum(name.startswith("S by") for name in by_name) == 6
    assert all(result["deliveries_per_event"] > 0 for result in results)
    if star:
        enumerated, all_rows, wanted = (by_name[one] for one in ("Enum-J", "Ref-J", "Ref-J+"))
        assert enumerated["kb_per_event"] > 0
        assert all_rows["messages_per_event"] > wanted["messages_per_event"] > 0
    else:
        assert "Ref-J" not in by_name
