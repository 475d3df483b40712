"""The shapes of spaces, for brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.catalog import Catalog
from penstock.routing.interests import SpaceShape

if TYPE_CHECKING:
    from penstock.spaces import Space


def shape_of_space(space: Space, catalog: Catalog) -> SpaceShape:
    filters = 0 if space.edge is None else max(1, len(space.attributes))
    return SpaceShape(space.id, catalog[space.table], filters)


def shapes_of(spaces: Iterable[Space], catalog: Catalog) -> dict[int, SpaceShape]:
    return {space.id: shape_of_space(space, catalog) for space in spaces}
