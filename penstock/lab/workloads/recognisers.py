"""Pictures from cameras, and subscriptions that call a recogniser: for measuring operators.

The recogniser takes a given time, and its result follows from a hash: the same predicates are true
of the same pictures, independent of where and in which order they are evaluated.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from hashlib import blake2b

from penstock.operators import Argument, operator
from penstock.operators.value_types import BIGINT, VARCHAR

STREAM = "CREATE STREAM frames (zone BIGINT, picture VARCHAR)"
OPERATOR = "CREATE OPERATOR recognises AS 'penstock.lab.workloads.recognisers:recognises'"
SHARE_TRUE = 0.2
"""The probability of a predicate."""
PREDICATES_PER_SUBSCRIPTION = (3, 5)


def is_recognised(picture: str, what: int) -> bool:
    """The recogniser's result, without the delay."""
    digest = blake2b(f"{picture}/{what}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) < SHARE_TRUE * 2**64


def take_time(microseconds: int) -> None:
    """Keep a core busy, as a recogniser would."""
    end = time.perf_counter() + microseconds / 1e6
    while time.perf_counter() < end:
        pass


@operator(
    "recognises",
    [
        Argument("picture", VARCHAR),
        Argument("what", BIGINT, constant=True),
        Argument("microseconds", BIGINT, constant=True),
    ],
    version="1",
)
def recognises(picture: str, what: int, microseconds: int) -> bool:
    """Whether a picture shows something."""
    take_time(microseconds)
    return is_recognised(picture, what)


@dataclass(frozen=True, slots=True)
class Watch:
    """What one subscription watches for."""

    zone: int
    wanted: tuple[int, ...]

    def sql(self, microseconds: int) -> str:
        calls = (f"recognises(picture, {one}, {microseconds})" for one in self.wanted)
        return (
            f"SELECT zone, picture FROM frames WHERE zone = {self.zone} AND {' AND '.join(calls)}"
        )


@dataclass(frozen=True, slots=True)
class Frame:
    zone: int
    picture: str


def watches(count: int, predicates: int, zones: int, seed: int) -> list[Watch]:
    """Subscriptions over predicates with popularities by Zipf's law."""
    chance = random.Random(seed)
    weights = [1 / rank for rank in range(1, predicates + 1)]
    made = []
    for _ in range(count):
        length = chance.randint(*PREDICATES_PER_SUBSCRIPTION)
        chosen: dict[int, None] = {}
        while len(chosen) < min(length, predicates):
            chosen[chance.choices(range(predicates), weights)[0]] = None
        made.append(Watch(chance.randrange(zones), tuple(chosen)))
    return made


def frames(count: int, zones: int, seed: int) -> list[Frame]:
    chance = random.Random(seed)
    return [Frame(chance.randrange(zones), f"{seed}-{number}") for number in range(count)]
