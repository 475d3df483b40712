"""`penstock lab paper` and `penstock lab list`: rerun the papers, and list them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.cli.output import Output, count, literal, text_console
from penstock.lab.evidence.model import Finding, Paper, Report, Size, Verdict
from penstock.lab.evidence.pages import (
    Setting,
    save_findings,
    write_index,
    write_paper,
)
from penstock.lab.evidence.registry import PAPERS, find_paper
from penstock.lab.evidence.running import TimeLeft, run_item


def list_papers(out: Output) -> None:
    """List every item of every paper, with its sizes and approximate durations."""
    papers = [find_paper(name) for name in PAPERS]
    out.table(
        ("paper", "item", "title", "small", "full", "small s", "full s"),
        [
            (
                paper.name,
                item.name,
                item.title,
                item.sizes.get(Size.SMALL, "") if item.experiment else "not built",
                item.sizes.get(Size.FULL, ""),
                *(f"{item.seconds.get(size, 0):.0f}" if item.experiment else "" for size in Size),
            )
            for paper in papers
            for item in paper.items
        ],
        numbers=("small s", "full s"),
    )
    out.result({"results": [_item_data(paper) for paper in papers]})


def _item_data(paper: Paper) -> dict[str, object]:
    items = [
        {
            "item": item.name,
            "title": item.title,
            "built": item.experiment is not None,
            "sizes": {str(size): text for size, text in item.sizes.items()},
            "seconds": {str(size): seconds for size, seconds in item.seconds.items()},
        }
        for item in paper.items
    ]
    return {"paper": paper.name, "title": paper.title, "items": items}


def run_papers(papers: Sequence[Paper], size: Size, directory: Path, out: Output) -> bool:
    """Run papers and write their pages; returns whether no claim fails."""
    setting = Setting.here(size)
    left = TimeLeft([item for paper in papers for item in paper.items], size)
    results, fails = [], 0
    for paper in papers:
        findings: list[Finding] = []
        for item in paper.items:
            with _working(f"{paper.name}, {item.name}", left) as report:
                findings.append(run_item(item, size, report))
            left.add(findings[-1])
            for _, judgement in findings[-1].judgements:
                out.note(f"  {judgement.text}")
            # After each item, so that an interrupted run keeps its measurements.
            data = save_findings(paper, findings, setting, directory)
        results.append(data)
        page = write_paper(paper, findings, setting, directory)
        fails += sum(finding.count(Verdict.FAILS) for finding in findings)
        _say_findings(paper, findings, page, out)
    index = write_index(directory, PAPERS)
    out.say(f"index: {index}")
    out.result({"results": results, "index": str(index)})
    return not fails


@contextmanager
def _working(what: str, left: TimeLeft) -> Iterator[Report]:
    """A status line on a terminal, otherwise one line per item."""
    console = text_console(to_stderr=True)
    estimate = _duration(left.seconds)
    if not console.is_terminal:
        console.print(literal(f"{what}; {estimate} left"))
        yield lambda _: None
        return
    with console.status(literal(what)) as status:
        yield lambda text: status.update(literal(f"{what}: {text}; {estimate} left"))


def _duration(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"


def _say_findings(paper: Paper, findings: Sequence[Finding], page: Path, out: Output) -> None:
    out.say(f"{paper.name}: {paper.title}")
    for finding in findings:
        out.say(f"  {finding.item.name}: {finding.item.title} ({finding.seconds:.0f} s)")
        for claim, judgement in finding.judgements:
            out.say(f"    {judgement.text}" + (f" | {claim.text}" if claim else ""))
    total = sum(len(finding.judgements) for finding in findings)
    holding = sum(finding.count(Verdict.HOLDS) for finding in findings)
    out.say(f"  {holding} of {count(total, 'claim')} hold; page: {page}")
