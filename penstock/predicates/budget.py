"""How much work a condition may cost before it is refused, counted in steps and not in seconds.

Normal forms can explode, and finding out that one does must not take longer than refusing it is
worth. Whoever multiplies out or simplifies says beforehand how many steps that takes. Reading a
statement counts as well: a long one has less left for its condition.
"""

from __future__ import annotations

MAX_WORK = 2_000_000
"""Steps, each about 0.2 us: a look at one interval of one product. Together less than a second."""
READING_STEPS = 32
"""For each token of a statement: tokenising, parsing and binding it take about 15 us. The longest
statement (50,000 tokens) keeps a fifth of the steps, enough for any condition on one column."""


class TooComplexError(Exception):
    """The condition has, multiplied out, more branches or limits on columns than allowed, or it
    takes too many steps to find out (then both numbers are 0)."""

    def __init__(self, branches: int = 0, size: int = 0) -> None:
        super().__init__(branches, size)
        self.branches = branches
        self.size = size


class Budget:
    """Steps that are left."""

    def __init__(self, steps: int = MAX_WORK) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Before so many steps are made; TooComplexError if that is too many."""
        self.left -= steps
        if self.left < 0:
            raise TooComplexError
