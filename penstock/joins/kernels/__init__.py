"""Compiled loops over flat arrays of codes, each beside a plain reference that tests compare."""
