"""Matchers for comparison: the brute-force reference, and published structures."""
