"""The interface of a view language: labels, embedding, coverage, cost.

Code that uses this interface (graphs, rewritings, plans, incremental changes) knows nothing of
documents. A view *embeds* in a query if every match of the query contains a match of the view. The
attributes of the query that the view provides are its *coverage*, as a bit mask. Views whose
coverages together contain all that the query *demands* can be joined to feed it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple, Protocol, TypeVar

V = TypeVar("V", contravariant=True)

MASK_BITS = 64
"""Coverage is one machine word in kernels."""


class Volume(NamedTuple):
    """The average size of a view's results per document or event."""

    rows: float
    bytes: float


class ViewLanguage(Protocol[V]):
    """A language of views. Embedding must be transitive: cycle removal relies on it."""

    def labels(self, view: V) -> frozenset[Hashable]:
        """If a view embeds in a query, its labels are among those of the query."""
        ...

    def demands(self, query: V) -> int:
        """The attributes of a query that must be covered."""
        ...

    def embeds(self, view: V, query: V) -> int:
        """The attributes of the query that the view covers; 0 if it does not embed."""
        ...

    def cost(self, view: V) -> Volume:
        """The estimated size of a view's results, from measured statistics."""
        ...


def covers(coverages: Iterable[int], demands: int) -> bool:
    """Whether coverages together contain all demanded attributes."""
    covered = 0
    for coverage in coverages:
        covered |= coverage
    return covered & demands == demands
