"""What the cameras of Liu et al. (2007, section 2.1) see, and the paper's five subscriptions.

The recognisers work on generated pictures (`scenes`), where each kind of thing has a colour; they
stand for models that take seconds, and are called like them.
"""

from __future__ import annotations

import math
from functools import lru_cache

from penstock.operators.examples.choices import one_of
from penstock.operators.examples.geo import distance_from, loc_in, loc_within
from penstock.operators.examples.pictures import colour_mask, decode_picture, find_blobs
from penstock.operators.examples.scenes import CELLS, COLOUR_OF, SIDE
from penstock.operators.functions import operator
from penstock.operators.interface import Argument, Output
from penstock.operators.value_types import BIGINT, VARCHAR

IMAGE = Argument("image", VARCHAR)
LEAST_MOB = 8
"""People; fewer are passers-by."""
LEAST_CONGESTION = 10
"""Cars."""
CHASE_PIXELS = 2.5 * SIDE / CELLS
"""How near a chasing car is to the chased one."""
VEHICLES = {"anyCar": ("car", "policeCar"), "car": ("car",), "policeCar": ("policeCar",)}
TRAFFIC = ("accident", "congestion")

CREATE_TABLE = """CREATE STREAM sightings (
  drone BIGINT, seen_at TIMESTAMP, longitude DOUBLE, latitude DOUBLE, altitude DOUBLE, image VARCHAR
)"""

_SELECT = "SELECT drone, seen_at, longitude, latitude FROM sightings WHERE "
SUBSCRIPTIONS = {
    "S1": _SELECT
    + "locIn(longitude, latitude, 'Bronx') AND chasePattern(image, 'policeCar', 'anyCar')",
    "S2": _SELECT
    + "locIn(longitude, latitude, 'Bronx') AND mobPattern(image, :people) AND :people > 50",
    "S3": _SELECT
    + "locWithin(longitude, latitude, 'Times Square', 5000)"
    + " AND trafficPattern(image, 'congestion') AND pedestrianCount(image, :ped) AND :ped > 250",
    "S4": _SELECT
    + "locIn(longitude, latitude, 'Bronx') AND trafficPattern(image, 'congestion')"
    + " AND trafficPattern(image, 'accident') AND policeCarCount(image, :pol) AND :pol < 2",
    "S5": _SELECT
    + "distanceFrom(longitude, latitude, 'Statue of Liberty', :x) AND :x < 1000"
    + " AND tourBoatCount(image, :y) AND coastGuardBoatCount(image, :z) AND :y > 2 * :z",
}
"""As published; a picture has room for 400 things."""


@lru_cache(maxsize=16)
def find_things(image: str, kind: str) -> tuple[tuple[float, float], ...]:
    """Where a picture shows things of a kind."""
    return tuple(find_blobs(colour_mask(decode_picture(image), COLOUR_OF[kind])))


@operator("mobPattern", [IMAGE], outputs=[Output("people", BIGINT)], cost_seconds=3e-3)
def mob_pattern(image: str) -> list[tuple[int]]:
    """Whether people crowd together, and how many."""
    people = len(find_things(image, "pedestrian"))
    return [(people,)] if people >= LEAST_MOB else []


@operator(
    "chasePattern",
    [
        IMAGE,
        Argument("chasing", VARCHAR, constant=True),
        Argument("chased", VARCHAR, constant=True),
    ],
    check_constants=one_of(chasing=VEHICLES, chased=VEHICLES),
    cost_seconds=5e-3,
)
def chase_pattern(image: str, chasing: str, chased: str) -> bool:
    """Whether one car is close to another."""
    return any(
        0 < math.dist(one, other) <= CHASE_PIXELS
        for kind in VEHICLES[chasing]
        for one in find_things(image, kind)
        for other_kind in VEHICLES[chased]
        for other in find_things(image, other_kind)
    )


@operator(
    "trafficPattern",
    [IMAGE, Argument("pattern", VARCHAR, constant=True)],
    check_constants=one_of(pattern=TRAFFIC),
    cost_seconds=3e-3,
)
def traffic_pattern(image: str, pattern: str) -> bool:
    """Whether the traffic is congested, or there was an accident."""
    if pattern == "congestion":
        return len(find_things(image, "car")) >= LEAST_CONGESTION
    return len(find_things(image, "wreck")) > 0


@operator("pedestrianCount", [IMAGE], outputs=[Output("count", BIGINT)], cost_seconds=3e-3)
def pedestrian_count(image: str) -> list[tuple[int]]:
    return [(len(find_things(image, "pedestrian")),)]


@operator("policeCarCount", [IMAGE], outputs=[Output("count", BIGINT)], cost_seconds=3e-3)
def police_car_count(image: str) -> list[tuple[int]]:
    return [(len(find_things(image, "policeCar")),)]


@operator("tourBoatCount", [IMAGE], outputs=[Output("count", BIGINT)], cost_seconds=3e-3)
def tour_boat_count(image: str) -> list[tuple[int]]:
    return [(len(find_things(image, "tourBoat")),)]


@operator("coastGuardBoatCount", [IMAGE], outputs=[Output("count", BIGINT)], cost_seconds=3e-3)
def coast_guard_boat_count(image: str) -> list[tuple[int]]:
    return [(len(find_things(image, "coastGuardBoat")),)]


OPERATORS = (
    *(loc_in, loc_within, distance_from),
    *(mob_pattern, chase_pattern, traffic_pattern),
    *(pedestrian_count, police_car_count, tour_boat_count, coast_guard_boat_count),
)
"""All that the subscriptions call."""
