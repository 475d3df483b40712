"""Matchers that exist for comparison: the brute-force twin, and published structures."""
