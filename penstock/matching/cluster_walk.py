"""Walking one cluster of the trie with a fixed number of lane words.

The number is a compile-time constant, so that a node takes a few vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit, popcount, put_eight, trailing_zeros

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]

_FEW_BITS = 5
"""Words with at most this many set bits are decoded bit by bit, others bytewise by a table."""
_BITS_OF_BYTE = np.array(
    [([k for k in range(8) if byte >> k & 1] + [0] * 8)[:8] for byte in range(256)], np.uint16
)


def cluster_walk(width: int) -> Callable[..., tuple[int, int]]:
    """A kernel that walks a cluster with `width` words of lanes."""

    @njit
    def walk(
        nodes: Ints32,
        depths: npt.NDArray[np.uint16],
        root: int,
        is_implied: bool,
        below: Words,
        first_word: int,
        live: Words,
        box_owners: Ints32,
        dead: Flags,
        base: int,
        spans: Ints32,
        starts: Ints64,
        lanes: Lanes,
        run_count: int,
        picked: int,
    ) -> tuple[int, int]:
        """The numbers of runs and lanes written so far; -1 runs if the buffers were too small.

        `live[d]` holds the lanes that satisfy all predicates of the path down to depth `d`;
        `live[0]` are the lanes that enter. Its lane 0 is lane 64 * `first_word` of `below`. A node
        adds at most 64 * `width` lanes, and `pick_lanes` overwrites up to 8 entries more. With
        `is_implied`, the root's predicate is known to hold and is not tested.
        """
        node = np.int64(root)
        end = np.int64(nodes[node, 2])
        while node < end:
            depth = np.int64(depths[node])
            if is_implied:
                live[1] = live[0]
                is_implied = False
            else:
                low, high = nodes[node, 0], nodes[node, 1]
                some = np.uint64(0)
                for i in range(width):
                    word = first_word + i
                    left = live[depth - 1, i] & below[high, word] & ~below[low, word]
                    live[depth, i] = left
                    some |= left
                if some == 0:
                    node = np.int64(nodes[node, 2])
                    continue
            box, box_end = nodes[node, 3], nodes[node + 1, 3]
            node += 1
            if box == box_end:
                continue
            if picked + 64 * width + 8 > len(lanes):
                return -1, 0
            begin = picked
            picked = pick_lanes(live[depth], width, first_word, lanes, picked)
            while box < box_end:
                stop = alive_until(box, box_end, box_owners, dead)
                if stop > box:
                    if run_count == len(spans):
                        return -1, 0
                    spans[run_count, 0] = box
                    spans[run_count, 1] = stop - box
                    spans[run_count, 2] = base
                    spans[run_count, 3] = picked - begin
                    starts[run_count] = begin
                    run_count += 1
                box = stop + 1
        return run_count, picked

    return walk


@njit
def alive_until(box: int, box_end: int, box_owners: Ints32, dead: Flags) -> int:
    """The end of the run of boxes from `box` on whose owners are alive."""
    if len(dead) == 0:
        return box_end
    while box < box_end and dead[box_owners[box]] == 0:
        box += 1
    return box


@njit
def set_lanes(words: Words, start: int, stop: int) -> None:
    """Set exactly the lanes from `start` up to `stop`."""
    for word in range(len(words)):
        low = min(64, max(0, start - word * 64))
        high = min(64, max(0, stop - word * 64))
        ones = np.uint64(0)
        if high > low:
            ones = ~np.uint64(0) >> np.uint64(64 - (high - low)) << np.uint64(low)
        words[word] = ones


@njit
def pick_lanes(words: Words, width: int, first_word: int, lanes: Lanes, picked: int) -> int:
    """Append the numbers of the set bits to `lanes`; up to 8 entries beyond may be overwritten.

    The table writes eight entries for each byte, of which only the set bits count.
    """
    for i in range(width):
        bits = words[i]
        if bits == 0:
            continue
        lane = 64 * (first_word + i)
        if popcount(bits) <= _FEW_BITS:
            while bits != 0:
                lanes[picked] = np.uint16(lane + trailing_zeros(bits))
                picked += 1
                bits &= bits - np.uint64(1)
        else:
            for place in range(8):
                byte = np.int64(bits >> np.uint64(8 * place)) & 255
                put_eight(lanes, picked, _BITS_OF_BYTE, byte, np.uint16(lane + 8 * place))
                picked += popcount(np.uint64(byte))
    return picked
