"""Pages of papers: one self-contained HTML file for each, and an index."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from penstock.lab.evidence.model import Finding, Paper, Row, Size, Verdict
from penstock.lab.evidence.plots import Picture, draw_plot

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222 }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
code { background: #f3f3f3; padding: .1rem .3rem }
.holds { color: #2b7a3d } .fails { color: #b3261e; font-weight: bold }
.not { color: #8a5a00 } svg { max-width: 100%; height: auto } li { margin: .3rem 0 }
small { color: #666 }
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how something was measured."""

    size: Size
    machine: str
    commit: str

    @classmethod
    def here(cls, size: Size) -> Setting:
        machine = (
            f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}"
        )
        return cls(size, machine, _commit())

    def command(self, name: str) -> str:
        return f"penstock lab paper {name}{' --full' if self.size is Size.FULL else ''}"


def _commit() -> str:
    """The commit of the checkout that contains the package; an installed package has none."""
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip() or "unknown"


def write_paper(
    paper: Paper, findings: Sequence[Finding], setting: Setting, directory: Path
) -> Path:
    """Write the page of a paper, with its plots embedded and as files."""
    directory.mkdir(parents=True, exist_ok=True)
    sections = []
    for finding in findings:
        picture = None
        if finding.item.plot and finding.rows:
            title = f"{paper.name}, {finding.item.name}: {finding.item.title}"
            picture = draw_plot(finding.item.plot, finding.rows, title)
            stem = f"{paper.name}-{re.sub('[^a-z0-9]+', '-', finding.item.name)}"
            (directory / f"{stem}.svg").write_text(picture.svg, encoding="utf-8")
            (directory / f"{stem}.png").write_bytes(picture.png)
        sections.append(_section(paper, finding, setting, picture))
    assumed = "".join(f"<li>{_text(one)}</li>" for one in paper.assumptions)
    body = (
        f"<h1>{escape(paper.title)}</h1><p>{escape(paper.citation)}</p>"
        f"<p><small>{escape(setting.machine)}; commit {escape(setting.commit)}; size "
        f"{setting.size}: <code>{escape(setting.command(paper.name))}</code></small></p>"
        + (f"<h2>Assumptions</h2><ul>{assumed}</ul>" if assumed else "")
        + "".join(sections)
    )
    path = directory / f"{paper.name}.html"
    path.write_text(_page(paper.name, body), encoding="utf-8")
    return path


def save_findings(
    paper: Paper, findings: Sequence[Finding], setting: Setting, directory: Path
) -> dict[str, object]:
    """Write everything on the page of a paper as JSON; returns it."""
    data: dict[str, object] = {
        "paper": paper.name,
        "title": paper.title,
        "size": str(setting.size),
        "machine": setting.machine,
        "commit": setting.commit,
        "items": [finding_data(finding) for finding in findings],
    }
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{paper.name}.json"
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return data


def finding_data(finding: Finding) -> dict[str, object]:
    return {
        "item": finding.item.name,
        "title": finding.item.title,
        "seconds": round(finding.seconds, 1),
        "rows": list(finding.rows),
        "claims": [
            {
                "claim": claim.text if claim else None,
                "ours": bool(claim and claim.is_ours),
                "verdict": str(judgement.verdict),
                "detail": judgement.detail,
            }
            for claim, judgement in finding.judgements
        ],
    }


def write_index(directory: Path, names: Sequence[str]) -> Path:
    """An index of all papers with a page in a directory, whenever it was written."""
    head = "".join(f"<th>{verdict}</th>" for verdict in Verdict)
    lines = []
    for name in names:
        path = directory / f"{name}.json"
        if not path.exists():
            continue
        data = json.loads(path.read_text(encoding="utf-8"))
        verdicts = Counter(c["verdict"] for item in data["items"] for c in item["claims"])
        counts = "".join(f"<td>{verdicts[verdict]}</td>" for verdict in Verdict)
        lines.append(
            f'<tr><td><a href="{name}.html">{escape(name)}</a>: {escape(data["title"])}</td>'
            f"<td>{len(data['items'])}</td>{counts}<td>{escape(data['size'])}</td>"
            f"<td>{escape(data['commit'])}</td></tr>"
        )
    body = (
        "<h1>The papers, run again</h1>"
        f"<table><tr><th>paper</th><th>items</th>{head}<th>size</th><th>commit</th></tr>"
        f"{''.join(lines)}</table>"
    )
    path = directory / "index.html"
    path.write_text(_page("Evidence", body), encoding="utf-8")
    return path


def _section(paper: Paper, finding: Finding, setting: Setting, picture: Picture | None) -> str:
    item = finding.item
    command = item.commands.get(setting.size) or setting.command(paper.name)
    claims = "".join(
        f"<li>{_text(claim.text) if claim else ''} {'(ours) ' if claim and claim.is_ours else ''}"
        f'<span class="{str(judgement.verdict).split()[0]}">{escape(judgement.text)}</span></li>'
        for claim, judgement in finding.judgements
    )
    size = item.sizes.get(setting.size, "")
    return (
        f"<h2>{escape(item.name)}: {escape(item.title)}</h2>"
        f"<p><small>{escape(size)}{'; ' if size else ''}{finding.seconds:.0f} s; "
        f"<code>{escape(command)}</code></small></p><ul>{claims}</ul>"
        + (picture.svg[picture.svg.index("<svg") :] if picture else "")
        + _table(finding.rows, item.columns)
    )


def _table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    if not rows:
        return ""
    shown = columns or list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in shown)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell_text(row.get(name)))}</td>" for name in shown) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{lines}</table>"


def cell_text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _text(text: str) -> str:
    """Words between backquotes are code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style><body>{body}</body></html>\n"
    )
