"""Documents in tables: what is refused, what a home keeps, and what SQL says about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Hub
from penstock.errors import ChangeError, ExtraError, NotYetError, SqlError
from penstock.sql import parse_declaration
from penstock.storage import Home
from penstock.testing import LocalPipeline
from penstock.testing.scenario import Bad, Define, Subscribe
from tests.pipeline.telling import Teller, values_of

NEWS = "CREATE TABLE news (id BIGINT PRIMARY KEY, doc XML)"
AUTHORS = (
    "SELECT news.id, x.author FROM news, XMLTABLE('//item' PASSING doc "
    "COLUMNS author VARCHAR PATH './/author', year INTEGER PATH '@year') AS x"
)
ADA = "<n><item year='1843'><author>Ada</author></item></n>"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as one:
        one.execute(NEWS)
        yield one


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ('<!DOCTYPE a [<!ENTITY x "ha">]><a>&x;</a>', "document type declaration"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "document type declaration"),
        ("<a>&undeclared;</a>", "not well-formed"),
        ("<a>" * 201 + "</a>" * 201, "nested too deeply"),
        ("<a>" + "x" * (2 << 20) + "</a>", "bytes; at most"),
        ("<a>\ud800</a>", "not Unicode"),
        ("", "not well-formed"),
        ("<a>", "not well-formed"),
        (7, "is not a XML"),
    ],
)
def test_bad_documents_are_refused(hub: Hub, document: object, reason: str) -> None:
    mine = hub.subscribe(AUTHORS)
    with pytest.raises(ChangeError, match=reason):
        hub.insert("news", {"id": 1, "doc": document})
    hub.insert("news", {"id": 1, "doc": ADA})
    assert list(mine.content()) == [{"id": 1, "author": "Ada"}]


@pytest.mark.parametrize("gear", ["plain", "fast"])
def test_bad_documents_of_a_log_are_quarantined(
    tmp_path: Path, gear: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_GEAR", gear)
    teller = Teller(Home.create(tmp_path / "home"))
    teller.tell([Define(NEWS), Subscribe("authors", AUTHORS)])
    for number, document in enumerate(("<a>", ADA, "", None, "<!DOCTYPE a><a/>")):
        row = {"id": number, "doc": document}
        teller.tell([Bad(json.dumps({"table": "news", "row": row}).encode())])
    LocalPipeline(teller.home).run()
    found = teller.content("authors")
    assert found is not None
    assert list(values_of(found)) == [(1, "Ada")]
    assert len(list(teller.home.quarantine.entries())) == 3


def test_a_home_is_opened_again(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(NEWS)
        number = hub.subscribe(AUTHORS + " WHERE x.year < 1900").id
        hub.insert("news", {"id": 1, "doc": ADA})
    with Hub(tmp_path / "home") as hub:
        hub.insert("news", {"id": 2, "doc": ADA.replace("1843", "1950")})
        hub.update("news", {"id": 1, "doc": ADA.replace("Ada", "Lovelace")})
        assert list(hub.subscription(number).content()) == [{"id": 1, "author": "Lovelace"}]


def test_documents_are_stored_in_canonical_form(hub: Hub) -> None:
    mine = hub.subscribe("SELECT doc FROM news WHERE doc IS NOT NULL")
    hub.insert("news", {"id": 1, "doc": "<?xml version='1.0'?><a  b='1'><!-- c --><c/></a>"})
    hub.insert("news", {"id": 2, "doc": None})
    assert list(mine.content()) == [{"doc": '<a b="1"><c></c></a>'}]


def test_only_rows_that_differ_are_told(hub: Hub) -> None:
    mine = hub.subscribe(AUTHORS)
    two = (
        "<n><item year='1'><author>{}</author></item><item year='1'><author>Bob</author></item></n>"
    )
    hub.insert("news", {"id": 1, "doc": two.format("Ada")})
    mine.notifications()
    hub.update("news", {"id": 1, "doc": two.format("Cy")})
    told = [(one.kind, one.after) for one in mine.notifications()]
    # The whole document is part of each row, but this query shows only the author.
    assert told == [("update", {"id": 1, "author": "Cy"})]


def test_without_lxml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr("penstock.xml_text.importlib.import_module", missing)
    with pytest.raises(ExtraError, match=r"lxml"):
        parse_declaration(NEWS)


X = "XMLTABLE('//a' PASSING doc COLUMNS b VARCHAR PATH 'b') AS x"


@pytest.mark.parametrize(
    ("sql", "kind", "reason"),
    [
        ("SELECT id FROM news WHERE doc = '<a/>'", SqlError, "cannot be compared"),
        ("SELECT length(doc) AS n FROM news", SqlError, "cannot be part of an expression"),
        (f"SELECT id || doc AS n FROM news, {X}", SqlError, "cannot be part of an expression"),
        (f"SELECT id FROM news, {X}, {X}", SqlError, "used for two tables"),
        (f"SELECT id FROM news, {', '.join(f'{X}{i}' for i in range(9))}", SqlError, "at most 8"),
        (f"SELECT x.b FROM news, {X}, {X[:-1]}y WHERE b = 'c'", SqlError, "ambiguous"),
        (f"SELECT id FROM news, {X}, {X[:-1].replace('doc', 'x.b')}y", SqlError, "needs XML"),
        (f"SELECT id FROM news, {X[:-5]}", SqlError, "needs a name"),
        (f"SELECT id FROM news, {X.replace('doc', 'id')}", SqlError, "XMLTABLE needs XML"),
        (f"SELECT id FROM news, {X.replace('//a', '//*')}", SqlError, "Wildcards"),
        (f"SELECT id FROM news, {X.replace('//a', 'a')}", SqlError, "does not begin"),
        (f"SELECT x.c FROM news, {X}", SqlError, "XMLTABLE has no column c"),
        (f"SELECT id FROM news JOIN {X}", SqlError, "a JOIN without a condition"),
        (f"SELECT id FROM {X}, news", SqlError, "no column doc"),
        (f"SELECT /*+ payload(doc) */ id FROM news, {X}", SqlError, "doc is not selected"),
        (f"SELECT /*+ payload(c) */ id FROM news, {X}", SqlError, "table news has no column c"),
        (f"SELECT id FROM news, {X.replace(' PATH', ' DEFAULT 1 PATH')}", NotYetError, "DEFAULT"),
        (f"SELECT id FROM news, {X.replace('b VARCHAR', 'n FOR ORDINALITY, b VARCHAR')}",
         SqlError, "cannot be parsed"),
    ],
)  # fmt: skip
def test_refused_by_name(hub: Hub, sql: str, kind: type[SqlError], reason: str) -> None:
    with pytest.raises(kind, match=reason):
        hub.subscribe(sql)


def test_documents_are_no_keys() -> None:
    with pytest.raises(SqlError, match="cannot be a key"):
        parse_declaration("CREATE TABLE t (doc XML PRIMARY KEY)")


def test_a_view_with_too_many_matches_has_no_rows(hub: Hub) -> None:
    few = "<n>" + "<item year='1'><author>A</author></item>" * 3 + "</n>"
    mine = hub.subscribe(
        "SELECT id, x.a FROM news, XMLTABLE('//n' PASSING doc COLUMNS a VARCHAR PATH './/author', "
        "b VARCHAR PATH 'item/author') AS x"
    )
    hub.insert("news", {"id": 1, "doc": few})
    assert len(list(mine.content())) == 9
    many = "<n>" + "<item><author>A</author></item>" * 400 + "</n>"
    hub.update("news", {"id": 1, "doc": many})
    assert list(mine.content()) == []


def test_a_payload_that_goes_from_one_row_of_a_document_to_another(hub: Hub) -> None:
    """The last row that has it leaves before the first one enters, in one record."""
    mine = hub.subscribe(
        "SELECT /*+ payload(h) */ k, h FROM news, XMLTABLE('//i' PASSING doc "
        "COLUMNS k VARCHAR PATH '@k', h XML PATH 'h') AS x"
    )
    hub.insert("news", {"id": 1, "doc": "<n><i k='1'><h>Q</h></i><i k='2'><h>P</h></i></n>"})
    hub.update("news", {"id": 1, "doc": "<n><i k='9'><h>Q</h></i><i/><i k='3'><h>P</h></i></n>"})
    assert [(row["k"], row["h"]) for row in mine.content()] == [
        ("9", "<h>Q</h>"),
        ("3", "<h>P</h>"),
    ]
