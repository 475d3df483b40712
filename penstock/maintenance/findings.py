"""What a check of a home can find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from penstock.errors import PenstockError

Advance: TypeAlias = Callable[[int, int], None]
"""Takes how much is done, and how much there is in all."""
Step: TypeAlias = Callable[[str], AbstractContextManager[Advance]]
"""Something begins that takes a while: what."""


class Severity(StrEnum):
    DAMAGE = "damage"
    """A file is not as it was written, or is missing."""
    DIFFERENCE = "difference"
    """All files are whole, and yet they do not say the same."""
    REMARK = "remark"
    """Worth knowing; nothing has to be done."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: where, what, and what to do about it."""

    severity: Severity
    where: str
    what: str
    hint: str = ""


def damage(where: Path | str, what: str, hint: str) -> Finding:
    return Finding(Severity.DAMAGE, str(where), what, hint)


def difference(where: Path | str, what: str, hint: str) -> Finding:
    return Finding(Severity.DIFFERENCE, str(where), what, hint)


def remark(where: Path | str, what: str, hint: str = "") -> Finding:
    return Finding(Severity.REMARK, str(where), what, hint)


def damage_of(where: Path, error: PenstockError) -> Finding:
    """What reading a file said."""
    return damage(where, error.primary, error.hint or "restore this file from a backup")
