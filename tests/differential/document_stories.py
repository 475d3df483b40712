"""Stories of documents, and a twin that evaluates them with lxml's XPath, one query at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from hypothesis import strategies as st

from penstock.flow.changes import Change, Op
from penstock.testing.scenario import Define, Publish, Step, Subscribe, Withdraw
from penstock.xml_text import load_lxml

etree = load_lxml()

TABLES = (
    "CREATE TABLE news (id BIGINT PRIMARY KEY, place VARCHAR, doc XML)",
    "CREATE TABLE people (name VARCHAR PRIMARY KEY, rank INTEGER)",
    "CREATE STREAM wire (doc XML, place VARCHAR)",
)
NAMES = ("Ada", "Bob", "Cy")
Row = dict[str, Any]


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    label = draw(st.sampled_from(["item", "item", "author", "price", "location", "headline"]))
    if depth == 0 or label in ("price", "location"):
        value = draw(st.sampled_from(["Asia", "1", " 2 ", "3.5", "", "x"]))
        return f"<{label}>{value}</{label}>"
    if label == "author" and draw(st.booleans()):
        return f"<author>{draw(st.sampled_from(NAMES))}</author>"
    below = "".join(draw(st.lists(elements(depth=depth - 1), max_size=4)))
    attribute = draw(st.sampled_from(["", "", ' k="1"', ' k="Ada"']))
    return f"<{label}{attribute}>{below}</{label}>"


documents = elements().map(lambda one: f"<n><!-- c -->{one}</n>") | st.lists(
    elements(), max_size=3
).map(lambda some: f"<n>{''.join(some)}</n>")


def unnested(text: str | None, rows: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """What XMLTABLE gives: texts of attributes, elements as they are."""
    if text is None:
        return
    root = etree.fromstring(text, etree.XMLParser(remove_comments=True))
    seen = set()
    for node in root.getroottree().xpath(rows):
        for values in product(*(node.xpath(column) for column in columns)):
            nodes = tuple(_identity(root, one) for one in values)
            if nodes not in seen:
                seen.add(nodes)
                yield values


def _identity(root: Any, one: Any) -> object:
    if hasattr(one, "attrname"):
        return root.getroottree().getpath(one.getparent()), one.attrname
    return root.getroottree().getpath(one)


def value(one: Any) -> str:
    return str(one) if isinstance(one, str) else str(one.xpath("string()"))


def content(one: Any) -> str:
    return str(etree.tostring(one, method="c14n", exclusive=True, with_tail=False), "utf-8")


def whole_number(one: Any) -> int | None:
    text = value(one).strip()
    return int(text) if text in ("1", "2") else None


@dataclass
class Twin:
    """The tables, by primary key or number."""

    news: dict[Any, Row] = field(default_factory=dict)
    people: dict[Any, Row] = field(default_factory=dict)
    wire: dict[Any, Row] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        table: dict[Any, Row] = getattr(self, change.table)
        if change.table == "wire":
            table[len(table)] = dict(change.row)
            return
        key = change.row["id" if change.table == "news" else "name"]
        if change.op is Op.DELETE:
            del table[key]
        elif change.op is Op.UPDATE:
            table[key] = {**table[key], **change.row}
        else:
            table[key] = dict(change.row)


@dataclass(frozen=True)
class Template:
    """A query with a constant, and what it returns."""

    sql: str
    rows: Callable[[Twin, str], Iterator[tuple[Any, ...]]]
    constants: tuple[str, ...] = NAMES


def _authors(twin: Twin, name: str) -> Iterator[tuple[Any, ...]]:
    path = "//item[location = 'Asia']"
    for row in twin.news.values():
        for author, h in unnested(row["doc"], path, ".//author", ".//headline"):
            if value(author) >= name:
                yield row["id"], value(author), content(h)


def _prices(twin: Twin, least: str) -> Iterator[tuple[Any, ...]]:
    for row in twin.news.values():
        for price, k in unnested(row["doc"], "/n/item", "price", "@k"):
            number = whole_number(price)
            if row["place"] == "here" and number is not None and number >= int(least):
                yield row["id"], row["place"], number, value(k)


def _no_numbers(twin: Twin, _: str) -> Iterator[tuple[Any, ...]]:
    for row in twin.wire.values():
        for (price,) in unnested(row["doc"], "//item", ".//price"):
            if whole_number(price) is None:
                yield row["place"], value(price)


def _ranks(twin: Twin, least: str) -> Iterator[tuple[Any, ...]]:
    for row in twin.news.values():
        for author, price in unnested(row["doc"], "//item", "author", "price"):
            person = twin.people.get(value(author))
            number = whole_number(price)
            if person is not None and (person["rank"] or 0) >= int(least) and number == 1:
                yield row["id"], person["name"], person["rank"]


def _all_ranks(twin: Twin, _: str) -> Iterator[tuple[Any, ...]]:
    for row in twin.news.values():
        for author, item in unnested(row["doc"], "//item", ".//author", "."):
            person = twin.people.get(value(author))
            if person is not None and value(item) >= "A":
                yield row["id"], person["rank"], value(item)


def _pairs(twin: Twin, least: str) -> Iterator[tuple[Any, ...]]:
    for a in twin.news.values():
        for (author,) in unnested(a["doc"], "//item", ".//author"):
            for b in twin.news.values():
                for other, price in unnested(b["doc"], "//item", "author", "price"):
                    number = whole_number(price)
                    same = value(author) == value(other)
                    if same and number is not None and number >= int(least):
                        yield a["id"], b["id"], value(author)


TEMPLATES = (
    Template(
        "SELECT news.id, x.author, x.h FROM news, XMLTABLE('//item[location = ''Asia'']' "
        "PASSING doc COLUMNS author VARCHAR PATH './/author', h XML PATH './/headline') AS x "
        "WHERE x.author >= '{}'",
        _authors,
    ),
    Template(
        "SELECT id, place, x.p, k FROM news CROSS JOIN XMLTABLE('/n/item' PASSING news.doc "
        "COLUMNS p INTEGER PATH 'price', k VARCHAR PATH '@k') AS x "
        "WHERE place = 'here' AND p >= {}",
        _prices,
        ("0", "1", "2"),
    ),
    Template(
        "SELECT place, t FROM wire, XMLTABLE('//item' PASSING doc COLUMNS n BIGINT PATH './/price',"
        " t VARCHAR PATH './/price') AS x WHERE n IS NULL",
        _no_numbers,
    ),
    Template(
        "SELECT n.id, p.name, p.rank FROM news n, XMLTABLE('//item' PASSING n.doc COLUMNS author "
        "VARCHAR PATH 'author', price INTEGER PATH 'price') AS x, people p "
        "WHERE x.author = p.name AND p.rank >= {} AND x.price = 1",
        _ranks,
        ("0", "1", "2"),
    ),
    Template(
        "SELECT n.id, p.rank, x.i FROM people p, news n JOIN XMLTABLE('//item' PASSING n.doc "
        "COLUMNS author VARCHAR PATH './/author', i VARCHAR PATH '.') AS x ON TRUE "
        "WHERE x.author = p.name AND i >= 'A'",
        _all_ranks,
    ),
    Template(
        "SELECT a.id, b.id AS other, x.author FROM news a, XMLTABLE('//item' PASSING a.doc COLUMNS "
        "author VARCHAR PATH './/author') AS x, news b, XMLTABLE('//item' PASSING b.doc COLUMNS "
        "author VARCHAR PATH 'author', price INTEGER PATH 'price') AS y "
        "WHERE x.author = y.author AND y.price >= {}",
        _pairs,
        ("0", "1", "2"),
    ),
)


@dataclass(frozen=True)
class Wanted:
    """A subscription of a story."""

    template: Template
    constant: str

    @property
    def sql(self) -> str:
        return self.template.sql.format(self.constant)

    def content(self, twin: Twin) -> Counter[tuple[Any, ...]]:
        return Counter(self.template.rows(twin, self.constant))


@dataclass
class DocumentStory:
    steps: list[Step] = field(default_factory=list)
    wanted: dict[str, Wanted] = field(default_factory=dict)


@st.composite
def document_stories(draw: st.DrawFn, max_steps: int = 16) -> DocumentStory:
    story = DocumentStory([Define(sql) for sql in TABLES])
    keys: dict[str, set[Any]] = {"news": set(), "people": set()}
    active: list[str] = []
    for number in range(draw(st.integers(4, max_steps))):
        kind = draw(st.integers(0, 9))
        if kind <= 2:
            name = f"s{number}"
            template = draw(st.sampled_from(TEMPLATES))
            story.wanted[name] = Wanted(template, draw(st.sampled_from(template.constants)))
            active.append(name)
            story.steps.append(Subscribe(name, story.wanted[name].sql))
        elif kind == 3 and active:
            story.steps.append(Withdraw(active.pop(draw(st.integers(0, len(active) - 1)))))
        else:
            story.steps.append(Publish((draw(changes(keys)),)))
    return story


@st.composite
def changes(draw: st.DrawFn, keys: dict[str, set[Any]]) -> Change:
    table = draw(st.sampled_from(["news", "news", "news", "people", "wire"]))
    place = draw(st.sampled_from(["here", "there"]))
    document = draw(st.none() | documents | documents | documents)
    if table == "wire":
        return Change("wire", Op.INSERT, {"doc": document, "place": place})
    if table == "people":
        key: Any = draw(st.sampled_from(NAMES))
        row: Row = {"name": key, "rank": draw(st.integers(0, 3))}
        update = dict(row)
    else:
        key = draw(st.integers(1, 3))
        row = {"id": key, "place": place, "doc": document}
        update = {name: row[name] for name in ("id", draw(st.sampled_from(["place", "doc"])))}
    if key not in keys[table]:
        keys[table].add(key)
        return Change(table, Op.INSERT, row)
    op = draw(st.sampled_from([Op.UPDATE, Op.UPDATE, Op.UPSERT, Op.DELETE]))
    if op is Op.DELETE:
        keys[table].discard(key)
        return Change(table, op, {"id" if table == "news" else "name": key})
    return Change(table, op, row if op is Op.UPSERT else update)
