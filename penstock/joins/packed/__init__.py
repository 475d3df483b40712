"""The fast gear of joins: many steps of many groups at once, on packed rows.

Groups are known by the bytes of their join values and members by the bytes of their keys; rows are
put into messages as they are. `penstock.joins.scheme.Scheme` is the plain gear; both give the same
bytes.
"""

from penstock.joins.packed.groups import MemberPlaces, Members, PackedGroups
from penstock.joins.packed.interface import (
    Columns,
    JoinMessages,
    PackedScheme,
    PositionedMessages,
    RowReader,
)
from penstock.joins.packed.joining import PackedJoins
from penstock.joins.packed.steps_codec import SentSteps

__all__ = [
    "Columns",
    "JoinMessages",
    "MemberPlaces",
    "Members",
    "PackedGroups",
    "PackedJoins",
    "PackedScheme",
    "PositionedMessages",
    "RowReader",
    "SentSteps",
]
