"""The contract, run against every registered matcher."""

from __future__ import annotations

from penstock.matching import matcher_names
from penstock.matching.segment import Policy
from tests.matching.contract import MatcherContract

for _name in matcher_names():
    _class = f"Test{_name.title()}"
    _settings = {"name": _name, "options": {}, "__module__": __name__}
    if _name in ("naive", "lanes"):
        _settings["crowd"] = 100_000
    globals()[_class] = type(_class, (MatcherContract,), _settings)

# Few boxes would never be indexed: here each route of `lanes` has to take them all.
for _route in ("scan", "lanes", "walk", "boxes", "bitmaps", "blocks"):
    _class = f"TestLanesBy{_route.title()}"
    _options = {"policy": Policy(0, _route), "background": False, "threads": 1}
    globals()[_class] = type(
        _class,
        (MatcherContract,),
        {"name": "lanes", "options": _options, "__module__": __name__},
    )
