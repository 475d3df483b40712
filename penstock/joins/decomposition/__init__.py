"""Choosing how queries over several tables are split into semijoins.

`penstock.spaces` defines decompositions. `greedy` chooses them, `costs` and `simulation` are the
cost models, `statistics` has their input.
"""

from penstock.joins.decomposition.given import fitting

__all__ = ["fitting"]
