"""How many examples a test asks for that needs another number than its profile gives."""

from __future__ import annotations

from hypothesis import settings

FEWEST = 5


def examples(usual: int) -> int:
    """Examples in the running profile; `usual` is their number at 100 % (tests/conftest.py)."""
    profile = settings.default.max_examples if settings.default else 100
    return max(min(usual, FEWEST), usual * profile // 100)
