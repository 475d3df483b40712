"""`ref-j`: every join row is sent to a region (Chandramouli and Yang, 2008, 2.3)."""

from __future__ import annotations

from penstock.joins.comparators.structures.join_row_halves import JoinRowScheme


class RefJ(JoinRowScheme):
    name = "ref-j"
    only_wanted = False


SCHEME = RefJ
