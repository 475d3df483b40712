"""The fast gear of joins: batches of steps of many groups, on packed rows.

Groups are identified by the bytes of their join values and members by the bytes of their keys;
packed rows are copied into messages unchanged. `penstock.joins.scheme.Scheme` is the plain gear;
both give the same bytes.
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
