"""`ref-j+`: only join rows that some subscription wants (Chandramouli and Yang, 2008, 2.3)."""

from __future__ import annotations

from penstock.joins.comparators.structures.join_row_halves import JoinRowScheme


class RefJPlus(JoinRowScheme):
    name = "ref-j+"
    only_wanted = True


SCHEME = RefJPlus
