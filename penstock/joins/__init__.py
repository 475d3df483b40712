"""Select-join subscriptions: spaces, groups, and the schemes that turn changes into messages."""

from penstock.joins.group import Group, GroupStep, GroupSteps, StepsByEdge
from penstock.joins.points import SpacePoints
from penstock.joins.registry import family_of, make_scheme, scheme_names
from penstock.joins.scheme import Family, Scheme
from penstock.joins.spaces import Edge, JoinValue, Placed, Side, Space, join_value, joiner, place

__all__ = [
    "Edge",
    "Family",
    "Group",
    "GroupStep",
    "GroupSteps",
    "JoinValue",
    "Placed",
    "Scheme",
    "Side",
    "Space",
    "SpacePoints",
    "StepsByEdge",
    "family_of",
    "join_value",
    "joiner",
    "make_scheme",
    "place",
    "scheme_names",
]
