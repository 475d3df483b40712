"""The data model of reproductions: papers, items, claims, verdicts, findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

Row = dict[str, object]
"""A row of a table: our values, and the paper's in columns that start with `paper`."""


class Size(StrEnum):
    SMALL = "small"
    """Seconds: for tests."""
    FULL = "full"
    """As published."""


class Verdict(StrEnum):
    HOLDS = "holds"
    FAILS = "fails"
    NOT_REPRODUCED = "not reproduced"
    """It does not hold here, for a known reason."""
    NOT_BUILT = "not built"


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    detail: str

    @property
    def text(self) -> str:
        return f"{self.verdict}{': ' if self.detail else ''}{self.detail}"


Check = Callable[[Sequence[Row]], tuple[bool, str]]
"""Whether the rows of an item support a claim, and the figures for it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper, or of ours, that can be refuted."""

    text: str
    check: Check
    gap: str = ""
    """Why it is known not to hold here. If it holds all the same, it counts as holding."""
    is_ours: bool = False
    sizes: frozenset[Size] = frozenset(Size)
    """The sizes at which it is checked: some statements are about one size."""

    def judge(self, rows: Sequence[Row]) -> Judgement:
        holds, figures = self.check(rows)
        if holds:
            return Judgement(Verdict.HOLDS, figures)
        if self.gap:
            return Judgement(Verdict.NOT_REPRODUCED, f"because {self.gap} ({figures})")
        return Judgement(Verdict.FAILS, figures)


Report = Callable[[str], None]
"""Called with what is being done now."""
Experiment = Callable[[Size, Report], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Plot:
    """The columns of a plot: one line per series, or bars if there is one x or it is text."""

    x: str
    y: str
    series: str = "series"
    paper: str = "paper"
    """The column with the paper's points."""
    interval: str = "interval_95"
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """A table, a figure or a theorem of a paper, and how to reproduce it."""

    name: str
    title: str
    experiment: Experiment | None = None
    """None: not built."""
    columns: tuple[str, ...] = ()
    """The columns of the table on the page; empty: all."""
    claims: tuple[Claim, ...] = ()
    plot: Plot | None = None
    seconds: Mapping[Size, float] = field(default_factory=dict)
    """Approximate duration, on two idle cores."""
    commands: Mapping[Size, str] = field(default_factory=dict)
    """Another command that prints the same numbers; by default `penstock lab paper` does."""
    sizes: Mapping[Size, str] = field(default_factory=dict)
    """What `small` and `full` mean here."""


@dataclass(frozen=True, slots=True)
class Paper:
    name: str
    title: str
    citation: str
    items: tuple[Item, ...]
    assumptions: tuple[str, ...] = ()
    """What the paper leaves open, and what was chosen."""

    def only(self, beginnings: Sequence[str]) -> Paper:
        """Only the items whose names begin so, as whole words: not figure 18 for figure 1."""
        chosen = tuple(
            item
            for item in self.items
            if any(re.match(rf"{re.escape(one)}\b", item.name) for one in beginnings)
        )
        return replace(self, items=chosen)


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one item."""

    item: Item
    rows: Sequence[Row] = ()
    judgements: Sequence[tuple[Claim | None, Judgement]] = ()
    seconds: float = 0.0

    def count(self, verdict: Verdict) -> int:
        return sum(judgement.verdict is verdict for _, judgement in self.judgements)
