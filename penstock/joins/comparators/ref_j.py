"""`ref-j`: every join row is sent, found by its values (Chandramouli and Yang, 2008, 2.3)."""

from __future__ import annotations

from penstock.joins.comparators.structures.pairs import JoinRowScheme


class RefJ(JoinRowScheme):
    name = "ref-j"
    only_wanted = False


SCHEME = RefJ
