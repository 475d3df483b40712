"""Stateless matching: which subscriptions over one relation does an event match?

Every matcher implements one Protocol (`interface.Matcher`) and is created by name
(`matcher_registry.create`). `lanes` is the one in production; those in `matchers` exist for
comparison, among them `naive`, the brute-force reference for all others.
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
