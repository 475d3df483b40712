"""How many examples a test asks for that needs another number than its profile gives."""

from __future__ import annotations

from hypothesis import settings

FEWEST = 5


def examples(usual: int) -> int:
    """So many in a full run, a tenth of it in a quick one, and more where there is patience."""
    profile = settings.default.max_examples if settings.default else 100
    return max(FEWEST, usual * profile // 100)
