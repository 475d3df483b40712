"""The points of a space and the segment over them, as flat arrays that can be mapped from a file.

A million points as objects take gigabytes and minutes to build, in every process that needs them.
As arrays they are written once and shared by all processes of a machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.catalog import Catalog
from penstock.joins.array_codes import ArrayCodes
from penstock.joins.point_arrays import CodedRanges, PointArrays
from penstock.joins.points import SpacePoints
from penstock.joins.shadow_index import PreparedShadows, ShadowIndex
from penstock.joins.shadow_segment import Plan, ShadowSegment
from penstock.kernels.trees import Forest, Unions
from penstock.spaces import Edge, Side, Space

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class FrozenSpace:
    """The points of one space over an edge."""

    space: Space
    points: PointArrays
    shadows: PreparedShadows | None

    @classmethod
    def of(cls, space: Space, points: PointArrays, catalog: Catalog) -> FrozenSpace:
        """Precomputes what an index over these points needs."""
        made = SpacePoints(space, catalog)
        made.freeze(points)
        if made.has_envelopes or not len(points):
            return cls(space, points, None)
        index = made.index(ShadowIndex)
        segment = index.only_segment
        assert segment is not None
        return cls(space, points, PreparedShadows(index.column, segment))


def plain_edge(edge: Edge) -> list[Any]:
    return [[side.table, list(side.columns)] for side in edge.sides]


def edge_of_plain(plain: list[Any]) -> Edge:
    left, right = (Side(table, tuple(columns)) for table, columns in plain)
    return Edge((left, right))


def plain_space(space: Space) -> list[Any]:
    assert space.edge is not None
    edge = plain_edge(space.edge)
    return [space.table, edge, space.side, space.attribute, list(space.more)]


def space_of_plain(plain: list[Any]) -> Space:
    table, edge, side, attribute, more = plain
    return Space(table, edge_of_plain(edge), side, attribute, tuple(more))


def pack_space(frozen: FrozenSpace) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Named arrays, and everything else as text."""
    points, shadows = frozen.points, frozen.shadows
    arrays: dict[str, AnyArray] = {"numbers": points.numbers}
    texts: dict[str, str] = {"space": json.dumps(plain_space(frozen.space))}
    texts["columns"] = json.dumps(sorted(points.base))
    for column, ranges in points.base.items():
        _pack_ranges(f"base{column}", ranges, arrays, texts)
    for i, ranges in enumerate(points.filters):
        _pack_ranges(f"filter{i}", ranges, arrays, texts)
    if shadows is not None:
        texts["shadows"] = json.dumps(shadows.column)
        forest, unions, next_high = shadows.segment.plan
        arrays |= {f"forest.{name}": part for name, part in forest._asdict().items()}
        arrays |= {f"unions.{name}": part for name, part in unions._asdict().items()}
        arrays["next_high"] = next_high
    return arrays, texts


def unpack_space(arrays: Mapping[str, AnyArray], texts: Mapping[str, str]) -> FrozenSpace:
    space = space_of_plain(json.loads(texts["space"]))
    columns = json.loads(texts["columns"])
    base = {column: _unpack_ranges(f"base{column}", arrays, texts) for column in columns}
    filters = tuple(_unpack_ranges(f"filter{i}", arrays, texts) for i in range(1 + len(space.more)))
    points = PointArrays(arrays["numbers"], base, filters)
    if "shadows" not in texts:
        return FrozenSpace(space, points, None)
    plan = Plan(
        Forest(*(arrays[f"forest.{name}"] for name in Forest._fields)),
        Unions(*(arrays[f"unions.{name}"] for name in Unions._fields)),
        arrays["next_high"],
    )
    column = json.loads(texts["shadows"])
    segment = ShadowSegment(filters[0], points.base_ranges(column), plan)
    return FrozenSpace(space, points, PreparedShadows(column, segment))


def _pack_ranges(
    name: str, ranges: CodedRanges, arrays: dict[str, AnyArray], texts: dict[str, str]
) -> None:
    arrays[f"{name}.low"], arrays[f"{name}.high"] = ranges.low, ranges.high
    if ranges.codes.numbers is not None:
        arrays[f"{name}.constants"] = ranges.codes.numbers
    else:
        texts[f"{name}.constants"] = json.dumps(list(ranges.codes.constants))


def _unpack_ranges(
    name: str, arrays: Mapping[str, AnyArray], texts: Mapping[str, str]
) -> CodedRanges:
    constants = f"{name}.constants"
    if constants in arrays:
        codes = ArrayCodes(np.asarray(arrays[constants]))
    else:
        codes = ArrayCodes(json.loads(texts[constants]))
    return CodedRanges(codes, arrays[f"{name}.low"], arrays[f"{name}.high"])
