"""Names of companies and opinions about them, for the workload of stocks and reviews."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Random: TypeAlias = np.random.Generator


def draw_symbols(count: int, random: Random) -> list[str]:
    """Pronounceable names that belong to nobody."""
    consonants, vowels = list("BCDFGKLMNPRSTVZ"), list("AEIOU")
    found: dict[str, None] = {}
    while len(found) < count:
        parts = (consonants, vowels, consonants, vowels)
        found["".join(random.choice(letters) for letters in parts)] = None
    return list(found)


_JUDGEMENTS = ("risky", "doubtful", "fair", "promising", "outstanding")
_REASONS = (
    "margins move with the price of raw materials",
    "the order book reaches well into next year",
    "a new plant comes on line in the spring",
    "debt is being paid back ahead of plan",
    "two large customers have not renewed",
    "the board has bought shares of its own",
    "research costs weigh on the result",
    "the dividend was raised again",
)


def draw_opinion(symbol: str, rating: int, random: Random) -> str:
    first, second = random.choice(_REASONS, size=2, replace=False)
    judgement = _JUDGEMENTS[(rating - 1) // 2]
    return f"{symbol} looks {judgement} to us: {first}, and {second}. We rate it {rating} of 10."
