"""Select-join subscriptions: spaces, groups, and the schemes that turn changes into messages."""

from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.joins.ref_sj_opt import RefSjOpt
from penstock.joins.scheme import Scheme
from penstock.joins.spaces import Edge, JoinValue, Placed, Side, Space, join_value, place

DEFAULT_SCHEME: Scheme = RefSjOpt()

__all__ = [
    "DEFAULT_SCHEME",
    "Edge",
    "Group",
    "GroupStep",
    "JoinValue",
    "Placed",
    "RefSjOpt",
    "Scheme",
    "Side",
    "Space",
    "SpacePoints",
    "join_value",
    "place",
]
