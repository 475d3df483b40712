"""The policy for rolling files: which ones, and when (docs/notes/rolling.md).

Files have tiers by the number of batches they hold: below 32, below 1,024, and so on. 32
consecutive files of a tier are merged into one of the next tier. So a batch is rewritten once per
tier at most, and there are fewer than 32 files per tier, apart from the full ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from penstock.storage.rolled import Extent

FAN_IN = 32
"""Files of a tier that are merged into one of the next."""
_TIER_BITS = FAN_IN.bit_length() - 1
TIERS = 4  # of 1, 32, 1,024 and 32,768 batches and more
MAX_ROLLED_BATCHES = 1 << 17  # 131,072: a day's batches of a busy pipeline, and an index of 5 MiB
MAX_ROLLED_BYTES = (
    64 << 20
)  # 64 MiB: written and synced in some tenths of a second, between batches
MAX_FILES_AT_ONCE = (
    4_096  # for a home whose batches were never rolled: opened in a fifth of a second
)


def tier(extent: Extent) -> int:
    return min(TIERS - 1, (extent.batches.bit_length() - 1) // _TIER_BITS)


def stretch_to_roll(
    extents: Sequence[Extent],
    bytes_of: Callable[[Extent], int],
    may_follow: Callable[[Extent, Extent], bool],
) -> Sequence[Extent]:
    """Consecutive files that should be merged; none, if there are too few of each tier."""
    in_tier = Counter(map(tier, extents))
    for number in range(TIERS):
        if in_tier[number] < FAN_IN:
            continue
        for run in _runs(extents, partial(_is_up_to, number), may_follow):
            same = [i for i, extent in enumerate(run) if tier(extent) == number]
            if len(same) < FAN_IN:
                continue
            # Sizes are read only where needed: a home may have many full files.
            for part in _runs(run[: same[-1] + 1], lambda one: not _is_full(one, bytes_of)):
                if sum(tier(extent) == number for extent in part) >= FAN_IN:
                    return _as_far_as_it_fits(part, bytes_of)
    return ()


def _runs(
    extents: Sequence[Extent],
    belongs: Callable[[Extent], bool],
    may_follow: Callable[[Extent, Extent], bool] = lambda *_: True,
) -> Iterator[list[Extent]]:
    """The longest runs of files that belong, each of which may follow the one before."""
    run: list[Extent] = []
    for extent in extents:
        if run and not (belongs(extent) and may_follow(run[-1], extent)):
            yield run
            run = []
        if belongs(extent):
            run.append(extent)
    if run:
        yield run


def _is_up_to(highest: int, extent: Extent) -> bool:
    return tier(extent) <= highest


def _is_full(extent: Extent, bytes_of: Callable[[Extent], int]) -> bool:
    return extent.batches * 2 >= MAX_ROLLED_BATCHES or bytes_of(extent) * 2 >= MAX_ROLLED_BYTES


def _as_far_as_it_fits(
    run: Sequence[Extent], bytes_of: Callable[[Extent], int]
) -> Sequence[Extent]:
    size = batches = taken = 0
    for extent in run[:MAX_FILES_AT_ONCE]:
        size, batches = size + bytes_of(extent), batches + extent.batches
        if size > MAX_ROLLED_BYTES or batches > MAX_ROLLED_BATCHES:
            break
        taken += 1
    return run[:taken]
