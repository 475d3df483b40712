"""Select-join subscriptions: groups, and the schemes that turn changes into messages."""

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
