"""Compiled loops over flat arrays of codes, each with a plain reference for the tests."""
