"""Optional libraries of the operators: named when missing, loaded where rows are evaluated."""

from __future__ import annotations

from importlib.util import find_spec

from penstock.errors import ExtraError

EXTRA = "operators"


def require(library: str, module: str, feature: str) -> None:
    """ExtraError unless a library is installed. It is not loaded: processes that only bind
    subscriptions do not need it."""
    if find_spec(module) is None:
        raise ExtraError(feature, library, EXTRA)
