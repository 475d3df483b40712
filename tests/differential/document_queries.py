"""Random queries with XMLTABLE: several of them, expressions, operators, payloads and joins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from penstock.flow.changes import Change, Op
from penstock.testing.scenario import Define, Publish, Step, Subscribe, Withdraw
from tests.differential.document_stories import NAMES
from tests.differential.stories import Story

TABLES = (
    "CREATE TABLE news (id BIGINT PRIMARY KEY, place VARCHAR, n INTEGER, doc XML, more XML)",
    "CREATE TABLE people (name VARCHAR PRIMARY KEY, rank INTEGER)",
    "CREATE STREAM wire (doc XML, place VARCHAR, n INTEGER)",
)
OF_ITEMS = (
    ("author", "VARCHAR", ".//author"),
    ("price", "INTEGER", "price"),
    ("place", "VARCHAR", "@k"),
    ("n", "INTEGER", ".//price"),
    ("part", "XML", "."),
)
OF_ALL = (
    ("author", "VARCHAR", "item/author"),
    ("price", "DOUBLE", "item/price"),
    ("place", "VARCHAR", ".//location"),
    ("part", "XML", "item"),
)
VIEWS = {
    "//item": OF_ITEMS,
    "/n/item": OF_ITEMS,
    "//item[location]": OF_ITEMS,
    "//item[.//price > 1]": OF_ITEMS,
    "/item": OF_ITEMS,
    "//n": OF_ALL,
    "/n": OF_ALL,
}
"""Row paths and columns; some are called as columns of the tables are."""
WHOLE = tuple(one for one in VIEWS if one != "/item")
OF_TEXTS = ("{0} >= 'B'", "upper({0}) = 'ADA'", "length({0}) < 3", "{0} LIKE '%d%'", "{0} IS NULL")
OF_NUMBERS = ("{0} > 1", "{0} + 1 = 2", "abs({0} - 2) = 1", "{0} IS NULL", "{0} BETWEEN 1 AND 2")
CALLS_OF_TEXTS = ("hasLetter({0}, 'd')", "NOT hasLetter({0}, 'A')")
CALLS_OF_NUMBERS = ("isOdd({0})", "isLucky({0})", "near({0}, 1)", "isAbsent({0})")
SHOWN = {"VARCHAR": "lower({0})", "INTEGER": "{0} * 2", "DOUBLE": "{0} + 1"}


@dataclass(frozen=True)
class _Column:
    name: str
    kind: str


@dataclass
class _Query:
    source: str
    columns: list[_Column] = field(default_factory=list)


@st.composite
def document_queries(draw: st.DrawFn, calls: bool) -> str:
    table = draw(st.sampled_from(["news"] * 6 + ["wire"]))
    query = _Query(f"{table} t", [_Column("t.n", "INTEGER")])
    passed = ["t.doc", "t.more"] if table == "news" else ["t.doc"]
    for number in range(draw(st.sampled_from([1, 1, 2, 2, 3]))):
        alias = f"x{number}"
        passing = draw(st.sampled_from(passed))
        is_whole = passing.startswith("t.")
        paths = [
            one
            for one in VIEWS
            if is_whole != (one == "/item") and (is_whole or "n" not in one[1:3])
        ]
        rows = draw(st.sampled_from(paths))
        columns = draw(st.lists(st.sampled_from(VIEWS[rows]), min_size=1, max_size=2, unique=True))
        listed = ", ".join(f"{name} {kind} PATH '{path}'" for name, kind, path in columns)
        between = draw(st.sampled_from([", ", " CROSS JOIN "]))
        query.source += f"{between}XMLTABLE('{rows}' PASSING {passing} COLUMNS {listed}) AS {alias}"
        query.columns += [_Column(f"{alias}.{name}", kind) for name, kind, _ in columns]
        passed += [f"{alias}.{name}" for name, kind, _ in columns if kind == "XML"]
    return draw(_select(query, calls))


@st.composite
def _select(draw: st.DrawFn, query: _Query, calls: bool) -> str:
    conditions = draw(st.lists(_conditions(query, calls), max_size=1))
    texts = [one.name for one in query.columns if one.name.endswith(".author")]
    joined = bool(texts) and draw(st.integers(0, 2)) == 0
    if joined:
        query.source += ", people p"
        conditions.append(f"p.name = {draw(st.sampled_from(texts))}")
        query.columns.append(_Column("p.rank", "INTEGER"))
    shown = draw(st.lists(st.sampled_from(query.columns), min_size=1, max_size=3, unique=True))
    computed = {i for i, one in enumerate(shown) if one.kind in SHOWN and draw(st.booleans())}
    items = [
        f"{SHOWN[one.kind].format(one.name) if i in computed else one.name} AS c{i}"
        for i, one in enumerate(shown)
    ]
    documents_shown = [one for one in shown if one.kind == "XML"]
    hint = ""
    if documents_shown and not joined and draw(st.booleans()):
        name = documents_shown[0].name.partition(".")[2]
        hint = f"/*+ payload({name}) */ " if _is_only(query, name) else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {hint}{', '.join(items)} FROM {query.source}{where}"


def _is_only(query: _Query, name: str) -> bool:
    """Whether a name stands for one column: hints name columns without their table."""
    return sum(one.name.partition(".")[2] == name for one in query.columns) == 1


@st.composite
def _conditions(draw: st.DrawFn, query: _Query, calls: bool) -> str:
    plain = [one for one in query.columns if one.kind != "XML"]
    column = draw(st.sampled_from(plain))
    alike = [one for one in plain if one.kind == column.kind and one != column]
    if alike and draw(st.integers(0, 3)) == 0:
        return f"{column.name} = {draw(st.sampled_from(alike)).name}"
    is_text = column.kind == "VARCHAR"
    forms = list(OF_TEXTS if is_text else OF_NUMBERS)
    if calls and column.kind != "DOUBLE":
        forms += CALLS_OF_TEXTS if is_text else CALLS_OF_NUMBERS
    parts = draw(st.lists(st.sampled_from(forms), min_size=1, max_size=2))
    return "(" + " OR ".join(one.format(column.name) for one in parts) + ")"


@st.composite
def _items(draw: st.DrawFn, depth: int = 1) -> str:
    k = draw(st.sampled_from([' k="1"', ' k="Ada"', ""]))
    price = draw(st.sampled_from(["<price>1</price>", "<price>2</price>", "<price>x</price>"]))
    authors = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2))
    below = "".join(f"<author>{one}</author>" for one in authors) + price
    if draw(st.booleans()):
        below += "<location>Asia</location>"
    if depth and draw(st.integers(0, 2)) == 0:
        below += draw(_items(depth - 1))
    return f"<item{k}>{below}</item>"


documents = st.lists(_items(), min_size=1, max_size=2).map(lambda some: f"<n>{''.join(some)}</n>")


@st.composite
def query_stories(draw: st.DrawFn, *, calls: bool = False, max_steps: int = 10) -> Story:
    """Two queries and two documents to begin with; then documents change, mostly."""
    steps: list[Step] = [Define(sql) for sql in TABLES]
    keys: dict[str, set[Any]] = {"news": set(), "people": set()}
    active: list[str] = []
    kinds = ["news"] * 6 + ["query", "withdraw", "people", "wire"]
    more = draw(st.lists(st.sampled_from(kinds), min_size=3, max_size=max_steps))
    for kind in ["query", "news", "people", "query", "news", *more]:
        one = draw(_step(kind, keys, active, calls))
        steps += [] if one is None else [one]
    return Story(steps)


@st.composite
def _step(
    draw: st.DrawFn, kind: str, keys: dict[str, set[Any]], active: list[str], calls: bool
) -> Step | None:
    if kind == "withdraw":
        return None if not active else Withdraw(active.pop(draw(st.integers(0, len(active) - 1))))
    if kind == "query":
        active.append(f"s{draw(st.uuids())}")
        return Subscribe(active[-1], draw(document_queries(calls)))
    return Publish((draw(_changes(kind, keys)),))


@st.composite
def _changes(draw: st.DrawFn, table: str, keys: dict[str, set[Any]]) -> Change:
    if table == "people":
        key: Any = draw(st.sampled_from(NAMES))
        row: dict[str, Any] = {"name": key, "rank": draw(st.integers(0, 3))}
    else:
        row = {
            "place": "here",
            "n": draw(st.sampled_from([1, 2, None])),
            "doc": draw(documents | documents | documents | st.none()),
        }
        if table == "wire":
            return Change("wire", Op.INSERT, row)
        key = draw(st.integers(1, 2))
        row = {"id": key, **row, "more": draw(documents | st.none())}
    if key not in keys[table]:
        keys[table].add(key)
        return Change(table, Op.INSERT, row)
    op = draw(st.sampled_from([Op.UPDATE, Op.UPDATE, Op.UPDATE, Op.UPSERT, Op.DELETE]))
    name = next(iter(row))
    if op is Op.DELETE:
        keys[table].discard(key)
        return Change(table, op, {name: key})
    changed = (
        draw(st.sampled_from(["place", "n", "doc", "doc", "more"])) if "doc" in row else "rank"
    )
    return Change(table, op, row if op is Op.UPSERT else {k: row[k] for k in (name, changed)})
