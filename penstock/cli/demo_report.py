"""The summaries that `penstock demo` and `penstock demo news` print."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.output import Output, count, size
from penstock.flow.events import encode_change
from penstock.lab.demo import DemoReport

if TYPE_CHECKING:
    from penstock.lab.news_demo import NewsDemo

MAX_TEXT = 30  # characters of a review: a row should fit on a line


def figures(report: DemoReport) -> dict[str, object]:
    traffic = report.traffic
    return {
        "home": str(report.home),
        "subscriptions": report.subscriptions,
        "events": report.events,
        "quarantined": report.quarantined,
        "subscriptions_told": len(traffic.told),
        "naive_rows": traffic.rows,
        "naive_bytes": traffic.row_bytes,
        "messages": traffic.messages,
        "message_bytes": traffic.message_bytes,
        "deliveries": traffic.deliveries,
        "delivery_bytes": traffic.delivery_bytes,
        "ratio_rows": round(traffic.rows / max(1, traffic.messages), 1),
        "ratio_bytes": round(traffic.row_bytes / max(1, traffic.message_bytes), 1),
        "contents_checked": report.checked,
        "seconds": round(report.seconds, 1),
    }


def show_report(out: Output, report: DemoReport) -> None:
    _show_traffic(out, report)
    _show_example(out, report)
    _show_next(out, report)


def _show_traffic(out: Output, report: DemoReport) -> None:
    traffic, told = report.traffic, figures(report)
    bad = f" ({report.quarantined} of them invalid, in quarantine)" if report.quarantined else ""
    out.say()
    out.say(
        f"{count(report.events, 'event')}{bad}; "
        f"{len(traffic.told):,} of {count(report.subscriptions, 'subscription')} were affected"
    )
    out.say()
    rows = [
        (
            "a naive server: every changed row, to every subscriber",
            f"{traffic.rows:,}",
            size(traffic.row_bytes),
        ),
        (
            "Penstock: messages, each sent once, for a region of subscribers",
            f"{traffic.messages:,}",
            size(traffic.message_bytes),
        ),
        ("ratio", f"{told['ratio_rows']} ×", f"{told['ratio_bytes']} ×"),
        (
            "(if nothing on the way shared messages: one copy per subscriber",
            f"{traffic.deliveries:,}",
            f"{size(traffic.delivery_bytes)})",
        ),
    ]
    out.table(("sent", "number", "bytes"), rows, numbers=("number", "bytes"))
    out.say()
    out.say(f"✓ checked: all {report.checked:,} contents equal their query over all rows")


def _show_example(out: Output, report: DemoReport) -> None:
    example = report.example
    out.say()
    out.say(f"Subscription {example.subscription}: {example.sql}")
    out.table(example.columns, [map(_shortened, row.values()) for row in example.rows])
    out.say()
    out.say("Would this change reach it?")
    out.say(str(example.explanation))


def _shortened(value: object) -> object:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[: MAX_TEXT - 1]}…"
    return value


def _show_next(out: Output, report: DemoReport) -> None:
    penstock, number = _program(), report.example.subscription
    home = shlex.quote(str(report.home))
    change = shlex.quote(encode_change(report.example.change).decode())
    out.say()
    out.say(f"Took {report.seconds:.0f} seconds. The home is kept in {report.home}; try:")
    for command in (
        f"{penstock} content {home} {number}",
        f"{penstock} tail {home} {number} --no-follow",
        f"{penstock} explain {home} {number} {change}",
        f"echo {change} | {penstock} publish {home} -",
        f"{penstock} run {home} --once",
        f"{penstock} content {home} {number}",
        f"{penstock} quarantine {home} list",
    ):
        out.say(f"  {command}")


def _program() -> str:
    """How to call the program: by name, or by its path if the name is not on PATH."""
    called = Path(sys.argv[0])
    if called.name == "penstock" and shutil.which("penstock") is None:
        return shlex.quote(sys.argv[0])
    return "penstock"


def show_news(out: Output, done: NewsDemo, svg: Path | None) -> None:
    """The load of the source, without and with a network of views."""
    plan = done.planned.plan
    levels = {str(level): number for level, number in Counter(plan.levels().tolist()).items()}
    out.result(
        {
            "results": [
                {"way": way, **asdict(relief)}
                for way, relief in (("alone", done.alone), ("network", done.relieved))
            ],
            "documents": done.documents,
            "sites": done.sites,
            "levels": levels,
            "busiest_site_bytes": done.busiest_site_bytes,
            "moved_views": done.moved,
            "svg": None if svg is None else str(svg),
        }
    )
    out.say(
        f"{done.alone.views:,} views at {done.sites} sites, {done.documents:,} documents of "
        f"{size(round(done.document_bytes))}. Load of the source per document:"
    )
    alone, relieved = done.alone, done.relieved
    rows = [
        ("views fed", f"{alone.views:,}", f"{relieved.views:,}"),
        ("rows sent", f"{alone.rows:,.0f}", f"{relieved.rows:,.0f}"),
        ("bytes sent", f"{alone.bytes:,.0f}", f"{relieved.bytes:,.0f}"),
        ("CPU ms for extraction", f"{alone.milliseconds:.2f}", f"{relieved.milliseconds:.2f}"),
    ]
    out.table(("", "alone", "views feed views"), rows, ("alone", "views feed views"))
    shown = ", ".join(f"{number} at level {level}" for level, number in sorted(levels.items()))
    out.say(f"Views: {shown}. The busiest site sends {size(round(done.busiest_site_bytes))}.")
    out.say(
        f"One site failed during the run: {done.moved} views moved; every content equals what the "
        "home returns."
    )
    if svg is not None:
        out.say(f"Diagram of levels and feeds: {svg}")
