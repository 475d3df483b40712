"""Where events come from beside publishers: directories into which files are dropped."""

from penstock.ingest.taking import FileIngest, IngestResult
from penstock.ingest.watching import WatchSummary, watch

__all__ = ["FileIngest", "IngestResult", "WatchSummary", "watch"]
