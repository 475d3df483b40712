"""Schemes on networks at a tiny size: everybody gets the same over every network."""

from __future__ import annotations

import pytest

from penstock.lab.experiments.network_schemes import _cached, _compared


@pytest.mark.slow
def test_every_network_reaches_the_same_subscribers() -> None:
    found = dict(_compared(8, 150, 20, seed=1))
    for scheme in ("rel-sel", "ref-sj-clu+", "ref-sj-gap"):
        can, cbn = (found["schemes", name, scheme, None] for name in ("CAN", "CBN"))
        assert can["arrivals"] == cbn["arrivals"]
    assert found["schemes", "CBN", "rel-sel", None]["traffic_bytes"] > 0


@pytest.mark.slow
def test_larger_repositories_never_cost_more() -> None:
    found = dict(_cached(8, 150, 40, seed=1, r_rows=100))
    traffic = [
        found["caching", "CBN", "ref-sj-clu+", entries]["traffic_bytes"]
        for entries in (0, 400, 3_100)
    ]
    assert traffic == sorted(traffic, reverse=True)
    plain = found["caching", "CBN", "ref-sj-clu+", "none"]
    assert traffic[-1] <= plain["traffic_bytes"] * 1.05
