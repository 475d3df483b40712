"""Splitting queries over several tables into semijoins: what can be chosen, and what it costs."""

from penstock.joins.decomposition.choices import (
    Choice,
    Decomposition,
    Replan,
    candidates,
    compact,
    decomposition_from_plain,
    decomposition_of,
    fits,
    plain_decomposition,
    plain_rule,
)

__all__ = [
    "Choice",
    "Decomposition",
    "Replan",
    "candidates",
    "compact",
    "decomposition_from_plain",
    "decomposition_of",
    "fits",
    "plain_decomposition",
    "plain_rule",
]
