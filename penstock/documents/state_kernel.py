"""The kernel of shared matching: which states a document's nodes satisfy.

Nodes are visited in reverse document order, so all nodes below a node come just before it, and what
they satisfied lies in the lists of the next level. A state is tested only if its trigger is in one
of those lists (or if it is a leaf with the node's label), so the work depends on the satisfied
states, not on the number of patterns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.compiled import inlined, njit

TEST_NONE = 0
TEST_TEXT_EQUAL = 1
TEST_TEXT_OTHER = 2
TEST_NUMBER = 3
"""Plus the index of the operator among =, !=, <, <=, >, >=."""


class StateArrays(NamedTuple):
    """The states of all patterns, and the lists by which they are found."""

    label: NDArray[np.int32]
    test: NDArray[np.int8]
    code: NDArray[np.int32]
    number: NDArray[np.float64]
    below_start: NDArray[np.int64]
    below: NDArray[np.int32]
    """The states required below, except the trigger."""
    is_deep: NDArray[np.bool_]
    is_wanted: Any
    """[0]: as a child by some other state; [1]: as a descendant; [2]: by a pattern, anywhere."""
    leaf_start: Any
    """By label, into `leaves`."""
    leaves: Any
    equal_keys: Any
    """label << 32 | code of the text, sorted; the states are in `equal_leaves`."""
    equal_leaves: Any
    child_start: Any
    """By trigger, into the groups of one label each (`child_label`, `child_group`)."""
    child_label: Any
    child_group: Any
    child_entries: Any
    deep_start: Any
    deep_label: Any
    deep_group: Any
    deep_entries: Any


class Memory(NamedTuple):
    """Working memory. Between calls all bits are 0.

    `child_bits`, by level: what nodes of level l satisfied since the last node of level l - 1;
    `deep_bits`: what they or nodes below them satisfied. Each set is also a list, so that work is
    proportional to its size: `heads[kind, l]` is the first entry (kind 0: children, 1:
    descendants), `pool` holds the state of an entry, `links` the next entry; -1 ends a list.
    """

    words: int
    """Words per bitmap; that of level l begins at l * words."""
    child_bits: NDArray[np.uint64]
    deep_bits: NDArray[np.uint64]
    seen_bits: NDArray[np.uint64]
    heads: NDArray[np.int32]
    pool: NDArray[np.int32]
    links: NDArray[np.int32]
    counters: NDArray[np.int32]
    """The first free entry (or -1), and how many entries were ever used."""
    own: NDArray[np.int32]
    """The states of the current node: at most all states."""
    found: NDArray[np.int32]


@njit
def _passes(test: Any, own_code: Any, own_number: Any, code: Any, number: Any) -> Any:
    """Whether a value passes the predicate of a state."""
    if test == 0:
        return True
    if test == 1:
        return code == own_code
    if test == 2:
        return code != own_code
    if test == 3:
        return number == own_number
    if test == 4:
        return number != own_number
    if test == 5:
        return number < own_number
    if test == 6:
        return number <= own_number
    if test == 7:
        return number > own_number
    return number >= own_number


@njit
def _has(bits: Any, base: Any, state: Any) -> Any:
    return (bits[base + (state >> 6)] >> np.uint64(state & 63)) & np.uint64(1) != np.uint64(0)


@njit
def _set(bits: Any, base: Any, state: Any) -> None:
    bits[base + (state >> 6)] |= np.uint64(1) << np.uint64(state & 63)


@inlined
def _satisfied_leaves(arrays: Any, label: Any, code: Any, number: Any, own: Any) -> Any:
    """States with nothing below; returns how many."""
    count = 0
    for place in range(arrays.leaf_start[label], arrays.leaf_start[label + 1]):
        state = arrays.leaves[place]
        own_code, own_number = arrays.code[state], arrays.number[state]
        if _passes(arrays.test[state], own_code, own_number, code, number):
            own[count] = state
            count += 1
    if code >= 0:
        key = (np.int64(label) << 32) | np.int64(code)
        at = np.searchsorted(arrays.equal_keys, key)
        if at < len(arrays.equal_keys) and arrays.equal_keys[at] == key:
            own[count] = arrays.equal_leaves[at]
            count += 1
    return count


@inlined
def _triggered(
    arrays: Any,
    memory: Any,
    kind: Any,
    below: Any,
    label: Any,
    code: Any,
    number: Any,
    count: Any,
) -> Any:
    """Add the states whose trigger is in a list of the level below; returns the new count."""
    starts = arrays.child_start if kind == 0 else arrays.deep_start
    labels = arrays.child_label if kind == 0 else arrays.deep_label
    groups = arrays.child_group if kind == 0 else arrays.deep_group
    entries = arrays.child_entries if kind == 0 else arrays.deep_entries
    base = below * memory.words
    entry = memory.heads[kind, below]
    # Two helpers are inlined by hand: passing all arrays to a function for every state takes
    # several times as long as testing it.
    while entry >= 0:
        trigger = memory.pool[entry]
        for group in range(starts[trigger], starts[trigger + 1]):
            if labels[group] != label:
                continue
            for place in range(groups[group], groups[group + 1]):
                state = entries[place]
                holds = True
                if arrays.test[state] != 0:
                    own_code, own_number = arrays.code[state], arrays.number[state]
                    holds = _passes(arrays.test[state], own_code, own_number, code, number)
                at = arrays.below_start[state]
                last = arrays.below_start[state + 1]
                while holds and at < last:
                    other = arrays.below[at]
                    bit = np.uint64(1) << np.uint64(other & 63)
                    if arrays.is_deep[at]:
                        holds = memory.deep_bits[base + (other >> 6)] & bit != 0
                    else:
                        holds = memory.child_bits[base + (other >> 6)] & bit != 0
                    at += 1
                if holds:
                    memory.own[count] = state
                    count += 1
        entry = memory.links[entry]
    return count


@inlined
def _leave_level(memory: Any, level: Any) -> None:
    """The lists of the level below: that of children is freed, that of descendants moves up."""
    below = level + 1
    here, there = level * memory.words, below * memory.words
    free = memory.counters[0]
    entry = memory.heads[0, below]
    while entry >= 0:
        memory.child_bits[there + (memory.pool[entry] >> 6)] = np.uint64(0)
        following = memory.links[entry]
        memory.links[entry] = free
        free = entry
        entry = following
    entry = memory.heads[1, below]
    while entry >= 0:
        state = memory.pool[entry]
        memory.deep_bits[there + (state >> 6)] = np.uint64(0)
        following = memory.links[entry]
        if _has(memory.deep_bits, here, state):
            memory.links[entry] = free
            free = entry
        else:
            _set(memory.deep_bits, here, state)
            memory.links[entry] = memory.heads[1, level]
            memory.heads[1, level] = entry
        entry = following
    memory.heads[0, below] = memory.heads[1, below] = -1
    memory.counters[0] = free


@inlined
def _enter_states(memory: Any, bits: Any, is_wanted: Any, kind: Any, level: Any, count: Any) -> Any:
    """Add the states of a node to a list of its level; False if the pool is full."""
    base = level * memory.words
    heads, pool, links, own = memory.heads, memory.pool, memory.links, memory.own
    free, used = memory.counters[0], memory.counters[1]
    is_complete = True
    for place in range(count):
        state = own[place]
        if not is_wanted[kind, state] or _has(bits, base, state):
            continue
        if free >= 0:
            entry = free
            free = links[entry]
        elif used < len(pool):
            entry = used
            used += 1
        else:
            is_complete = False
            break
        _set(bits, base, state)
        pool[entry] = state
        links[entry] = heads[kind, level]
        heads[kind, level] = entry
    memory.counters[0], memory.counters[1] = free, used
    return is_complete


@njit
def run_states(arrays: Any, memory: Any, labels: Any, levels: Any, codes: Any, numbers: Any) -> Any:
    """Returns how many states wanted anywhere are satisfied (in `memory.found`), how many at the
    root (in `memory.own`), and whether the pool was large enough."""
    memory.counters[0], memory.counters[1] = -1, 0
    memory.heads[:] = -1
    count = own_count = 0
    is_complete = True
    for node in range(len(labels) - 1, -1, -1):
        level, label, code, number = levels[node], labels[node], codes[node], numbers[node]
        own_count = 0
        if label >= 0:
            own_count = _satisfied_leaves(arrays, label, code, number, memory.own)
            for kind in range(2):
                own_count = _triggered(
                    arrays, memory, kind, level + 1, label, code, number, own_count
                )
        _leave_level(memory, level)
        wanted = arrays.is_wanted
        for place in range(own_count):
            state = memory.own[place]
            if wanted[2, state] and not _has(memory.seen_bits, 0, state):
                _set(memory.seen_bits, 0, state)
                memory.found[count] = state
                count += 1
        for kind in range(2):
            bits = memory.child_bits if kind == 0 else memory.deep_bits
            is_complete &= _enter_states(memory, bits, wanted, kind, level, own_count)
        if not is_complete:
            break
    for place in range(count):
        memory.seen_bits[memory.found[place] >> 6] = np.uint64(0)
    last = memory.words if is_complete else len(memory.child_bits)
    memory.child_bits[:last] = np.uint64(0)
    memory.deep_bits[:last] = np.uint64(0)
    return count, own_count, is_complete
