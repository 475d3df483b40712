"""The maximum work for a condition before it is refused, counted in steps, not in seconds.

Normal forms can explode, and detecting that must be cheap. Code that multiplies out or simplifies
spends its steps from the budget beforehand. Parsing a statement counts as well: a long statement
has fewer steps left for its condition.
"""

from __future__ import annotations

MAX_WORK = 2_000_000
"""Steps, each about 0.2 us: reading one interval of one product. Less than a second in total."""
READING_STEPS = 32
"""Steps per token of a statement: tokenising, parsing and binding it take about 15 us. The longest
statement (50,000 tokens) keeps a fifth of the steps, enough for any condition on one column."""


class TooComplexError(Exception):
    """The condition has, multiplied out, more branches or limits on columns than allowed, or it
    takes too many steps to find out (then both numbers are 0)."""

    def __init__(self, branches: int = 0, size: int = 0) -> None:
        super().__init__(branches, size)
        self.branches = branches
        self.size = size


class Budget:
    """The remaining steps."""

    def __init__(self, steps: int = MAX_WORK) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Call before making `steps` steps; TooComplexError if they exceed the budget."""
        self.left -= steps
        if self.left < 0:
            raise TooComplexError
