"""Spark batch jobs over the whole log: what would have been, and what was usual."""
