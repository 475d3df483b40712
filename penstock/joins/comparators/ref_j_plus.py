"""`ref-j+`: every join row that somebody wants is sent (Chandramouli and Yang, 2008, 2.3)."""

from __future__ import annotations

from penstock.joins.comparators.structures.pairs import JoinRowScheme


class RefJPlus(JoinRowScheme):
    name = "ref-j+"
    only_wanted = True


SCHEME = RefJPlus
