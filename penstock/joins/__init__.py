"""Select-join subscriptions: groups, and the schemes that turn changes into messages."""

from typing import TYPE_CHECKING

from penstock.doors import lazy_door

if TYPE_CHECKING:
    from penstock.joins.group import Group, GroupStep, GroupSteps, StepsByEdge
    from penstock.joins.points import SpacePoints
    from penstock.joins.scheme import Family, Scheme
    from penstock.joins.scheme_registry import family_of, make_scheme, scheme_names

__all__ = [
    "Family",
    "Group",
    "GroupStep",
    "GroupSteps",
    "Scheme",
    "SpacePoints",
    "StepsByEdge",
    "family_of",
    "make_scheme",
    "scheme_names",
]

# Loaded on first use: decompositions and accounting need no kernels.
__getattr__ = lazy_door(
    __name__,
    {
        "group": "Group GroupStep GroupSteps StepsByEdge",
        "points": "SpacePoints",
        "scheme": "Family Scheme",
        "scheme_registry": "family_of make_scheme scheme_names",
    },
)
