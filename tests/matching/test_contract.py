"""The contract, run against every registered matcher."""

from __future__ import annotations

import pytest

from penstock.matching import create, matcher_names
from penstock.matching.segment import Policy
from penstock.predicates.intervals import point
from tests.matching.contract import STOCKS, MatcherContract

for _name in matcher_names():
    _class = f"Test{_name.title()}"
    _settings = {"name": _name, "options": {}, "__module__": __name__}
    globals()[_class] = type(_class, (MatcherContract,), _settings)

# Few boxes would never be indexed: here each strategy of `lanes` has to take them all.
for _strategy in ("scan", "lanes", "walk", "boxes", "bitmaps", "blocks"):
    _class = f"TestLanesBy{_strategy.title()}"
    _options = {"policy": Policy(0, _strategy), "background": False, "threads": 1}
    globals()[_class] = type(
        _class,
        (MatcherContract,),
        {"name": "lanes", "options": _options, "__module__": __name__},
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["naive", "lanes"])
def test_a_hundred_thousand_subscriptions_with_one_predicate(name: str) -> None:
    """The contract has a few thousand of them for every matcher."""
    crowd = 100_000
    matcher = create(name, STOCKS)
    matcher.insert_many((i, [((0, point(3)),)]) for i in range(crowd))
    assert matcher.match((3, None, None)) == list(range(crowd))
    assert matcher.match((4, None, None)) == []
    assert matcher.remove(17)
    assert len(matcher.match((3, None, None))) == crowd - 1
