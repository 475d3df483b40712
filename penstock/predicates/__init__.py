"""Intervals, boxes and order codes: the normal form of conditions."""
