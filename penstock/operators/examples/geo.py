"""Where something is, by shapely: within a region, near a landmark, how far from it.

Coordinates are degrees; what lies outside of their ranges is nowhere, and the answer is unknown.
Distances are metres on a plane that touches the sphere at the landmark: within 50 km, they are off
by less than 0.1 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.operators.examples.choices import one_of
from penstock.operators.examples.extras import require
from penstock.operators.examples.regions import LANDMARKS, REGIONS
from penstock.operators.functions import operator
from penstock.operators.interface import Argument, Output
from penstock.operators.value_types import DOUBLE, VARCHAR

require("shapely", "shapely", "An operator on locations")

METRES_PER_DEGREE = math.pi * 6_371_008.8 / 180
"""Of latitude, on a sphere with the mean radius of the Earth."""
PLACE = (Argument("longitude", DOUBLE), Argument("latitude", DOUBLE))
LANDMARK = Argument("landmark", VARCHAR, constant=True)

_shapes: dict[str, Any] = {}


def prepare_regions() -> None:
    import shapely

    for name, corners in REGIONS.items():
        shape = shapely.Polygon(corners)
        shapely.prepare(shape)
        _shapes[name] = shape


@operator(
    "locIn",
    [*PLACE, Argument("region", VARCHAR, constant=True)],
    by_batch=True,
    set_up=prepare_regions,
    check_constants=one_of(region=REGIONS),
    cost_seconds=1e-5,
)
def loc_in(rows: Sequence[tuple[float, float, str]]) -> list[bool | None]:
    """Whether a place lies in a region."""
    import shapely

    found: list[bool | None] = [None] * len(rows)
    for name, places in _by_name(rows).items():
        longitudes, latitudes = _coordinates(rows, places)
        inside = shapely.contains_xy(_shapes[name], longitudes, latitudes)
        for place, answer, *at in zip(places, inside, longitudes, latitudes, strict=True):
            found[place] = bool(answer) if _is_somewhere(*at) else None
    return found


@operator(
    "locWithin",
    [*PLACE, LANDMARK, Argument("metres", DOUBLE)],
    by_batch=True,
    check_constants=one_of(landmark=LANDMARKS),
    cost_seconds=1e-5,
)
def loc_within(rows: Sequence[tuple[float, float, str, float]]) -> list[bool | None]:
    """Whether a place is at most so many metres from a landmark."""
    distances = _distances(rows)
    return [
        None if distance is None else distance <= row[3]
        for row, distance in zip(rows, distances, strict=True)
    ]


@operator(
    "distanceFrom",
    [*PLACE, LANDMARK],
    outputs=[Output("metres", DOUBLE)],
    by_batch=True,
    check_constants=one_of(landmark=LANDMARKS),
    cost_seconds=1e-5,
)
def distance_from(rows: Sequence[tuple[float, float, str]]) -> list[list[tuple[float]] | None]:
    """How many metres a place is from a landmark."""
    return [None if distance is None else [(distance,)] for distance in _distances(rows)]


def _distances(rows: Sequence[tuple[Any, ...]]) -> list[float | None]:
    import shapely

    found: list[float | None] = [None] * len(rows)
    for name, places in _by_name(rows).items():
        longitude, latitude = LANDMARKS[name]
        longitudes, latitudes = _coordinates(rows, places)
        east = (longitudes - longitude) * METRES_PER_DEGREE * math.cos(math.radians(latitude))
        north = (latitudes - latitude) * METRES_PER_DEGREE
        metres = shapely.distance(shapely.points(east, north), shapely.Point(0, 0))
        for place, distance, *at in zip(places, metres, longitudes, latitudes, strict=True):
            found[place] = float(distance) if _is_somewhere(*at) else None
    return found


def _by_name(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[int]]:
    """The rows of a batch by the region or landmark that they name."""
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row[2], []).append(place)
    return places


def _coordinates(rows: Sequence[tuple[Any, ...]], places: Sequence[int]) -> tuple[Any, Any]:
    both = np.array([rows[place][:2] for place in places], dtype=np.float64)
    return both[:, 0], both[:, 1]


def _is_somewhere(longitude: float, latitude: float) -> bool:
    return abs(longitude) <= 180 and abs(latitude) <= 90
