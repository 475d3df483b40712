"""All of Penstock in one process, without Spark."""

from penstock.hub.hub import MAX_BATCH_CHANGES, Hub

__all__ = ["MAX_BATCH_CHANGES", "Hub"]
