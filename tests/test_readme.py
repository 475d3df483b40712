"""The README is true: its blocks run, and its figures are those that the code has."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import Hub, hub, sql
from penstock.arguments import MAX_LEASE_SECONDS
from penstock.catalog import catalog as catalogs
from penstock.cli.failures import EXIT_CODES
from penstock.cli.output import size
from penstock.delivery import subscription
from penstock.flow import events, strict_json
from penstock.ingest import row_writer
from penstock.ingest.formats import csv_rows, parquet_rows
from penstock.joins import make_scheme
from penstock.lab.demo import Advance, run_demo
from penstock.pipeline import offsets
from penstock.pipeline import run as pipeline
from penstock.predicates import budget
from penstock.registry import MAX_SUBSCRIPTIONS_AT_ONCE
from penstock.storage import frames, home

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

# `…` in the README stands for something that is different every time.
ANYTHING = "…"


class Block(NamedTuple):
    language: str
    text: str


def blocks() -> list[Block]:
    return [Block(*found) for found in re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)]


def assert_like(printed: str, expected: str) -> None:
    """Equal line by line, but for what `…` stands for and blanks at the end of lines."""
    printed_lines = [line.rstrip() for line in printed.strip().splitlines()]
    expected_lines = [line.rstrip() for line in expected.strip().splitlines()]
    patterns = [
        ".*".join(re.escape(part) for part in line.split(ANYTHING)) for line in expected_lines
    ]
    for line, pattern in zip(printed_lines, patterns, strict=False):
        assert re.fullmatch(pattern, line), f"printed {line!r}, but the README has {pattern!r}"
    assert len(printed_lines) == len(expected_lines), printed


def test_python_blocks_print_what_follows_them() -> None:
    names: dict[str, object] = {}
    shown = 0
    found = blocks()
    for block, following in zip(found, [*found[1:], Block("", "")], strict=True):
        if block.language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, "README.md", "exec"), names)
        assert_like(printed.getvalue(), following.text if following.language == "text" else "")
        shown += 1
    assert shown >= 4


def commands() -> Iterator[tuple[str, str]]:
    """The commands of all console blocks, each with what it should print."""
    for block in blocks():
        if block.language != "console":
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            more = 1
            while more < len(lines) and lines[more].startswith("> "):
                more += 1
            continued = [line.removeprefix("> ") for line in lines[1:more]]
            yield "\n".join([lines[0], *continued]), "\n".join(lines[more:])


@pytest.mark.spark
@pytest.mark.slow
def test_console_blocks_print_what_they_show(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "penstock"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nfrom penstock.cli.main import main\nmain()\n", encoding="utf-8"
    )
    program.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",  # what is said to people and to programs, in order
    }
    ran = 0
    for command, expected in commands():
        ended = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        assert ended.returncode == 0, ended.stdout
        assert_like(ended.stdout, expected)
        ran += 1
    assert ran >= 9


def table_rows(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, without its own heading."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_exit_codes() -> None:
    assert table_rows("Exit codes") == [[str(c), meaning] for c, meaning in EXIT_CODES.items()]


def test_limits() -> None:
    limits = {
        "bytes of a statement": sql.MAX_BYTES,
        "words and signs of a statement": sql.MAX_TOKENS,
        "levels of nesting in a statement": sql.MAX_DEPTH,
        "tables in a query": sql.MAX_TABLES,
        "branches of a query": sql.MAX_BRANCHES,
        "steps to multiply a condition out": budget.MAX_WORK,
        "columns of a table": sql.MAX_COLUMNS,
        "tables and streams in a home": catalogs.MAX_RELATIONS,
        "bytes of an event": events.MAX_EVENT_BYTES,
        "levels of nesting in an event": strict_json.MAX_EVENT_DEPTH,
        "changes in one batch of a Hub": hub.MAX_BATCH_CHANGES,
        "bytes of the log in one batch of the pipeline (`--batch-mb`)": offsets.BATCH_BYTES,
        "subscriptions registered at once": MAX_SUBSCRIPTIONS_AT_ONCE,
        "days that a lease lasts": MAX_LEASE_SECONDS // 86_400,
        "bytes of the path of a home, from the root on": home.MAX_PATH_BYTES,
        "notifications that wait for one subscription of a Hub": (
            subscription.MAX_PENDING_NOTIFICATIONS
        ),
        "bytes of them, about": subscription.MAX_PENDING_BYTES,
    }
    assert table_rows("Limits") == [[name, f"{limit:,}"] for name, limit in limits.items()]
    assert f"Beyond {sql.MAX_BRANCHES:,} branches" in README


def test_limits_of_files() -> None:
    formats = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    for what, limit in (
        ("bytes of a line", frames.MAX_RECORD_BYTES),
        ("bytes of a CSV row, or of the header", csv_rows.BLOCK_BYTES),
        (
            "bytes of CSV rows with too many or too few fields, in one file",
            csv_rows.MAX_RAGGED_BYTES,
        ),
        ("bytes of a Parquet footer", parquet_rows.MAX_FOOTER_BYTES),
    ):
        assert f"| {what} | {limit:,} |" in formats
    assert f"{parquet_rows.MAX_COMPRESSION} times its packed bytes" in formats
    assert f"{row_writer.MAX_EXPANSION:,} times the bytes of the file" in formats
    assert f"{events.MAX_EVENT_BYTES:,} bytes and {strict_json.MAX_EVENT_DEPTH} levels" in formats


def test_the_scheme_is_the_one_that_is_used() -> None:
    assert f"(`{make_scheme().name}`)" in README


def test_what_it_points_to_is_there() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


class Silent:
    @contextmanager
    def step(self, _what: str) -> Iterator[Advance]:
        yield lambda _done, _total: None


@pytest.mark.slow
@pytest.mark.parametrize("row", [0, 1])
def test_figures_of_the_demo(row: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `penstock demo` prints them. A Hub sends the same messages as the pipeline, sooner; their
    bytes differ a little, for regions may be described in more than one way."""
    monkeypatch.setattr(pipeline, "run", lambda home, **_: Hub(home).close())
    count, naive, messages, naive_bytes, message_bytes = table_rows("What it costs")[row]
    report = run_demo(
        tmp_path / "home",
        Silent(),
        subscriptions=int(count),
        changes=3000,
        seed=1,
        master="",
    )
    traffic = report.traffic
    assert naive == f"{traffic.rows:,}"
    assert messages == f"{traffic.messages:,}"
    assert naive_bytes == size(traffic.row_bytes)
    kilobytes = int(message_bytes.removesuffix(" kB").replace(",", ""))
    assert traffic.message_bytes / 1000 == pytest.approx(kilobytes, rel=0.01)
