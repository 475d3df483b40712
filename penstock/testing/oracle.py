"""DuckDB as a test double: `penstock verify` uses the same one."""

from penstock.maintenance import Oracle, comparable

__all__ = ["Oracle", "comparable"]
