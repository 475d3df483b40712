"""Limits on the size of texts in an expression, checked when it is bound.

Most functions return a text no longer than their arguments. Those that concatenate or replace can
return more: nested, gigabytes from a short row, and no limit of DuckDB stops that in time.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from sqlglot import exp

from penstock.errors import SqlError

MAX_GROWTH = 256
"""Maximum, as a multiple of the row's length. An event has at most 1 MiB, and DuckDB 256 MB
(`MEMORY_LIMIT`)."""
MAX_FIXED = 1 << 20
"""Maximum number of characters that do not come from the row."""
_SHOWN_CHARACTERS = 64  # of a number or a time that is cast to text

_PATTERNS: dict[type[exp.Expr], str] = {
    exp.RegexpLike: "regexp_matches",
    exp.RegexpFullMatch: "regexp_full_match",
    exp.RegexpExtract: "regexp_extract",
    exp.RegexpReplace: "regexp_replace",
    exp.SimilarTo: "SIMILAR TO",
}
"""These compile their pattern, for each row if it is not a constant: seconds for 20,000
characters."""


class _Size(NamedTuple):
    """Bound of a text's length: `growth` times the length of its row, plus `fixed` characters."""

    growth: int
    fixed: int


def check_texts(expression: exp.Expr) -> None:
    """SqlError if a row can make a text of an expression too long to compute, or if a pattern is
    invalid."""
    _size(expression)


def _size(part: exp.Expr) -> _Size:
    if isinstance(part, exp.Column):
        return _Size(1, 0)
    if isinstance(part, exp.Literal):
        return _Size(0, len(part.name))
    if type(part) in _PATTERNS:
        _check_constant(part.expression, "pattern", _PATTERNS[type(part)])
    if isinstance(part, exp.Escape):
        _check_escape(part)
    sizes = [_size(one) for one in part.iter_expressions()]
    size = _Size(*(max(some) for some in zip(*sizes, strict=True))) if sizes else _Size(0, 0)
    if isinstance(part, exp.Concat | exp.DPipe):
        size = _Size(*(sum(some) for some in zip(*sizes, strict=True)))
    elif isinstance(part, exp.Replace | exp.RegexpReplace):
        size = _replaced(part)
    elif isinstance(part, exp.Cast | exp.TryCast):
        size = _Size(size.growth, size.fixed + _SHOWN_CHARACTERS)
    if size.growth > MAX_GROWTH or size.fixed > MAX_FIXED:
        raise SqlError(
            "this expression can give a text that is too long",
            detail=f"at most {MAX_GROWTH} times as long as its row, and {MAX_FIXED:,} characters",
        )
    return size


def _replaced(part: exp.Expr) -> _Size:
    replacement = part.args.get("replacement")
    name = "replace" if isinstance(part, exp.Replace) else "regexp_replace"
    text = _size(part.this)
    if replacement is None:
        return text
    _check_constant(replacement, "replacement", name)
    length = _size(replacement).fixed
    if name == "replace":
        sought = part.expression
        known = len(sought.name) if isinstance(sought, exp.Literal) else 1
        times = max(1, ceil(length / max(1, known)))
        return _Size(text.growth * times, text.fixed * times)
    # A match may be empty, and a replacement may contain matches: \0 takes two characters to write.
    times = length + 1
    return _Size(text.growth * times, (text.fixed + 1) * times)


def _check_constant(part: exp.Expr, what: str, function: str) -> None:
    if part.find(exp.Column) is not None:
        raise SqlError(
            f"the {what} of {function} must be a constant",
            hint="a row could ask for any amount of work",
        )


def _check_escape(part: exp.Escape) -> None:
    """DuckDB fails on such a pattern when it meets a row, whatever surrounds it."""
    pattern, escape = part.this.expression, part.expression
    _check_constant(pattern, "pattern", "LIKE with ESCAPE")
    _check_constant(escape, "character", "ESCAPE")
    if not all(isinstance(one, exp.Literal) and one.is_string for one in (pattern, escape)):
        raise SqlError("LIKE with ESCAPE needs a pattern and a character in single quotes")
    mark = escape.name
    if len(mark.encode()) > 1:
        raise SqlError("ESCAPE needs one character of ASCII, or none")
    if mark and (len(pattern.name) - len(pattern.name.rstrip(mark))) % 2:
        raise SqlError("the pattern of LIKE ends with its escape character")
