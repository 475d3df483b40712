"""Where events come from beside publishers: directories into which files are dropped."""

from penstock.sources.taking import Taker, Took
from penstock.sources.watching import WatchSummary, watch

__all__ = ["Taker", "Took", "WatchSummary", "watch"]
