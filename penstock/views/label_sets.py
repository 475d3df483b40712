"""Subset search: which of many label sets are contained in one, by the paper's set trie or buckets.

Both answer the same question. A *set trie* (Hoffmann and Koehler, 1999) stores sorted sets as paths
and follows only labels of the query. *Buckets* store each set under its rarest label and test the
sets in the buckets of the query's labels, the smallest first. Buckets visit more sets and are a
little faster (docs/notes/views.md has the figures), so the graphs use them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Protocol

LabelSet = frozenset[Hashable]


class SubsetIndex(Protocol):
    """Built once from sets; finds the numbers of those contained in a query."""

    def subsets_of(self, query: LabelSet) -> Iterator[int]: ...


class LabelBuckets:
    """Implements `SubsetIndex` by the rarest label of each set."""

    def __init__(self, sets: Sequence[LabelSet]) -> None:
        frequency = Counter(label for one in sets for label in one)
        self.sets = sets
        self.unlabelled = [number for number, one in enumerate(sets) if not one]
        self.buckets: dict[Hashable, list[int]] = {}
        for number, one in enumerate(sets):
            if one:
                rarest = min(one, key=lambda label: (frequency[label], repr(label)))
                self.buckets.setdefault(rarest, []).append(number)
        for bucket in self.buckets.values():
            bucket.sort(key=lambda number: len(sets[number]))

    def subsets_of(self, query: LabelSet) -> Iterator[int]:
        yield from self.unlabelled
        for label in query:
            for number in self.buckets.get(label, ()):
                if len(self.sets[number]) > len(query):
                    break
                if self.sets[number] <= query:
                    yield number


class SetTrie:
    """Implements `SubsetIndex` by a trie of sorted sets."""

    def __init__(self, sets: Sequence[LabelSet]) -> None:
        frequency = Counter(label for one in sets for label in one)
        self.order = {
            label: place
            for place, label in enumerate(
                sorted(frequency, key=lambda label: (frequency[label], repr(label)))
            )
        }
        self.root = _TrieNode()
        for number, one in enumerate(sets):
            node = self.root
            for label in sorted(one, key=lambda label: self.order[label]):
                node = node.children.setdefault(label, _TrieNode())
            node.ends.append(number)

    def subsets_of(self, query: LabelSet) -> Iterator[int]:
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield from node.ends
            stack.extend(child for label, child in node.children.items() if label in query)


class _TrieNode:
    __slots__ = ("children", "ends")

    def __init__(self) -> None:
        self.children: dict[Hashable, _TrieNode] = {}
        self.ends: list[int] = []
