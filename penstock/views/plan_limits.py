"""The limits and weights of a plan of views."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PlanError


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The limits and weights of a plan."""

    feeds: int | None = 30
    """How many others a view may feed; None: any number."""
    source: int | None = None
    """How many views the source may feed; None: those that only it can feed plus a fifth, or as
    many as necessary."""
    rewritings: int = 30
    alpha: float = 1.0
    beta: float = 1.0

    def check(self) -> None:
        if (self.feeds is not None and self.feeds < 0) or (self.source or 0) < 0:
            raise PlanError("A limit is negative", hint="0 means that nobody is fed")
        if self.rewritings < 1:
            raise PlanError("Without rewritings nothing can be planned", hint="let k be 1 or more")
        if min(self.alpha, self.beta) < 0 or self.alpha + self.beta <= 0:
            raise PlanError("The weights of a cost are 0 or more, and not both 0")
