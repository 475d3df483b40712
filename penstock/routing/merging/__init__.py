"""Merging interests: rules, the cost of mergers, when to merge, and how to undo mergers."""

from penstock.routing.merging.budgets import FalsePositives
from penstock.routing.merging.measures import Measure, ObservedMeasure, UniformMeasure, threshold_of
from penstock.routing.merging.mergers import Merger, find_mergers
from penstock.routing.merging.policies import Policy, TableState
from penstock.routing.merging.rules import IMPERFECT_RULES, PERFECT_RULES, MergeRule
from penstock.routing.merging.table import MergeTable

__all__ = [
    "IMPERFECT_RULES",
    "PERFECT_RULES",
    "FalsePositives",
    "Measure",
    "MergeRule",
    "MergeTable",
    "Merger",
    "ObservedMeasure",
    "Policy",
    "TableState",
    "UniformMeasure",
    "find_mergers",
    "threshold_of",
]
