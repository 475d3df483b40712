"""Intervals, boxes and order codes: what a condition becomes once it is understood."""
