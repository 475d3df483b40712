"""Spark batch jobs over the whole log: backtests and statistics."""
