"""Stateless matching: which subscriptions over one relation does an event concern?

Every matcher answers the same Protocol (`interface.Matcher`) and is found by name
(`matcher_registry.create`). `lanes` serves; those in `matchers` exist for comparison, among them
`naive`, which tests one by one and is what all others are compared with.
"""

from penstock.matching.events import EventBatch
from penstock.matching.interface import Failure, Matcher, MatcherStatistics, MatchExplanation
from penstock.matching.matcher_registry import DEFAULT_MATCHER, create, matcher_names, register
from penstock.matching.pairs import Pairs

__all__ = [
    "DEFAULT_MATCHER",
    "EventBatch",
    "Failure",
    "MatchExplanation",
    "Matcher",
    "MatcherStatistics",
    "Pairs",
    "create",
    "matcher_names",
    "register",
]
