"""All patterns of a view set as one graph of shared subtrees, which both gears of matching run.

A *state* is a subtree of some pattern without what it returns: a label, a predicate and the states
below it. Equal subtrees of all patterns are one state. A document node satisfies a state if it has
the label and the value, and has children or descendants that satisfy the states below. So a pattern
matches if some node (or the root of the document) satisfies the state of its root, and common parts
of patterns are tested once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.documents.patterns import Axis, Predicate, TreePattern


@dataclass(frozen=True, slots=True)
class State:
    label: str
    predicate: Predicate | None
    below: tuple[tuple[bool, int], ...]
    """The states that must be satisfied below: (by a descendant instead of a child; number of the
    state)."""
    size: int
    """Nodes of the subtree: larger ones are rarer."""


@dataclass(slots=True)
class PatternStates:
    """States in bottom-up order, and the patterns of each."""

    states: list[State] = field(default_factory=list)
    anywhere: dict[int, list[int]] = field(default_factory=dict)
    """By state: the patterns whose root may match anywhere."""
    at_top: dict[int, list[int]] = field(default_factory=dict)
    """By state: the patterns whose root must match the root of the document."""

    @classmethod
    def of(cls, patterns: Sequence[TreePattern]) -> PatternStates:
        found = cls()
        numbers: dict[tuple[object, ...], int] = {}
        for number, pattern in enumerate(patterns):
            root = found._add(pattern, numbers)
            is_anywhere = pattern.nodes[0].axis is Axis.DESCENDANT
            where = found.anywhere if is_anywhere else found.at_top
            where.setdefault(root, []).append(number)
        return found

    def _add(self, pattern: TreePattern, numbers: dict[tuple[object, ...], int]) -> int:
        """Add the states of a pattern; returns the number of its root's."""
        own = [0] * len(pattern)
        nodes, children = pattern.nodes, pattern.children
        for position in range(len(nodes) - 1, -1, -1):
            node = nodes[position]
            below = sorted({(nodes[c].axis is Axis.DESCENDANT, own[c]) for c in children[position]})
            key = (node.label, node.predicate, *below)
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(self.states)
                size = 1 + sum(self.states[state].size for _, state in below)
                self.states.append(State(node.label, node.predicate, tuple(below), size))
            own[position] = number
        return own[0]
