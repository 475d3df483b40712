"""Stateless matching: which subscriptions over one relation does an event concern?

Every matcher answers the same Protocol (`interface.Matcher`) and is found by name
(`registry.create`). `naive` tests one by one and is what all others are compared with; `lanes` is
the default.
"""

from penstock.matching.events import EventBatch
from penstock.matching.interface import Failure, Matcher, MatcherStatistics, MatchExplanation
from penstock.matching.pairs import Pairs
from penstock.matching.registry import DEFAULT_MATCHER, create, matcher_names, register

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
