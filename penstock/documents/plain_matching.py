"""The plain gear of shared matching: sets of states, from the leaves of a document to its root."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.documents.document import Document
from penstock.documents.pattern_states import PatternStates, State
from penstock.documents.patterns import TreePattern


class PlainMatcher:
    """Which of many patterns match a document. Immutable and thread-safe."""

    def __init__(self, patterns: Sequence[TreePattern]) -> None:
        self.shared = PatternStates.of(patterns)
        self.by_label: dict[str, list[int]] = {}
        for number, state in enumerate(self.shared.states):
            self.by_label.setdefault(state.label, []).append(number)

    def matching(self, document: Document) -> list[int]:
        """The numbers of the patterns that match, sorted."""
        states, satisfied = self.shared.states, set()
        levels = max(document.levels) + 2
        children: list[set[int]] = [set() for _ in range(levels)]
        descendants: list[set[int]] = [set() for _ in range(levels)]
        top: set[int] = set()
        # In reverse document order all nodes below a node come just before it.
        for node in range(len(document) - 1, -1, -1):
            level = document.levels[node]
            own = {
                number
                for number in self.by_label.get(document.labels[node], ())
                if _is_satisfied(
                    states[number], document, node, children[level + 1], descendants[level + 1]
                )
            }
            children[level] |= own
            descendants[level] |= own | descendants[level + 1]
            children[level + 1].clear()
            descendants[level + 1].clear()
            satisfied |= own
            top = own
        found = [p for state in satisfied for p in self.shared.anywhere.get(state, ())]
        found += [p for state in top for p in self.shared.at_top.get(state, ())]
        return sorted(found)


def _is_satisfied(
    state: State, document: Document, node: int, children: set[int], descendants: set[int]
) -> bool:
    if state.predicate is not None and not state.predicate.accepts(document.value(node)):
        return False
    return all(
        number in (descendants if is_descendant else children)
        for is_descendant, number in state.below
    )
