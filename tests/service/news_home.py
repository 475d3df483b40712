"""A home with news whose documents change, and views over them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from penstock import Hub

TABLE = "CREATE TABLE news (id BIGINT PRIMARY KEY, doc XML)"
SECTIONS = ("sport", "world", "arts")
NAMES = ("Ada", "Bob", "Cy")
PATHS = (
    ("//article", ("headline", "author")),
    ("//article", ("headline",)),
    ("//article", (".//name",)),
    ("//article[section = 'sport']", ("headline",)),
    ("//article[section = 'sport']", ("headline", "author/name")),
    ("//article[author]", ("headline", "section")),
    ("//author", ("name",)),
    ("//news/article", ("section", "headline")),
)


def view_sql(path: str, columns: tuple[str, ...], *, kind: str = "VARCHAR") -> str:
    listed = ", ".join(f"c{i} {kind} PATH '{one}'" for i, one in enumerate(columns))
    shown = ", ".join(f"x.c{i}" for i in range(len(columns)))
    quoted = path.replace("'", "''")
    return (
        f"SELECT news.id, {shown} FROM news, XMLTABLE('{quoted}' PASSING doc COLUMNS {listed}) AS x"
    )


VIEWS = [
    *(view_sql(path, columns) for path, columns in PATHS),
    *(view_sql(path, columns, kind="XML") for path, columns in PATHS[:3]),
    *(view_sql(path, columns) for path, columns in PATHS[:4]),
    view_sql("//article", ("headline", "section"), kind="INTEGER"),
]


class NewsHome:
    """Changes come from a seed. Use as a context manager."""

    def __init__(self, path: Path, seed: int = 1) -> None:
        self.path = path
        self.random = Random(seed)
        self.hub = Hub(path)
        self.hub.execute(TABLE)
        self.ids: list[int] = []
        self.next = 1

    def __enter__(self) -> NewsHome:
        return self

    def __exit__(self, *error: object) -> None:
        self.hub.close()

    def subscribe(self, sql: str) -> int:
        return self.hub.subscribe(sql).id

    def change(self, times: int = 1) -> None:
        for _ in range(times):
            what = self.random.choice(("insert", "insert", "update", "delete"))
            if what == "insert" or not self.ids:
                self.ids.append(self.next)
                self.hub.insert("news", {"id": self.next, "doc": self.document()})
                self.next += 1
            elif what == "update":
                row = {"id": self.random.choice(self.ids), "doc": self.document()}
                self.hub.update("news", row)
            else:
                gone = self.ids.pop(self.random.randrange(len(self.ids)))
                self.hub.delete("news", {"id": gone})

    def document(self) -> str:
        return f"<news>{''.join(self._article() for _ in range(self.random.randrange(4)))}</news>"

    def _article(self) -> str:
        draw = self.random
        author = (
            f"<author><name>{draw.choice(NAMES)}</name></author>" if draw.random() < 0.7 else ""
        )
        section = f"<section>{draw.choice(SECTIONS)}</section>" if draw.random() < 0.8 else ""
        return f"<article><headline>{draw.randrange(99)}</headline>{author}{section}</article>"

    def content(self, number: int) -> Counter[tuple[object, ...]]:
        """What the home itself returns for a subscription."""
        rows = self.hub.subscription(number).content()
        return Counter(tuple(row.values()) for row in rows)
