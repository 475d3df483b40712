"""How events get into the log: input formats, and directories into which files are dropped."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.ingest.taking import FileIngest, IngestResult
    from penstock.ingest.watching import WatchSummary, watch

__all__ = ["FileIngest", "IngestResult", "WatchSummary", "watch"]

# Loaded on first use: reading a format needs neither the registry nor SQLite.
_MODULES = {
    "FileIngest": "taking",
    "IngestResult": "taking",
    "WatchSummary": "watching",
    "watch": "watching",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
