"""init, execute, tables, rebuild, version."""

from __future__ import annotations

from pathlib import Path

from penstock.storage import Home
from tests.cli.conftest import Cli


def test_init_makes_a_home(cli: Cli, tmp_path: Path) -> None:
    ran = cli("init", tmp_path / "shop")
    assert (ran.code, ran.out) == (0, f"created {tmp_path / 'shop'}\n")
    assert cli("init", tmp_path / "third", "--shared").code == 0
    assert Home.open(tmp_path / "third").shared
    assert cli("init", tmp_path / "other", "--json").json == {"home": str(tmp_path / "other")}


def test_init_refuses_a_directory_in_use(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "something").write_text("")
    ran = cli("init", tmp_path)
    assert ran.code == 6
    assert "is not empty" in ran.err


def test_execute_declares_tables_and_streams(cli: Cli, home: Path) -> None:
    ran = cli("execute", home, "CREATE STREAM trades (symbol VARCHAR, price DECIMAL(10,2))")
    assert (ran.code, ran.out) == (0, "declared stream trades\n")
    ran = cli("execute", home, "CREATE TABLE people (id INT PRIMARY KEY)", "--json")
    assert ran.json == {"declared": [{"name": "people", "kind": "table", "offset": 3}]}


def test_execute_script(cli: Cli, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "schema.sql"
    one, other = (f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in "ab")
    script.write_text(f"-- two tables;\n{one};\n\n{other};")
    assert cli("execute", home, "--file", script).out == "declared table a\ndeclared table b\n"


def test_execute_script_says_where_it_stopped(cli: Cli, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "schema.sql"
    script.write_text("CREATE TABLE a (id INT PRIMARY KEY);\n\nCREATE TABLE a (id INT);\n")
    ran = cli("execute", home, "--file", script)
    assert ran.code == 3
    assert ran.out == "declared table a\n"
    assert f"in the statement at line 3 of {script}" in ran.err


def test_execute_underlines_what_it_refuses(cli: Cli, home: Path) -> None:
    ran = cli("execute", home, "CREATE TABLE t (id NONSENSE PRIMARY KEY)")
    assert ran.code == 3
    assert ran.err.startswith("error: ")
    assert "CREATE TABLE t (id NONSENSE PRIMARY KEY)\n" in ran.err
    assert "^^" in ran.err
    assert "Traceback" not in ran.err


def test_execute_needs_one_source_of_statements(cli: Cli, home: Path) -> None:
    assert cli("execute", home).code == 2
    assert cli("execute", home, "CREATE TABLE a (id INT)", "--file", __file__).code == 2


def test_execute_needs_a_script_that_can_be_read(cli: Cli, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "schema.sql"
    script.write_bytes(b"CREATE \xff")
    assert cli("execute", home, "--file", script).code == 2
    script.write_bytes(b"-- nothing\n")
    assert cli("execute", home, "--file", script).code == 2


def test_tables(cli: Cli, home: Path) -> None:
    ran = cli("tables", home)
    assert ran.code == 0
    assert "id BIGINT PRIMARY KEY, symbol VARCHAR NOT NULL, per DOUBLE" in ran.out
    stocks, reviews = cli("tables", home, "--json").json["tables"]
    assert stocks == {
        "name": "stocks",
        "kind": "table",
        "columns": [
            {"name": "id", "type": "BIGINT", "nullable": False},
            {"name": "symbol", "type": "VARCHAR", "nullable": False},
            {"name": "per", "type": "DOUBLE", "nullable": True},
        ],
        "primary_key": ["id"],
    }
    assert reviews["name"] == "reviews"


def test_no_tables(cli: Cli, tmp_path: Path) -> None:
    cli("init", tmp_path / "new")
    assert cli("tables", tmp_path / "new").out == "no tables\n"


def test_rebuild(cli: Cli, home: Path) -> None:
    number = cli("subscribe", home, "SELECT * FROM stocks").out.strip()
    for path in home.glob("*.db*"):
        path.unlink()
    (home / "catalog.db").write_bytes(b"this is not a database" * 100)
    assert cli("tables", home).code == 7
    assert cli("rebuild", home).out == "rebuilt from 3 records: 2 tables, 1 subscription\n"
    assert cli("rebuild", home, "--json").json == {
        "tables": 2,
        "subscriptions": 1,
        "log_end": 3,
    }
    assert cli("subscriptions", home, "--json").json["subscriptions"][0]["id"] == int(number)


def test_version(cli: Cli) -> None:
    versions = cli("version", "--json").json
    assert list(versions) == ["penstock", "python", "pyspark"]
    assert cli("version").out == cli("--version").out
    assert cli("version").out.startswith(f"penstock {versions['penstock']} · ")
