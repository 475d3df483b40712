"""Aguilera, Strom, Sturman, Astley and Chandra: the matching tree."""

from __future__ import annotations

from penstock.lab.evidence.existing import ExistingExperiment
from penstock.lab.evidence.model import Paper, Size

_GROWTH = ExistingExperiment(
    "matching-tree-growth",
    {Size.SMALL: {"most": 3_000}, Size.FULL: {"most": 1_000_000}},
    {Size.SMALL: 6, Size.FULL: 600},
)

PAPER = Paper(
    "aguilera1999",
    "Matching Events in a Content-based Subscription System",
    "M. K. Aguilera, R. E. Strom, D. C. Sturman, M. Astley, T. D. Chandra; PODC 1999",
    (_GROWTH.item("growth", "Node visits per event, from thousands to a million subscriptions"),),
    ("Of the paper only its words survive here: its figures cannot be put beside ours.",),
)
