"""A segment as named arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.catalog import Relation
from penstock.matching.boundaries import Boundaries, CutBoundaries, NumberBoundaries
from penstock.matching.box_index import BoxIndex
from penstock.matching.key_arrays import fits_int64
from penstock.matching.segment import BoxSegment
from penstock.matching.table import BoxTable
from penstock.matching.trie import Trie

AnyArray = npt.NDArray[Any]

_TABLE = ("ids", "overlapping", "owners", "offsets", "columns", "lows", "highs")
_TRIE = (
    "row_bases",
    "nodes",
    "depths",
    "box_owners",
    "root_nodes",
    "root_lows",
    "root_highs",
    "root_offsets",
    "box_order",
)
_BOXES = (
    "ranges",
    "blocks",
    "cores",
    "groups",
    "box_owners",
    "rest_offsets",
    "rest_columns",
    "rest_lows",
    "rest_highs",
)


def pack_segment(segment: BoxSegment) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """The arrays and texts from which `unpack_segment` restores the segment."""
    arrays: dict[str, AnyArray] = {"dead": segment.dead}
    texts: dict[str, str] = {}
    for name in _TABLE:
        arrays[f"table.{name}"] = getattr(segment.table, name)
    for column, boundaries in enumerate(segment.table.boundaries):
        _pack_boundaries(column, boundaries, arrays, texts)
    if segment.trie is not None:
        for name in _TRIE:
            arrays[f"trie.{name}"] = getattr(segment.trie, name)
    if segment.box_index is not None:
        for name in _BOXES:
            arrays[f"boxes.{name}"] = getattr(segment.box_index, name)
        arrays["boxes.axes"] = np.array(segment.box_index.axes, np.int64)
    return arrays, texts


def unpack_segment(
    relation: Relation, arrays: Mapping[str, AnyArray], texts: Mapping[str, str]
) -> BoxSegment:
    boundaries = tuple(
        _unpack_boundaries(column, fits_int64(declared.type), arrays, texts)
        for column, declared in enumerate(relation.columns)
    )
    table = BoxTable(relation, boundaries, *(arrays[f"table.{name}"] for name in _TABLE))
    trie = box_index = None
    if "trie.nodes" in arrays:
        trie = Trie(*(arrays[f"trie.{name}"] for name in _TRIE))
    if "boxes.ranges" in arrays:
        x, y = arrays["boxes.axes"].tolist()
        counts = (boundaries[x].cell_count, boundaries[y].cell_count)
        box_index = BoxIndex((x, y), counts, *(arrays[f"boxes.{name}"] for name in _BOXES))
    segment = BoxSegment(table, trie, box_index)
    segment.bury(arrays["dead"])
    return segment


def _pack_boundaries(
    column: int, boundaries: Boundaries, arrays: dict[str, AnyArray], texts: dict[str, str]
) -> None:
    if isinstance(boundaries, CutBoundaries):
        texts[f"cuts.{column}"] = json.dumps([cut[1:] for cut in boundaries.cuts])
        return
    arrays[f"places.{column}"] = boundaries.places
    arrays[f"closed.{column}"] = boundaries.closed
    if boundaries.table is not None:
        arrays[f"cells.{column}"] = boundaries.table


def _unpack_boundaries(
    column: int, fits: bool, arrays: Mapping[str, AnyArray], texts: Mapping[str, str]
) -> Boundaries:
    if not fits:
        cuts = json.loads(texts[f"cuts.{column}"])
        return CutBoundaries(tuple((2, key, side) for key, side in cuts))
    return NumberBoundaries(
        arrays[f"places.{column}"], arrays[f"closed.{column}"], arrays.get(f"cells.{column}")
    )
