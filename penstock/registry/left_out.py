"""Rows missing from contents because an operator failed on them in the initial content."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from penstock.operators.journal import LeftOut
from penstock.operators.journal_file import journal_of
from penstock.registry.lookup import Lookup


def rows_left_out(home: Path, known: Lookup) -> dict[int, list[LeftOut]]:
    """By subscription, of those present."""
    found: dict[int, list[LeftOut]] = {}
    with closing(journal_of(home)) as journal:
        for one in journal.left_out():
            found.setdefault(one.subscription, []).append(one)
    gone = {one.id for one in known.numbered(list(found)) if one.withdrawn_at is not None}
    return {number: rows for number, rows in found.items() if number not in gone}
