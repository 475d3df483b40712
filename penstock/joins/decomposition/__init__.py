"""Splitting queries over several tables into semijoins.

Here is what a decomposition is. How one is chosen is in `greedy`, by what cost in `costs` and
`simulation`, and on what knowledge in `statistics`.
"""

from penstock.joins.decomposition.choices import (
    Choice,
    Decomposition,
    Replan,
    candidates,
    compact,
    decomposition_from_plain,
    decomposition_of,
    fits,
    has_choice,
    plain_decomposition,
    plain_rule,
)
from penstock.joins.decomposition.given import fitting

__all__ = [
    "Choice",
    "Decomposition",
    "Replan",
    "candidates",
    "compact",
    "decomposition_from_plain",
    "decomposition_of",
    "fits",
    "fitting",
    "has_choice",
    "plain_decomposition",
    "plain_rule",
]
