"""Kernels of latency optimisation: feeding as linked lists, with exact updates of all latencies.

When a view's rewriting is replaced, only λ(v) has to be compared: if v gets faster, no view
downstream gets slower. The views fed by v are recomputed in topological order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.compiled import njit
from penstock.views.rewriting_kernel import MAX_COVER

_TINY = 1e-12


class Feeding(NamedTuple):
    """A mutable plan. Edge v * MAX_COVER + i is the i-th input of view v."""

    chosen: NDArray[np.int64]
    latency: NDArray[np.float64]
    """Of every view."""
    loads: NDArray[np.int64]
    head: NDArray[np.int64]
    """For every view the first edge to a view it feeds, or -1."""
    after: NDArray[np.int64]
    before: NDArray[np.int64]
    rank: NDArray[np.int64]
    """The position of each view in the topological order."""
    order: NDArray[np.int64]
    heap: NDArray[np.int64]
    is_waiting: NDArray[np.bool_]
    changed: NDArray[np.int64]
    """Views affected by the last change, and their latencies before (`previous`)."""
    previous: NDArray[np.float64]


class Choices(NamedTuple):
    """All rewritings and their costs."""

    starts: NDArray[np.int64]
    input_starts: NDArray[np.int64]
    inputs: NDArray[np.int32]
    local: NDArray[np.float64]
    """The latency that a rewriting adds."""
    cost: NDArray[np.float64]
    capacity: NDArray[np.int64]


@njit
def link(
    head: Any, after: Any, before: Any, loads: Any, inputs: Any, first: Any, last: Any, view: Any
) -> None:
    """Link a view to all its feeders."""
    for at in range(first, last):
        feeder, edge = inputs[at], view * MAX_COVER + at - first
        loads[feeder] += 1
        after[edge] = head[feeder]
        before[edge] = -1
        if head[feeder] >= 0:
            before[head[feeder]] = edge
        head[feeder] = edge


@njit
def unlink(
    head: Any, after: Any, before: Any, loads: Any, inputs: Any, first: Any, last: Any, view: Any
) -> None:
    for at in range(first, last):
        feeder, edge = inputs[at], view * MAX_COVER + at - first
        loads[feeder] -= 1
        if before[edge] >= 0:
            after[before[edge]] = after[edge]
        else:
            head[feeder] = after[edge]
        if after[edge] >= 0:
            before[after[edge]] = before[edge]


@njit
def switch_view(choices: Any, feeding: Any, view: Any, rewriting: Any) -> None:
    """Change the rewriting of a view; latencies are not updated."""
    head, after, before, loads = feeding.head, feeding.after, feeding.before, feeding.loads
    old = feeding.chosen[view]
    first, last = choices.input_starts[old], choices.input_starts[old + 1]
    unlink(head, after, before, loads, choices.inputs, first, last, view)
    first, last = choices.input_starts[rewriting], choices.input_starts[rewriting + 1]
    link(head, after, before, loads, choices.inputs, first, last, view)
    feeding.chosen[view] = rewriting


@njit
def link_all(choices: Any, feeding: Any) -> None:
    for view in range(len(feeding.chosen)):
        rewriting = feeding.chosen[view]
        if rewriting >= 0:
            first, last = choices.input_starts[rewriting], choices.input_starts[rewriting + 1]
            link(
                *(feeding.head, feeding.after, feeding.before, feeding.loads),
                *(choices.inputs, first, last, view),
            )


@njit
def _push(heap: Any, size: Any, rank: Any) -> None:
    at = size
    while at > 0 and heap[(at - 1) >> 1] > rank:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = rank


@njit
def _pop(heap: Any, size: Any) -> Any:
    """Pops the smallest element; `size` is the size before."""
    smallest, last, at = heap[0], heap[size - 1], 0
    while True:
        child = 2 * at + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return smallest


@njit
def spread_latency(choices: Any, feeding: Any, view: Any, latency: Any) -> Any:
    """Set the latency of a view and recompute all views downstream; returns the change of the sum,
    and how many views changed (listed in `changed`)."""
    lam, chosen, heap = feeding.latency, feeding.chosen, feeding.heap
    is_waiting, after, head = feeding.is_waiting, feeding.after, feeding.head
    feeding.changed[0], feeding.previous[0] = view, lam[view]
    total = latency - lam[view]
    lam[view] = latency
    count, waiting = 1, 0
    at = view
    while True:
        edge = head[at]
        while edge >= 0:
            fed = edge // MAX_COVER
            if not is_waiting[fed]:
                is_waiting[fed] = True
                _push(heap, waiting, feeding.rank[fed])
                waiting += 1
            edge = after[edge]
        moved = False
        while waiting > 0 and not moved:
            at = feeding.order[_pop(heap, waiting)]
            waiting -= 1
            is_waiting[at] = False
            rewriting, slowest = chosen[at], 0.0
            for place in range(
                choices.input_starts[rewriting], choices.input_starts[rewriting + 1]
            ):
                slowest = max(slowest, lam[choices.inputs[place]])
            new = slowest + choices.local[rewriting]
            if abs(new - lam[at]) > _TINY:
                feeding.changed[count], feeding.previous[count] = at, lam[at]
                count += 1
                total += new - lam[at]
                lam[at] = new
                moved = True
        if not moved:
            return total, count


@njit
def count_behind(head: Any, after: Any) -> Any:
    """How many views each view feeds, directly or indirectly."""
    views = len(head)
    found = np.zeros(views, np.int64)
    stamp = np.full(views, -1, np.int64)
    stack = np.empty(views, np.int64)
    for view in range(views):
        if head[view] < 0:
            continue
        stack[0], stamp[view], depth = view, view, 1
        while depth:
            depth -= 1
            edge = head[stack[depth]]
            while edge >= 0:
                fed = edge // MAX_COVER
                if stamp[fed] != view:
                    stamp[fed] = view
                    found[view] += 1
                    stack[depth] = fed
                    depth += 1
                edge = after[edge]
    return found


@njit
def _latency_if(choices: Any, feeding: Any, view: Any, rewriting: Any) -> Any:
    """A view's latency with a rewriting; infinite if that overloads a feeder.

    The view's current inputs count as if they did not feed it.
    """
    slowest = 0.0
    old = feeding.chosen[view]
    for at in range(choices.input_starts[rewriting], choices.input_starts[rewriting + 1]):
        feeder = choices.inputs[at]
        if feeding.loads[feeder] >= choices.capacity[feeder]:
            is_present = False
            for place in range(choices.input_starts[old], choices.input_starts[old + 1]):
                is_present |= choices.inputs[place] == feeder
            if not is_present or feeding.loads[feeder] > choices.capacity[feeder]:
                return np.inf
        slowest = max(slowest, feeding.latency[feeder])
    return slowest + choices.local[rewriting]


@njit
def loga_pass(choices: Any, feeding: Any, views: Any) -> Any:
    """Give each view in turn its fastest rewriting; returns how many moved, and the change of the
    sum."""
    moves, total = 0, 0.0
    for view in views:
        old = feeding.chosen[view]
        if old < 0:
            continue
        best, choice = feeding.latency[view] - _TINY, old
        for rewriting in range(choices.starts[view], choices.starts[view + 1]):
            if rewriting == old or choices.local[rewriting] >= best:
                continue
            latency = _latency_if(choices, feeding, view, rewriting)
            if latency < best:
                best, choice = latency, rewriting
        if choice != old:
            switch_view(choices, feeding, view, choice)
            change, _ = spread_latency(choices, feeding, view, best)
            moves += 1
            total += change
    return moves, total


@njit
def _next_random(state: Any) -> Any:
    """A pseudo-random number in [0, 1) (splitmix64): the same on every machine."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return np.float64(mixed >> np.uint64(11)) / 9007199254740992.0


@njit
def anneal(
    choices: Any,
    feeding: Any,
    views: Any,
    steps: Any,
    hot: Any,
    cold: Any,
    weight: Any,
    seed: Any,
) -> Any:
    """Random replacements that are kept if Σλ + weight·U falls, or by chance if it rises a little;
    returns how many were kept."""
    random = np.array([seed], np.uint64)
    kept = 0
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        view = views[np.int64(_next_random(random) * len(views))]
        old = feeding.chosen[view]
        count = choices.starts[view + 1] - choices.starts[view]
        rewriting = choices.starts[view] + np.int64(_next_random(random) * count)
        if rewriting == old:
            continue
        latency = _latency_if(choices, feeding, view, rewriting)
        if latency == np.inf:
            continue
        extra = weight * (choices.cost[rewriting] - choices.cost[old])
        allowed = -heat * np.log(_next_random(random) + 1e-300)
        slower = latency - feeding.latency[view]
        if slower >= 0 and slower + extra > allowed:
            continue  # the views downstream only make it worse
        switch_view(choices, feeding, view, rewriting)
        change, count = spread_latency(choices, feeding, view, latency)
        if change + extra <= allowed:
            kept += 1
            continue
        for place in range(count):
            feeding.latency[feeding.changed[place]] = feeding.previous[place]
        switch_view(choices, feeding, view, old)
    return kept
