"""Changes of the rows of a few tables, drawn at random: the shape of each, not its values."""

from __future__ import annotations

from random import Random

from penstock import Change, Op


class DrawnChanges:
    """Knows the keys that there are, so that changes can be applied."""

    def __init__(self, tables: tuple[str, ...]) -> None:
        self._known: dict[str, list[int]] = {table: [] for table in tables}
        self._next = 1

    def draw(self, random: Random) -> Change:
        """An insert, as often as not; else an update or a delete of a row that is there. The row
        has its key only: the caller fills in values, unless it is deleted."""
        table = random.choice(tuple(self._known))
        known = self._known[table]
        op = random.choice((Op.INSERT, Op.INSERT, Op.UPDATE, Op.DELETE))
        if op is Op.INSERT or not known:
            op, key = Op.INSERT, self._next
            self._next += 1
            known.append(key)
        else:
            key = random.choice(known)
        if op is Op.DELETE:
            known.remove(key)
        return Change(table, op, {"id": key})
