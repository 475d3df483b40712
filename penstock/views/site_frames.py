"""The frames between sites, the source and readers, and their encoding.

Frames are plain named tuples; `encode_site_frame` gives one MessagePack array: the number of the
kind and its members.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import msgspec

from penstock.documents.document import NodeId
from penstock.documents.evaluation import Cell, ResultRow
from penstock.documents.patterns import Axis, Operator, PatternNode, Predicate, TreePattern
from penstock.errors import NetworkError, SqlError, shortened
from penstock.packing import pack, unpack
from penstock.views.site_host import Batch, Gap, Hosted, Hosting, Read
from penstock.views.sites import Assign, Results


class Join(NamedTuple):
    """Registers a site with the source, and says how many views each of its views may feed."""

    address: str
    feeds: int


class Reached(NamedTuple):
    """From a site: the document that its slowest view computes next, and its epoch."""

    epoch: int
    document: int


class Locate(NamedTuple):
    """A reader asks the source where a view is."""

    view: int


class Located(NamedTuple):
    """The answer. `columns` are those visible to the subscriber: a label, a position in the
    document's key (or -1), a node of the pattern, whether it is the node's content, and a type."""

    view: int
    is_planned: bool
    is_known: bool
    place: str | None
    epoch: int
    end: int
    columns: tuple[tuple[str, int, int, bool, Any], ...]


class AskState(NamedTuple):
    """Asks the source for the state of the network."""


class State(NamedTuple):
    """The answer, as a JSON object."""

    members: Any


SiteFrame: TypeAlias = (
    Read | Batch | Gap | Hosting | Join | Reached | Locate | Located | AskState | State
)

# The index of a kind in this tuple is its number on the wire: append new ones at the end.
_KINDS: tuple[type[Any], ...] = (
    *(Read, Batch, Gap, Hosting, Join, Reached, Locate, Located, AskState, State),
)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}


def encode_site_frame(frame: SiteFrame) -> bytes:
    return pack([_NUMBERS[type(frame)], *_plain(frame)])


def decode_site_frame(data: bytes) -> SiteFrame:
    """NetworkError if the bytes are not a frame."""
    try:
        number, *members = unpack(data)
        kind = _KINDS[number]
        if kind is Batch:
            tag, results = members
            return Batch(int(tag), tuple(map(_results, results)))
        if kind is Hosting:
            return _hosting(*members)
        frame: SiteFrame = _checked(kind(*members))
        return frame
    except (
        *(msgspec.DecodeError, TypeError, ValueError, LookupError, AssertionError),
        *(RecursionError, SqlError),
    ) as error:
        raise NetworkError(
            "a frame of a site cannot be read", detail=shortened(str(error))
        ) from None


def _plain(frame: SiteFrame) -> tuple[object, ...]:
    if isinstance(frame, Batch):
        return frame.tag, [_plain_results(one) for one in frame.results]
    if isinstance(frame, Hosting):
        return frame.epoch, [_plain_hosted(one) for one in frame.hosted], dict(frame.places)
    return tuple(frame)


def _plain_results(results: Results) -> list[object]:
    rows = results.rows
    cells = None if rows is None else [[[*cell.id, *cell[1:]] for cell in row] for row in rows]
    return [
        *(results.view, results.document, cells, list(results.key)),
        *(results.cut, results.is_superseded),
    ]


def _results(plain: list[Any]) -> Results:
    view, document, rows, key, cut, is_superseded = plain
    found = None if rows is None else tuple(map(_row, rows))
    return Results(int(view), int(document), found, tuple(key), int(cut), bool(is_superseded))


def _row(plain: list[Any]) -> ResultRow:
    return tuple(
        Cell(NodeId(int(pre), int(end), int(level)), val, cont)
        for pre, end, level, val, cont in plain
    )


def _plain_hosted(hosted: Hosted) -> list[object]:
    feeding = [
        [one.from_document, [[feeder, _plain_pattern(pattern)] for feeder, pattern in one.inputs]]
        for one in hosted.feeding
    ]
    return [hosted.view, _plain_pattern(hosted.pattern), feeding]


def _hosting(epoch: int, hosted: list[Any], places: dict[Any, Any]) -> Hosting:
    return Hosting(
        int(epoch),
        tuple(_hosted(*one) for one in hosted),
        {int(view): str(place) for view, place in places.items()},
    )


def _hosted(view: int, pattern: Any, feeding: list[Any]) -> Hosted:
    assigned = tuple(
        Assign(int(first), tuple((int(feeder), _pattern(one)) for feeder, one in inputs))
        for first, inputs in feeding
    )
    if not assigned:
        raise ValueError(f"nobody feeds the view {view}")
    return Hosted(int(view), _pattern(pattern), assigned)


def _plain_pattern(pattern: TreePattern) -> list[object]:
    return [
        [
            *(node.label, node.parent, node.axis.value, node.val, node.cont),
            None
            if node.predicate is None
            else [node.predicate.operator.value, node.predicate.constant],
        ]
        for node in pattern.nodes
    ]


def _pattern(plain: list[Any]) -> TreePattern:
    nodes = []
    for label, parent, axis, val, cont, predicate in plain:
        tested = None if predicate is None else Predicate(Operator(predicate[0]), predicate[1])
        nodes.append(
            PatternNode(str(label), int(parent), Axis(axis), tested, bool(val), bool(cont))
        )
    return TreePattern(tuple(nodes))


_TYPES: dict[str, type] = {
    **dict.fromkeys(("tag", "epoch", "view", "from_document", "most", "first"), int),
    **dict.fromkeys(("document", "feeds", "end"), int),
    "address": str,
    **dict.fromkeys(("is_planned", "is_known"), bool),
}


def _checked(frame: Any) -> Any:
    for name, value in frame._asdict().items():
        is_right = isinstance(value, _TYPES.get(name, object))
        if not is_right or (_TYPES.get(name) is int and value < 0):
            raise ValueError(f"the {name} of a {type(frame).__name__} is {value!r}")
    if isinstance(frame, Located):
        return frame._replace(
            columns=tuple(
                (str(label), int(place), int(node), bool(is_content), kind)
                for label, place, node, is_content, kind in frame.columns
            )
        )
    return frame
