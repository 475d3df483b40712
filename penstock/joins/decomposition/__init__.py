"""Choosing how queries over several tables are split into semijoins.

What a decomposition is says `penstock.spaces`. How one is chosen is in `greedy`, by what cost in
`costs` and `simulation`, and on what knowledge in `statistics`.
"""

from penstock.joins.decomposition.given import fitting

__all__ = ["fitting"]
